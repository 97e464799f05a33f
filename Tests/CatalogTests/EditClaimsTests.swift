import Basics
import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog
@testable import Messaging

/// The rules by which several editors share the accepted edits.
@Suite(.timeLimit(.minutes(1)))
struct EditClaimsTests {
    private let clock = ManualClock()
    private let claims: EditClaims
    private let first = ConnectionID(routing: [1], serial: 1)
    private let second = ConnectionID(routing: [2], serial: 2)

    init() {
        claims = EditClaims(clock: clock.clock)
        claims.begin("one", first)
        claims.begin("two", second)
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

    private func accepting(_ id: String) -> PerformChanges {
        PerformChanges(requests: [.acceptEdit(accept(id))], client: "published", onBehalfOf: "key:ann")
    }

    /// Performs a transaction whose result has `isChanged`; nil if it fails.
    private func perform(_ changes: PerformChanges, _ connection: ConnectionID, isChanged: Bool? = true) async {
        _ = try? await claims.claimingEdits(of: changes, changes.onBehalfOf ?? "", connection) {
            guard let isChanged else { throw RPCError.busy("it fails") }
            return JSON.object(["isChanged": .bool(isChanged)]).bytes
        }
    }

    private func claim(_ ids: [String], _ editor: String, _ connection: ConnectionID) -> [String] {
        claims.claim(pending(ids), for: editor, connection).map(\.accepted.id)
    }

    @Test func `an edit belongs to the editor that accepted it, and others are given to who asks first`() async {
        await perform(accepting("a"), first)
        #expect(claim(["a", "b"], "two", second) == ["b"])
        #expect(claim(["a", "b", "c"], "one", first) == ["c"], "its own it has already")
        #expect(claims.count == 3)
    }

    @Test func `an edit that was not accepted belongs to none`() async {
        await perform(accepting("a"), first, isChanged: nil)
        await perform(accepting("b"), first, isChanged: false)
        #expect(claims.count == 0)
        await perform(accepting("c"), first)
        await perform(accepting("c"), first, isChanged: false)
        #expect(claims.count == 1, "sent again, it is still the editor's")
        await perform(accepting("c"), second, isChanged: nil)
        #expect(claim(["c"], "two", second) == [])
    }

    @Test func `a finished edit belongs to none`() async {
        await perform(accepting("a"), first)
        await perform(accepting("b"), first)
        let failed = ChangeRequest.FailEdit(id: "a", asset: asset, digest: "d", errorName: "x", errorMessage: "y")
        await perform(PerformChanges(requests: [.failEdit(failed)], client: "published", onBehalfOf: "key:bob"), first)
        #expect(claims.count == 2, "of another publisher")
        await perform(PerformChanges(requests: [.failEdit(failed)], client: "published", onBehalfOf: "key:ann"), first)
        var revert = ChangeRequest.RevertAsset(id: asset)
        revert.publishedEdit = "b"
        await perform(
            PerformChanges(requests: [.revertAsset(revert)], client: "published", onBehalfOf: "key:ann"),
            first
        )
        #expect(claims.count == 0)
    }

    @Test func `the edits of an editor that has gone are given away after some time, and to itself at once`() async {
        await perform(accepting("a"), first)
        await perform(accepting("b"), first)
        let change = claims.nextChange
        claims.connectionEnded(first)
        #expect(change.hasHappened && claims.timeUntilFree == EditClaims.absence)
        #expect(claim(["a", "b"], "two", second) == [])
        clock.advance(milliseconds: EditClaims.absence / 1000 - 1)
        #expect(claim(["a", "b"], "two", second) == [] && claims.timeUntilFree == 1000)
        clock.advance(milliseconds: 1)
        #expect(claim(["a"], "two", second) == ["a"] && claims.timeUntilFree == nil)
        let again = ConnectionID(routing: [1], serial: 3)
        claims.begin("one", again)
        #expect(claim(["a", "b"], "one", again) == ["b"], "one is another editor's now")
        #expect(claim(["a", "b"], "two", second) == [])
    }

    @Test func `an editor that is back in time keeps its edits`() async {
        await perform(accepting("a"), first)
        claims.connectionEnded(first)
        let again = ConnectionID(routing: [1], serial: 3)
        claims.begin("one", again)
        clock.advance(milliseconds: EditClaims.absence)
        #expect(claim(["a"], "two", second) == [])
        #expect(claim(["a"], "one", again) == ["a"], "a new process does not know it")
        #expect(claim(["a"], "one", again) == [])
    }

    @Test func `editors of the same name do not take each other's edits`() async {
        let other = ConnectionID(routing: [3], serial: 3)
        claims.begin("one", other)
        await perform(accepting("a"), first)
        #expect(claim(["a", "b"], "one", other) == ["b"])
        #expect(claim(["a", "b"], "one", first) == [])
        let change = claims.nextChange
        claims.connectionEnded(first)
        #expect(change.hasHappened && claims.timeUntilFree == nil)
        #expect(claim(["a", "b"], "one", other) == ["a"])
    }

    @Test func `connections that are no editor's have and get no edits`() async {
        let other = ConnectionID(routing: [9], serial: 9)
        await perform(accepting("a"), other)
        #expect(claims.count == 0)
        #expect(claim(["a"], "nine", other) == [], "its connection has ended meanwhile")
        let change = claims.nextChange
        claims.connectionEnded(other)
        claims.connectionEnded(second)
        #expect(!change.hasHappened, "nobody has to look: they had no edits")
    }
}
