import Basics
import Contracts
import Foundation
import GRDB
import JSONValue
import PhotoModel
import PostgreSQL
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of moving a library to PostgreSQL and back.
@Suite(.timeLimit(.minutes(2)))
struct LibraryMigrationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("migration") }

    private func image(_ seed: UInt64) -> Bytes { TestImages.jpeg(width: 32, height: 24, seed: seed) }

    /// Fills a library so that most tables have rows.
    private func fill(_ catalog: CatalogFixture) async throws -> [ObjectID] {
        let ids = try await catalog.importImages((1...6).map(image))
        let album = try await catalog.perform(
            [.createCollection(.init(ref: "a", title: "Album Ä"))],
            transaction: "album"
        )
        try await catalog.perform([
            .updateCollection(.init(id: .id(try #require(album.id("a"))), add: ids.map { .id($0) }))
        ])
        let patch = AssetPatch(caption: .some("caption \u{1F4F7}"), keywords: .some(["one", "Zwei", "zwei"]))
        try await catalog.perform([.updateAsset(.init(id: .id(ids[0]), set: patch))], transaction: "patch")
        try await catalog.perform([.trashAssets(.init(ids: [ids[1]]))])
        try await catalog.perform([.deleteAssets(.init(ids: [ids[5]]))])
        try await catalog.perform([.createList(.init(ref: "f", title: "folder"))])
        return ids
    }

    private func differences(_ address: String, _ file: String) throws -> [String] {
        let queue = try DatabaseQueue(path: file)
        return try queue.read { database in
            let session = PostgreSQLSession(address)
            try session.begin(reading: true)
            return try LibraryMigration(file: SQLConnection(database), server: session).differences()
        }
    }

    @Test
    func `a library is the same on PostgreSQL and back in a file, and clients continue at their tokens`() async throws {
        let library = folder.file("library")
        let file = library + "/library.sqlite"
        let address = try PostgreSQLServer.shared().address(schema: "migration_test")
        let (ids, token, everything) = try await CatalogFixture.with(folder) {
            $0.server = nil
        } _: { catalog in
            let ids = try await fill(catalog)
            return (ids, try await catalog.call(CurrentToken()).token, try await catalog.everything())
        }
        let moved = try LibraryMigration.run(.toServer(address), folder: library, verifies: true) { _, _ in }
        #expect(moved.token == token && moved.rows > 60)
        #expect(try differences(address, file + ".moved") == [])
        #expect(throws: StorageError.self) {
            try LibraryMigration.run(.toServer(address), folder: library, verifies: false) { _, _ in }
        }
        let next = try await CatalogFixture.with(folder) {
            $0.server = address
        } _: { catalog in
            #expect(try await catalog.call(CurrentToken()).token == token)
            #expect(try await catalog.everything().normalized() == everything.normalized())
            #expect(try await catalog.history().map(\.sequence) == Array(1...token.sequence))
            let repeated = try await catalog.perform(
                [.createCollection(.init(ref: "a", title: "Album Ä"))],
                transaction: "album"
            )
            #expect(repeated.sequence < token.sequence)
            // Row numbers continue, also after that of the deleted asset.
            let new = try await catalog.importImages([image(9)])
            let row = try await catalog.service.store.read { try $0.assets.rowNumber(of: new[0]) }
            #expect(row == Int64(ids.count + 1))
            return try await catalog.call(CurrentToken()).token
        }
        #expect(next.library == token.library && next.sequence > token.sequence)
        let movedBack = try LibraryMigration.run(.toFile(from: address), folder: library, verifies: true) { _, _ in }
        #expect(movedBack.token == next)
        #expect(try differences(address, file) == [])
        try DatabaseCheck.full(path: file)
        try await CatalogFixture.with(folder) {
            $0.server = nil
        } _: { catalog in
            #expect(try await catalog.call(CurrentToken()).token == next)
            let new = try await catalog.importImages([image(10)])
            let row = try await catalog.service.store.read { try $0.assets.rowNumber(of: new[0]) }
            #expect(row == Int64(ids.count + 2))
        }
    }

    @Test(arguments: [
        "DELETE FROM keyword",
        "UPDATE keyword SET text = text || '!' WHERE position = (SELECT max(position) FROM keyword)",
    ])
    func `the comparison names the tables that differ`(_ change: String) async throws {
        let library = folder.file("library")
        let address = try PostgreSQLServer.shared().address(schema: "migration_compared_\(change.count)")
        try await CatalogFixture.with(folder) {
            $0.server = nil
        } _: { catalog in
            _ = try await fill(catalog)
        }
        _ = try LibraryMigration.run(.toServer(address), folder: library, verifies: true) { _, _ in }
        try PostgreSQLServer.execute(change, at: address)
        #expect(try differences(address, library + "/library.sqlite.moved") == ["keyword"])
    }

    @Test func `a move whose comparison is interrupted leaves no library at the server, and can be repeated`()
        async throws
    {
        let library = folder.file("library")
        let address = try PostgreSQLServer.shared().address(schema: "migration_interrupted")
        try await CatalogFixture.with(folder) {
            $0.server = nil
        } _: { catalog in
            _ = try await fill(catalog)
        }
        // Ends the session that has changed the tables of this schema.
        let interruption = """
            SELECT pg_terminate_backend(pid) FROM pg_locks
            WHERE relation = 'library'::regclass AND pid <> pg_backend_pid()
            """
        #expect(throws: (any Error).self) {
            try LibraryMigration.run(.toServer(address), folder: library, verifies: true) { table, _ in
                if table.hasPrefix("comparing") { try? PostgreSQLServer.execute(interruption, at: address) }
            }
        }
        #expect(try PostgreSQLServer.text("SELECT count(*)::text FROM library", at: address) == "0")
        #expect(FileManager.default.fileExists(atPath: library + "/library.sqlite"))
        let moved = try LibraryMigration.run(.toServer(address), folder: library, verifies: true) { _, _ in }
        #expect(moved.rows > 60)

        // The folder after an interruption between the commit and the renaming.
        try FileManager.default.moveItem(
            atPath: library + "/library.sqlite.moved",
            toPath: library + "/library.sqlite"
        )
        let refused = #expect(throws: StorageError.self) {
            try LibraryMigration.run(.toServer(address), folder: library, verifies: true) { _, _ in }
        }
        #expect(refused?.name == "in_use" && refused?.message.contains("rename library.sqlite") == true)
    }

    /// Runs a program and returns its maximum memory in MiB, which the kernel reports for ended child processes.
    private func peakMemory(_ arguments: [String]) throws -> Int {
        let script = """
            import resource, subprocess, sys
            subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
            print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
            """
        let run = try RunningProgram.run(Needed.program("python3"), ["-c", script] + arguments)
        guard run.status == 0, let peakMemory = Int(run.output.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw FixtureError(description: run.errors + run.output)
        }
        return peakMemory
    }

    @Test func `the memory of a migration does not grow with the library`() async throws {
        let library = folder.file("library")
        let address = try PostgreSQLServer.shared().address(schema: "migration_memory")
        try await CatalogFixture.with(folder) {
            $0.server = address
        } _: { catalog in
            _ = try await catalog.perform([.createList(.init(title: "one"))])
        }
        // 192 MiB of records, as large imports have.
        let rows = """
            INSERT INTO change (sequence, date, library, size, record)
            SELECT 1000 + n, 0, 'library', 131072, decode(repeat('7b7d', 65536), 'hex') FROM generate_series(1, 1536) n
            """
        try PostgreSQLServer.execute(rows, at: address)
        let catalog = TestPaths.executables + "/catalog"
        let arguments = [catalog, "migrate", "--library", library, "--to", "sqlite", "--store", address, "--verify"]
        #expect(try peakMemory(arguments) < 128)
        let other = try PostgreSQLServer.shared().address(schema: "migration_memory_there")
        #expect(try peakMemory([catalog, "migrate", "--library", library, "--to", other, "--verify"]) < 128)
    }

    @Test func `a library that a catalog uses is not moved`() async throws {
        let address = try PostgreSQLServer.shared().address(schema: "migration_in_use")
        try await CatalogFixture.with(folder) {
            $0.server = address
        } _: { catalog in
            try await catalog.perform([.createList(.init(title: "one"))])
            let other = try TemporaryFolder("migration")
            let error = #expect(throws: StorageError.self) {
                try LibraryMigration.run(.toFile(from: address), folder: other.path, verifies: false) { _, _ in }
            }
            #expect(error?.name == "in_use")
            #expect(!FileManager.default.fileExists(atPath: other.file("library.sqlite")))
        }
    }

    @Test func `a library that a catalog has taken over meanwhile is not moved to a file`() async throws {
        let library = folder.file("library")
        let address = try PostgreSQLServer.shared().address(schema: "migration_taken_over")
        try await CatalogFixture.with(folder) {
            $0.server = address
        } _: { catalog in
            _ = try await catalog.perform([.createList(.init(title: "one"))])
        }
        // Enough rows for a progress report.
        let rows = "INSERT INTO counter SELECT 'n' || n, 0 FROM generate_series(1, 5000) n"
        try PostgreSQLServer.execute(rows, at: address)
        let error = #expect(throws: StorageError.self) {
            try LibraryMigration.run(.toFile(from: address), folder: library, verifies: false) { _, _ in
                // No other catalog replaces the writer, however long the copy takes.
                let expiry = try? PostgreSQLServer.text("SELECT renewed::text FROM safelight_writer", at: address)
                #expect(expiry == "infinity")
                // Another catalog takes over like this after the server has ended the connection.
                try? PostgreSQLServer.execute("UPDATE library SET epoch = epoch + 1", at: address)
            }
        }
        #expect(error?.name == "in_use")
        #expect(!FileManager.default.fileExists(atPath: library + "/library.sqlite"))
    }

    /// Statements that change a library to version 21: the head is in the library's row, and outcomes have an index of
    /// their dates.
    private static let version21 = """
        DROP INDEX outcome_unrecorded;
        CREATE INDEX outcome_date ON outcome (date);
        UPDATE outcome SET sequence = (SELECT max(sequence) FROM change);
        UPDATE library SET head = (SELECT max(sequence) FROM change);
        """

    /// Additional statements for PostgreSQL: every commit calls the function.
    private static let version21OnServer = """
        CREATE OR REPLACE FUNCTION require_epoch(own bigint) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE current record;
        BEGIN
            SELECT epoch, head INTO current FROM library FOR SHARE;
            PERFORM pg_notify('safelight_records', current_schema() || ' ' || current.head);
        END $$;
        UPDATE safelight_schema SET version = 21;
        """

    @Test(arguments: [false, true])
    func `a library of version 21 keeps its contents, its head and its outcomes`(isOnServer: Bool) async throws {
        let address = isOnServer ? try PostgreSQLServer.shared().address(schema: "version_21_test") : nil
        let time = ManualClock(0)
        time.advance(by: 1_700_000_000_000_000)
        var environment = CatalogEnvironment()
        environment.now = { time.now }
        environment.clock = time.clock
        environment.elapsed = time.clock
        let create = ChangeRequest.createCollection(.init(ref: "a", title: "Album"))
        let (created, token, everything) = try await CatalogFixture.with(folder, environment: environment) {
            $0.server = address
        } _: { catalog in
            _ = try await fill(catalog)
            let created = try await catalog.perform([create], transaction: "made")
            return (created, try await catalog.call(CurrentToken()).token, try await catalog.everything())
        }
        if let address {
            try PostgreSQLServer.execute(Self.version21 + Self.version21OnServer, at: address)
        } else {
            let queue = try DatabaseQueue(path: folder.file("library/library.sqlite"))
            try await queue.write { database in
                try database.execute(sql: Self.version21)
                try database.execute(sql: "DELETE FROM grdb_migrations WHERE identifier LIKE '22 %'")
            }
            try queue.close()
        }
        try await CatalogFixture.with(folder, environment: environment) {
            $0.server = address
            $0.historyDays = 1
            $0.trimInterval = 0
        } _: { catalog in
            #expect(try await catalog.call(CurrentToken()).token == token)
            #expect(try await catalog.everything().normalized() == everything.normalized())
            #expect(try await catalog.history().map(\.sequence) == Array(1...token.sequence))
            #expect(try await catalog.perform([create], transaction: "made").json == created.json)
            let head = try await catalog.service.store.read { reader in
                try reader.database.first("SELECT head FROM library") { $0.int64(0) }
            }
            #expect(head == token.sequence)
            time.advance(by: 48 * 3_600_000_000)
            let next = try await catalog.perform([.createList(.init(title: "next"))])
            #expect(next.sequence == token.sequence + 1)
            // It is not known which of the earlier outcomes have records, so all expire by their dates.
            #expect(try await catalog.perform([create], transaction: "made").sequence == next.sequence + 1)
            let (stored, unrecorded) = try await catalog.service.store.read { reader in
                (
                    try reader.database.first("SELECT count(*) FROM outcome") { $0.int(0) },
                    try reader.database.first("SELECT count(*) FROM outcome WHERE sequence = 0") { $0.int(0) }
                )
            }
            #expect(stored == 1 && unrecorded == 0)
        }
    }
}
