import Contracts
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of several transactions in one commit: each is applied completely or not at all.
@Suite(.timeLimit(.minutes(1)))
struct GroupCommitTests {
    private static let context = GroupCommit.WriteContext(
        now: { 1_700_000_000_000_000 },
        makeID: IdentifierGenerator(now: { 1_700_000_000_000_000 }).make
    )

    private func folderRequest(_ title: String, _ name: String) -> WriteRequest {
        WriteRequest(
            prepared: [PreparedChange(.createList(.init(ref: "f", title: title)))],
            origin: ChangeOrigin(identity: "test"),
            key: OutcomeKey(identity: "test", client: "", transaction: name),
            digest: Array(repeating: 0, count: 32)
        )
    }

    /// Returns the statement that makes the database refuse a folder with the title `two`.
    private static func refusal(_ dialect: SQLDialect) -> String {
        switch dialect {
        case .sqlite:
            """
            CREATE TEMP TRIGGER refuse BEFORE INSERT ON list WHEN new.title = 'two'
            BEGIN SELECT RAISE(ABORT, 'refused'); END
            """
        case .postgresql:
            """
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON list FOR EACH ROW WHEN (new.title = 'two')
                EXECUTE FUNCTION refuse()
            """
        }
    }

    @Test
    func `a transaction that fails while it is written leaves no rows, and the others are committed`()
        async throws
    {
        let fixture = try StoreFixture()
        let writes = [
            folderRequest("one", "1"), folderRequest("two", "2"), folderRequest("three", "3"),
            folderRequest("one more", "1"),
        ]
        let (sequences, head) = try await fixture.store.onWriter { database in
            try database.inImmediateTransaction { try database.run(once: Self.refusal(database.dialect)) }
            let done = try GroupCommit(database: database, context: Self.context).commit(writes) { _ in
                false
            }
            return (done.results.map { (try? $0.get())?.record?.sequence }, done.head.sequence)
        }
        #expect(sequences == [1, nil, 2, nil] && head == 2)
        let everything = try await fixture.store.everything()
        #expect(everything.root?.childCount == 2)
        #expect(Set(everything.lists.values.compactMap(\.title)) == ["one", "three"])
        let (records, hasOutcome, bytes) = try await fixture.store.read { reader in
            (
                try reader.history.records(after: 0, through: .max, count: 10, bytes: .max).records,
                try ["1", "2", "3"].map { name in
                    try reader.history.outcome(OutcomeKey(identity: "test", client: "", transaction: name)) != nil
                },
                try reader.history.bytes()
            )
        }
        #expect(records.map(\.sequence) == [1, 2] && hasOutcome == [true, false, true])
        #expect(bytes == records.reduce(0) { $0 + $1.bytes.count })
    }

    @Test(.spec("S-90"))
    func `the changed assets are recorded in the table of last changes with their sequence`() async throws {
        let fixture = try StoreFixture()
        let lastChangeFolder = try TemporaryFolder("last-changes")
        let path = LastChangeFile.path(in: lastChangeFolder.path)
        let ids = (1...2).map { number -> ObjectID in
            var random = SeededRandom(seed: UInt64(number))
            return ObjectID(.asset, milliseconds: Int64(number), using: &random)
        }
        var added = TransactionResult()
        added.assets = ids.map { EntityChange(before: nil, after: Asset(id: $0, contentRevision: Revision(1))) }
        try await fixture.write(added, sequence: 1)
        var context = Self.context
        context.lastChanges = try LastChangeFile(path: path, library: fixture.store.historyID, sequence: 1)
        let table = try LastChangeTable(path: path)
        func rate(_ id: ObjectID, _ name: String) -> WriteRequest {
            var write = folderRequest(name, name)
            write.prepared = [
                PreparedChange(.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: true))))
            ]
            return write
        }
        let writes = [folderRequest("one", "1"), rate(ids[0], "2")]
        let head = try await fixture.store.onWriter { [context] database in
            try GroupCommit(database: database, context: context).commit(writes) { _ in false }.head
        }
        #expect(head.sequence == 3 && table.covers(library: head.library, sequence: 3))
        #expect(table.sequence(of: ids[0].text) == 3 && table.sequence(of: ids[1].text) == 1)
    }
}
