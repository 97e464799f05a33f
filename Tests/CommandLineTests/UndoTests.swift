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

/// A catalog with three changes of one user, each of another asset. Each record fills a page.
private final class PagedHistory: RequestHandler {
    static let count: Int64 = 3
    private let performed = Mutex<[PerformChanges]>([])
    /// True if the changes are edits.
    private let isEdited: Bool
    /// The transaction of each change.
    private let names: [String?]

    init(isEdited: Bool = false, transactions: [String?] = [nil, nil, nil]) {
        (self.isEdited, names) = (isEdited, transactions)
    }

    /// The requests that were performed.
    var requests: [ChangeRequest] { performed.withLock { $0.flatMap(\.requests) } }
    /// The transactions that were performed.
    var transactions: [String] { performed.withLock { $0.map { $0.transaction ?? "none" } } }

    static func id(_ number: Int64) -> ObjectID { ObjectID("a0000000000000000000000000\(number)") ?? .none }

    private func token(_ sequence: Int64) -> ChangeToken {
        ChangeToken(library: String(repeating: "0", count: 32), sequence: sequence)
    }

    private func record(_ sequence: Int64) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: sequence,
            library: String(repeating: "0", count: 32),
            date: 0,
            origin: ChangeOrigin(identity: "uid:1", client: "test", transaction: names[Int(sequence) - 1])
        )
        let before = Asset(id: Self.id(sequence), revision: Revision(0))
        var after = Asset(id: Self.id(sequence), revision: Revision(sequence))
        if isEdited {
            (after.contentRevision, after.adjustmentFormatIdentifier) = (Revision(sequence), "test")
        } else {
            after.isFavorite = true
        }
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
            performed.withLock { $0.append(changes) }
            return Reply(PerformChanges.Result(token: token(Self.count + 1), isChanged: true).json)
        default: throw ErrorCode.methodNotFound.error("the catalog of this test has no such method")
        }
    }
}

/// A catalog with many changes. Only the first one and those with the given transactions are of the test's client.
private final class LongHistory: RequestHandler {
    static let count: Int64 = 2200
    private let requestedMethods = Mutex<[String]>([])
    /// Transactions by the numbers of the changes.
    private let names: [Int64: String]
    /// The date of all changes, in microseconds since 1970.
    private let date: Int64

    init(_ names: [Int64: String] = [:], date: Int64 = 0) { (self.names, self.date) = (names, date) }

    /// The methods of all requests.
    var methods: [String] { requestedMethods.withLock { $0 } }

    private func token(_ sequence: Int64) -> ChangeToken {
        ChangeToken(library: String(repeating: "0", count: 32), sequence: sequence)
    }

    private func record(_ sequence: Int64) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: sequence,
            library: String(repeating: "0", count: 32),
            date: date,
            origin: ChangeOrigin(
                identity: "uid:1",
                client: sequence == 1 || names[sequence] != nil ? "test" : "another",
                transaction: names[sequence]
            )
        )
        let before = Asset(id: PagedHistory.id(1), revision: Revision(sequence - 1))
        var after = Asset(id: PagedHistory.id(1), revision: Revision(sequence))
        after.isFavorite = true
        record.assets = [EntityChange(before: before, after: after)]
        return record
    }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        requestedMethods.withLock { $0.append(request.method) }
        switch try CatalogRequest(method: request.method, params: request.params) {
        case .openSession: return Reply(OpenSession.Result(Grant(identity: "uid:1"), isOwner: true).json)
        case .token: return Reply(CurrentToken.Result(token: token(Self.count), oldest: token(0)).json)
        case .since(let since):
            let start = since.token?.sequence ?? 0
            let end = min(start + Int64(since.limit), Self.count)
            let page = ChangePage(
                records: start < end ? (start + 1...end).map { record($0).json } : [],
                token: token(end),
                oldest: token(0),
                head: token(Self.count)
            )
            return Reply(page.json)
        case .perform:
            return Reply(PerformChanges.Result(token: token(Self.count + 1), isChanged: true).json)
        default: throw ErrorCode.methodNotFound.error("the catalog of this test has no such method")
        }
    }
}

@Suite(.timeLimit(.minutes(1)))
struct UndoTests {
    private static func assets(_ numbers: Int64...) -> [ObjectReference] { numbers.map { .id(PagedHistory.id($0)) } }

    /// Undoes a change and returns the assets that were changed.
    private func undo(_ words: String..., in history: PagedHistory = PagedHistory()) async throws -> [ObjectReference] {
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

    @Test func `the last change is undone even if it is not on the first page of the history`() async throws {
        #expect(try await undo() == [.id(PagedHistory.id(3))])
    }

    @Test func `the change with a given number is undone`() async throws {
        #expect(try await undo("--change", "2") == [.id(PagedHistory.id(2))])
    }

    @Test func `all changes of the last command are undone, the newest first and with one run of transactions`()
        async throws
    {
        let (run, other) = (String(repeating: "a", count: 32), String(repeating: "b", count: 32))
        let three = PagedHistory(transactions: [run, "\(run)-2", "\(run)-3"])
        #expect(try await undo(in: three) == Self.assets(3, 2, 1))
        let runs = Set(three.transactions.map(CommandTransactions.run))
        #expect(Set(three.transactions).count == 3 && runs.count == 1 && runs.first != nil, "\(three.transactions)")

        let mixed = PagedHistory(transactions: ["\(run).a01", other, "\(run)-2.a02"])
        #expect(try await undo(in: mixed) == Self.assets(3, 1))
        let alone = PagedHistory(transactions: [run, other, "import-\(run)-1"])
        #expect(try await undo(in: alone) == Self.assets(3))
        let named = PagedHistory(transactions: [run, "\(run)-2", "\(run)-3"])
        #expect(try await undo("--change", "2", in: named) == Self.assets(2))
    }

    @Test func `an edit is undone with one transaction, even if the reply is lost`() async throws {
        let transactions = AwaitableValue<[String]>([])
        let editor = ScriptedService { request, _ throws(RPCError) in
            guard request.method != Health.method else { return ScriptedService.health }
            let undo = try UndoEdits(params: request.params)
            let number = transactions.withLock { list in
                list.append(undo.transaction ?? "none")
                return list.count
            }
            guard number > 1 else { throw ErrorCode.connectionLost.error("the editor was restarted") }
            return Reply(EditOutcome(asset: undo.asset, token: ScriptedService.token, isChanged: true).json)
        }
        try await ClientFixture.with { fixture in
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.editors[0], editor) {
                try await fixture.serving(fixture.endpoints.catalog, PagedHistory(isEdited: true)) {
                    let command = try #require(try SafelightCommand.parseAsRoot(["undo"]) as? UndoCommand)
                    try await command.run(in: library, output: Output(json: true))
                }
            }
        }
        #expect(transactions.current.count == 2 && Set(transactions.current).count == 1)
    }

    @Test func `the current token is requested once, however old the last change of the user is`() async throws {
        let history = LongHistory()
        try await ClientFixture.with { fixture in
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.catalog, history) {
                let command = try #require(try SafelightCommand.parseAsRoot(["undo"]) as? UndoCommand)
                try await command.run(in: library, output: Output(json: true))
            }
        }
        #expect(history.methods.filter { $0 == "changes.token" || $0 == "changes.since" }.count == 6)
        #expect(history.methods.last == "changes.perform")
    }

    @Test(arguments: [(1_000_000_000_000, 2), (1_000_000_000_000 - 120_000_000, 1)] as [(Int64, Int)])
    func `changes of a command are found among many of others, and not searched before the start of the command`(
        date: Int64,
        count: Int
    ) async throws {
        // The command began a million seconds after 1970.
        let run = "00003b9aca00" + String(repeating: "7", count: 20)
        let history = LongHistory([2: "\(run).a01", LongHistory.count: "\(run)-2.a02"], date: date)
        try await ClientFixture.with { fixture in
            let library = fixture.library
            try await fixture.serving(fixture.endpoints.catalog, history) {
                let command = try #require(try SafelightCommand.parseAsRoot(["undo"]) as? UndoCommand)
                try await command.run(in: library, output: Output(json: true))
            }
        }
        #expect(history.methods.count { $0 == "changes.perform" } == count)
    }
}
