import ArgumentParser
import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Synchronization
import TestSupport
import Testing

@testable import CommandLine

/// A catalog with three changes of one user, each of another asset, whose records fill a page each.
private final class PagedHistory: RequestHandler {
    static let count: Int64 = 3
    private let performed = Mutex<[ChangeRequest]>([])

    /// The requests that were performed.
    var requests: [ChangeRequest] { performed.withLock { $0 } }

    static func id(_ number: Int64) -> ObjectID { ObjectID("a0000000000000000000000000\(number)") ?? .none }

    private func token(_ sequence: Int64) -> ChangeToken {
        ChangeToken(library: String(repeating: "0", count: 32), sequence: sequence)
    }

    private func record(_ sequence: Int64) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: sequence,
            library: String(repeating: "0", count: 32),
            date: 0,
            origin: ChangeOrigin(identity: "uid:1", client: "test")
        )
        let before = Asset(id: Self.id(sequence), revision: Revision(0))
        var after = Asset(id: Self.id(sequence), revision: Revision(sequence))
        after.isFavorite = true
        record.assets = [EntityChange(before: before, after: after)]
        return record
    }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        switch try CatalogRequest(method: request.method, params: request.params) {
        case .openSession: return Reply(OpenSession.Result(Grant(identity: "uid:1"), isOwner: true).json)
        case .token: return Reply(CurrentToken.Result(token: token(Self.count), oldest: token(0)).json)
        case .since(let since):
            let next = (since.token?.sequence ?? 0) + 1
            let page = ChangePage(
                records: [record(next).json],
                token: token(next),
                oldest: token(0),
                head: token(Self.count)
            )
            return Reply(page.json)
        case .perform(let changes):
            performed.withLock { $0 += changes.requests }
            return Reply(PerformChanges.Result(token: token(Self.count + 1), isChanged: true).json)
        default: throw ErrorCode.methodNotFound.error("the catalog of this test has no such method")
        }
    }
}

@Suite(.timeLimit(.minutes(1)))
struct UndoTests {
    /// Takes back a change and returns the assets that were changed.
    private func undo(_ words: String...) async throws -> [ObjectReference] {
        let history = PagedHistory()
        try await ClientFixture.with { fixture in
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.catalog, history) {
                let command = try #require(try SafelightCommand.parseAsRoot(["undo"] + words) as? UndoCommand)
                try await command.run(in: library, output: Output(json: true))
            }
        }
        return history.requests.compactMap { request in
            guard case .updateAsset(let update) = request else { return nil }
            return update.id
        }
    }

    @Test func `the last change is taken back though it is not on the first page of the history`() async throws {
        #expect(try await undo() == [.id(PagedHistory.id(3))])
    }

    @Test func `a change is taken back by its number`() async throws {
        #expect(try await undo("--change", "2") == [.id(PagedHistory.id(2))])
    }
}
