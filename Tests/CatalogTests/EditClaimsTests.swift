import Basics
import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog
@testable import Messaging

/// Tests of the rules by which the accepted edits are divided between editors.
@Suite(.timeLimit(.minutes(1)))
struct EditClaimsTests {
    private let clock = ManualClock()
    private let claims: EditClaims
    private let first = ConnectionID(routing: [1], serial: 1)
    private let second = ConnectionID(routing: [2], serial: 2)

    init() {
        claims = EditClaims(clock: clock.clock)
        claims.registerEditor("one", first)
        claims.registerEditor("two", second)
    }

    private let asset: ObjectID = {
        var random = SeededRandom(seed: 5)
        return ObjectID(.asset, milliseconds: 5, using: &random)
    }()

    private func accept(_ id: String) -> ChangeRequest.AcceptEdit {
        ChangeRequest.AcceptEdit(id: id, asset: asset, digest: "d", content: [:])
    }

    private func pending(_ ids: [String]) -> [PendingEdit] {
        ids.map { PendingEdit(publisher: "key:ann", sequence: 1, accepted: accept($0)) }
    }

    private func acceptance(_ id: String) -> PerformChanges {
        PerformChanges(requests: [.acceptEdit(accept(id))], client: "published", onBehalfOf: "key:ann")
    }

    /// Performs a transaction whose result has `isChanged`; it fails if `isChanged` is nil.
    private func perform(_ changes: PerformChanges, _ connection: ConnectionID, isChanged: Bool? = true) async {
        _ = try? await claims.claimEdits(of: changes, changes.onBehalfOf ?? "", connection) {
            guard let isChanged else { throw RPCError.busy("it fails") }
            return JSON.object(["isChanged": .bool(isChanged)]).bytes
        }
    }

    private func claim(_ ids: [String], _ editor: String, _ connection: ConnectionID) -> [String] {
        claims.claim(pending(ids), for: editor, connection).map(\.accepted.id)
    }

    @Test
    func `an edit belongs to the editor that accepted it, and other edits to the first editor that claims them`() async
    {
        await perform(acceptance("a"), first)
        #expect(claim(["a", "b"], "two", second) == ["b"])
        #expect(claim(["a", "b", "c"], "one", first) == ["c"], "it has its own edit already")
        #expect(claims.count == 3)
    }

    @Test func `an edit that was not accepted belongs to no editor`() async {
        await perform(acceptance("a"), first, isChanged: nil)
        await perform(acceptance("b"), first, isChanged: false)
        #expect(claims.count == 0)
        await perform(acceptance("c"), first)
        await perform(acceptance("c"), first, isChanged: false)
        #expect(claims.count == 1, "an edit that is sent again still belongs to the editor")
        await perform(acceptance("c"), second, isChanged: nil)
        #expect(claim(["c"], "two", second) == [])
    }

    @Test func `a finished edit belongs to no editor`() async {
        await perform(acceptance("a"), first)
        await perform(acceptance("b"), first)
        let failed = ChangeRequest.FailEdit(id: "a", asset: asset, digest: "d", errorName: "x", errorMessage: "y")
        await perform(PerformChanges(requests: [.failEdit(failed)], client: "published", onBehalfOf: "key:bob"), first)
        #expect(claims.count == 2, "the edit of another publisher has not failed")
        await perform(PerformChanges(requests: [.failEdit(failed)], client: "published", onBehalfOf: "key:ann"), first)
        var revert = ChangeRequest.RevertAsset(id: asset)
        revert.publishedEdit = "b"
        await perform(
            PerformChanges(requests: [.revertAsset(revert)], client: "published", onBehalfOf: "key:ann"),
            first
        )
        #expect(claims.count == 0)
    }

    @Test
    func `the edits of a disconnected editor are given to others after some time, and to itself at once`() async {
        await perform(acceptance("a"), first)
        await perform(acceptance("b"), first)
        let change = claims.nextChange
        claims.connectionEnded(first)
        #expect(change.hasHappened && claims.timeUntilFree == EditClaims.reconnectionTime)
        #expect(claim(["a", "b"], "two", second) == [])
        clock.advance(milliseconds: EditClaims.reconnectionTime / 1000 - 1)
        #expect(claim(["a", "b"], "two", second) == [] && claims.timeUntilFree == 1000)
        clock.advance(milliseconds: 1)
        #expect(claim(["a"], "two", second) == ["a"] && claims.timeUntilFree == nil)
        let again = ConnectionID(routing: [1], serial: 3)
        claims.registerEditor("one", again)
        #expect(claim(["a", "b"], "one", again) == ["b"], "the other edit belongs to another editor now")
        #expect(claim(["a", "b"], "two", second) == [])
    }

    @Test func `an editor that connects again in time keeps its edits`() async {
        await perform(acceptance("a"), first)
        claims.connectionEnded(first)
        let again = ConnectionID(routing: [1], serial: 3)
        claims.registerEditor("one", again)
        clock.advance(milliseconds: EditClaims.reconnectionTime)
        #expect(claim(["a"], "two", second) == [])
        #expect(claim(["a"], "one", again) == ["a"], "the new connection may be that of a new process")
        #expect(claim(["a"], "one", again) == [])
    }

    @Test func `editors of the same name do not take each other's edits`() async {
        let other = ConnectionID(routing: [3], serial: 3)
        claims.registerEditor("one", other)
        await perform(acceptance("a"), first)
        #expect(claim(["a", "b"], "one", other) == ["b"])
        #expect(claim(["a", "b"], "one", first) == [])
        let change = claims.nextChange
        claims.connectionEnded(first)
        #expect(change.hasHappened && claims.timeUntilFree == nil)
        #expect(claim(["a", "b"], "one", other) == ["a"])
    }

    @Test func `a connection that is not an editor's has no edits and gets none`() async {
        let other = ConnectionID(routing: [9], serial: 9)
        await perform(acceptance("a"), other)
        #expect(claims.count == 0)
        #expect(claim(["a"], "nine", other) == [], "the connection of this editor may have ended meanwhile")
        let change = claims.nextChange
        claims.connectionEnded(other)
        claims.connectionEnded(second)
        #expect(!change.hasHappened, "the ended connections had no edits")
    }
}
