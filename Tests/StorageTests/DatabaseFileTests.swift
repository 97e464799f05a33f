import Foundation
import GRDB
import Glibc
import TestSupport
import Testing

@testable import Storage

@Suite(.timeLimit(.minutes(5)))
struct DatabaseFileTests {
    let folder: TemporaryFolder
    var path: String { folder.path + "/library.sqlite" }

    init() throws { folder = try TemporaryFolder("storage") }

    private func migrator(_ versions: Int = 1) -> DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        }
        if versions > 1 {
            migrator.registerMigration("2") { database in
                try database.execute(sql: "ALTER TABLE note ADD COLUMN size INTEGER NOT NULL DEFAULT 0")
            }
        }
        return migrator
    }

    @Test func `the writer uses WAL and synchronous FULL, and readers neither write nor checkpoint`() async throws {
        let file = try DatabaseFile(path: path, migrator: migrator())
        @Sendable func pragmas(_ database: Database) throws -> [String] {
            try ["journal_mode", "synchronous", "wal_autocheckpoint", "foreign_keys", "trusted_schema", "mmap_size"].map
            {
                try String.fetchOne(database, sql: "PRAGMA \($0)") ?? ""
            }
        }
        #expect(try await file.pool.writeWithoutTransaction(pragmas) == ["wal", "2", "0", "1", "0", "0"])
        let reader = try await file.pool.unsafeRead(pragmas)
        #expect(reader[0] == "wal")
        #expect(Array(reader[2...]) == ["0", "1", "0", "0"])
        #expect(throws: (any Error).self) {
            try file.pool.unsafeRead { try $0.execute(sql: "INSERT INTO note (text) VALUES ('x')") }
        }
        #expect(throws: (any Error).self) {
            try file.pool.unsafeRead { try $0.checkpoint(.truncate) }
        }
        try file.close()
    }

    @Test func `the log is written into the database between commits, and by a commit only if it is very large`() throws
    {
        var options = DatabaseFile.Options()
        options.checkpointPages = 20
        let file = try DatabaseFile(path: path, migrator: migrator(), options: options)
        let empty = try #require(try size())
        func size() throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        }
        func write(pages: Int) throws {
            try file.pool.write { database in
                let text = String(repeating: "x", count: pages * 4096)
                try database.execute(sql: "INSERT INTO note (text) VALUES (?)", arguments: [text])
            }
        }
        try write(pages: 20)
        #expect(try size() == empty)
        try file.checkpointIfDue()
        let checkpointed = try #require(try size())
        #expect(checkpointed >= empty + 20 * 4096)

        // The log is restarted, and is small.
        try write(pages: 1)
        try file.checkpointIfDue()
        #expect(try size() == checkpointed)

        try write(pages: 100)
        #expect(try size() ?? 0 >= checkpointed + 100 * 4096)
        try file.close()
    }

    @Test func `a log that cannot be written into the database completely is an error`() throws {
        var options = DatabaseFile.Options()
        options.busySeconds = 0.01
        let file = try DatabaseFile(path: path, migrator: migrator(), options: options)
        let insert: @Sendable (Database) throws -> Void = {
            try $0.execute(sql: "INSERT INTO note (text) VALUES ('x')")
        }
        try file.pool.write(insert)
        let error = #expect(throws: StorageError.self) {
            // The snapshot of a reader needs the log.
            try file.pool.read { database in
                _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM note")
                try file.pool.write(insert)
                try file.checkpoint()
            }
        }
        #expect(error?.name == "busy")
        try file.checkpoint()
        let log = try FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int
        #expect(log == 0)
        try file.close()
    }

    @Test
    func `a small log is not checkpointed, and the check does not wait for the connection that writes`() async throws {
        let file = try DatabaseFile(path: path, migrator: migrator(), options: .init())
        let gate = DispatchSemaphore(value: 0)
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "writer").async {
                file.pool.writeWithoutTransaction { _ in
                    continuation.resume()
                    gate.wait()
                }
            }
        }
        let checked = DispatchSemaphore(value: 0)
        DispatchQueue(label: "checkpoint").async {
            try? file.checkpointIfDue()
            checked.signal()
        }
        let isDone = await withCheckedContinuation { continuation in
            DispatchQueue(label: "wait").async {
                continuation.resume(returning: checked.wait(timeout: .now() + 5) == .success)
            }
        }
        gate.signal()
        #expect(isDone)
        try file.close()
    }

    @Test func `one half of the page cache is the writer's, the other half is shared by the readers`() async throws {
        var options = DatabaseFile.Options()
        options.pageCacheBytes = 4 << 20
        options.readers = 2
        let file = try DatabaseFile(path: path, migrator: migrator(), options: options)
        // A negative number is in KiB (sqlite.org/pragma.html).
        @Sendable func cacheSize(_ database: Database) throws -> Int? {
            try Int.fetchOne(database, sql: "PRAGMA cache_size")
        }
        #expect(try await file.pool.writeWithoutTransaction(cacheSize) == -2048)
        #expect(try await file.pool.unsafeRead(cacheSize) == -1024)
        try file.close()
    }

    @Test func `written rows remain after closing, and a newer schema is refused`() async throws {
        let file = try DatabaseFile(path: path, migrator: migrator(2))
        try await file.write { try $0.execute(sql: "INSERT INTO note (text) VALUES ('hello')") }
        try file.close()
        var options = DatabaseFile.Options()
        options.checkSeconds = 60
        let again = try DatabaseFile(path: path, migrator: migrator(2), options: options)
        #expect(try await again.read { try String.fetchAll($0, sql: "SELECT text FROM note") } == ["hello"])
        try again.close()
        let error = #expect(throws: StorageError.self) { try DatabaseFile(path: path, migrator: migrator(1)) }
        #expect(error?.message.contains("newer version") == true)
    }

    @Test func `a commit of many pages is one write to the log, and readers see it`() async throws {
        let file = try DatabaseFile(path: path, migrator: migrator())
        /// Returns the number of write calls of this thread.
        @Sendable func writes() throws -> Int {
            let bytes = try Descriptor(opening: "/proc/thread-self/io", O_RDONLY).read(count: 4096, at: 0)
            let text = String(decoding: bytes, as: UTF8.self)
            let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("syscw:") })
            return try #require(Int(line.dropFirst(7)))
        }
        let counts = try await file.pool.writeWithoutTransaction { database in
            try (1...20).map { _ in
                let before = try writes()
                try database.execute(sql: "BEGIN IMMEDIATE")
                for _ in 0..<30 {
                    try database.execute(sql: "INSERT INTO note (text) VALUES (hex(randomblob(1000)))")
                }
                try database.execute(sql: "COMMIT")
                return try writes() - before
            }
        }
        // Each commit has more than ten frames. The first one also writes the header of the log.
        #expect(counts.dropFirst().allSatisfy { $0 <= 2 }, "\(counts)")
        #expect(try await file.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM note") } == 600)
        // A transaction with more frames than one write has; they are read before and after its commit.
        let count = try await file.pool.writeWithoutTransaction { database in
            var count = 0
            try database.inTransaction(.immediate) {
                for _ in 0..<2000 {
                    try database.execute(sql: "INSERT INTO note (text) VALUES (hex(randomblob(10000)))")
                }
                count = try Int.fetchOne(database, sql: "SELECT count(*) FROM note WHERE length(text) > 1") ?? 0
                return .commit
            }
            return count
        }
        #expect(count == 2600)
        #expect(try await file.read { try Int.fetchOne($0, sql: "SELECT sum(length(text)) FROM note") } == 41_200_000)
        try file.close()
        var options = DatabaseFile.Options()
        options.checkSeconds = 60
        let again = try DatabaseFile(path: path, migrator: migrator(), options: options)
        #expect(again.check == .sound)
        #expect(try await again.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM note") } == 2600)
        try again.close()
    }

    @Test func `a reader sees one snapshot while the writer continues`() async throws {
        let file = try DatabaseFile(path: path, migrator: migrator())
        let counts = try await file.read { database in
            let before = try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM note")
            try file.pool.writeWithoutTransaction { try $0.execute(sql: "INSERT INTO note (text) VALUES ('x')") }
            return [before, try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM note")]
        }
        #expect(counts == [0, 0])
        #expect(try await file.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM note") } == 1)
    }

    @Test func `a log that an earlier process has left is synced before it is read`() throws {
        try DatabaseFile(path: path, migrator: migrator()).close()
        unlink(path + "-wal")
        // The system reports that it cannot sync this device.
        #expect(symlink("/dev/null", path + "-wal") == 0)
        let error = #expect(throws: StorageError.self) { try DatabaseFile(path: path, migrator: migrator()) }
        #expect(error?.message.contains("fdatasync") == true, "\(String(describing: error))")
        unlink(path + "-wal")
        try DatabaseFile(path: path, migrator: migrator()).close()
    }

    @Test func `a copy that fails leaves no file`() throws {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: "CREATE TABLE album (id INTEGER PRIMARY KEY)")
            try database.execute(sql: "CREATE TABLE photo (album INTEGER REFERENCES album)")
        }
        let file = try DatabaseFile(path: path, migrator: migrator)
        let copy = folder.path + "/copy"
        try file.copy(to: copy)
        #expect(try DirectoryOperations.names(in: folder.path).filter { $0.hasPrefix("copy") } == ["copy"])
        unlink(copy)
        try file.pool.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA foreign_keys = OFF")
            try database.execute(sql: "INSERT INTO photo VALUES (7)")
        }
        let error = #expect(throws: StorageError.self) { try file.copy(to: copy) }
        #expect(error?.name == "corrupt")
        #expect(try DirectoryOperations.names(in: folder.path).filter { $0.hasPrefix("copy") } == [])
        try file.close()
    }

    @Test func `a file that is not a database is reported as corrupt`() {
        folder.overwrite("library.sqlite", [UInt8](repeating: 0x41, count: 8192), at: 0)
        let error = #expect(throws: StorageError.self) { try DatabaseFile(path: path, migrator: migrator()) }
        #expect(error?.name == "corrupt")
    }

    @Test func `a damaged page is found by the check at start`() async throws {
        let file = try DatabaseFile(path: path, migrator: migrator())
        try await file.write { database in
            for _ in 0..<500 { try database.execute(sql: "INSERT INTO note (text) VALUES (hex(randomblob(200)))") }
        }
        try file.close()
        folder.overwrite("library.sqlite", [UInt8](repeating: 0xFF, count: 4096), at: 4096 * 5)
        var options = DatabaseFile.Options()
        options.checkSeconds = 60
        let error = #expect(throws: StorageError.self) {
            try DatabaseFile(path: path, migrator: migrator(), options: options)
        }
        #expect(error?.name == "corrupt")
    }

    @Test func `a full database refuses the write, keeps its rows and continues when there is space`() async throws {
        let file = try DatabaseFile(path: path, migrator: migrator())
        try await file.write { try $0.execute(sql: "INSERT INTO note (text) VALUES ('kept')") }
        let pages = try await file.pool.writeWithoutTransaction { database in
            let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            try database.execute(sql: "PRAGMA max_page_count = \(pages)")
            return pages
        }
        #expect(pages > 0)
        let insert: @Sendable (Database) throws -> Void = { database in
            for _ in 0..<200 { try database.execute(sql: "INSERT INTO note (text) VALUES (hex(randomblob(500)))") }
        }
        let error = await #expect(throws: StorageError.self) { try await file.write(insert) }
        #expect(error?.name == "not_enough_space")
        #expect(try await file.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM note") } == 1)
        try await file.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 100000") }
        try await file.write(insert)
        #expect(try await file.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM note") } == 201)
        #expect(try await file.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    }

    @Test func `errors of the caller are thrown unchanged`() async throws {
        struct Mine: Error {}
        let file = try DatabaseFile(path: path, migrator: migrator())
        await #expect(throws: Mine.self) { try await file.write { _ in throw Mine() } }
        await #expect(throws: DatabaseError.self) {
            try await file.write { try $0.execute(sql: "INSERT INTO note (text) VALUES (NULL)") }
        }
    }
}
