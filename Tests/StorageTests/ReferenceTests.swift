import GRDB
import GRDBSQLite
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Storage

/// Tests of referenced files, and of adopting bytes from another store.
@Suite(.timeLimit(.minutes(1)))
struct ReferenceTests {
    private let folder: TemporaryFolder
    private let store: ResourceStore

    init() throws {
        folder = try TemporaryFolder("storage")
        store = try ResourceStore(root: folder.path + "/resources")
    }

    private func write(_ name: String, _ bytes: [UInt8]) -> String {
        let path = "\(folder.path)/\(name)"
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        _ = Glibc.write(file, bytes, bytes.count)
        close(file)
        return path
    }

    private func refer(_ path: String) throws -> StoredResource {
        try store.refer(to: DurableFile.open(path), at: path, limit: 1 << 20)
    }

    private func setTime(_ path: String, _ seconds: Int) {
        var times = [timespec(tv_sec: seconds, tv_nsec: 7), timespec(tv_sec: seconds, tv_nsec: 7)]
        utimensat(AT_FDCWD, path, &times, 0)
    }

    @Test func `a referenced file is read in place, and its bytes are not copied`() throws {
        let path = write("a b\nc.jpg", [1, 2, 3])
        let stored = try refer(path)
        #expect(stored.digest == ResourceDigest(of: [1, 2, 3]))
        #expect(!store.contains(stored.digest))
        #expect(try store.readAll(stored.digest, limit: 10) == [1, 2, 3])
        #expect(try store.reference(of: stored.digest)?.path == path)
        #expect(try refer(path).wasPresent)
        // A read-only store of another process can read it too.
        let reader = try ResourceStore(root: store.root, isReadOnly: true)
        #expect(try reader.open(stored.digest).readAll(limit: 10) == [1, 2, 3])
    }

    @Test(arguments: ["size", "time", "replaced", "missing", "folder"])
    func `a referenced file that has changed is never served`(change: String) throws {
        let path = write("a.jpg", [1, 2, 3])
        setTime(path, 1_000_000)
        let digest = try refer(path).digest
        #expect(try store.readAll(digest, limit: 10) == [1, 2, 3])
        switch change {
        case "size":
            _ = write("a.jpg", [1, 2, 3, 4])
            setTime(path, 1_000_000)
        case "time":
            _ = write("a.jpg", [1, 2, 4])
        case "replaced":
            _ = write("b.jpg", [1, 2, 4])
            setTime("\(folder.path)/b.jpg", 1_000_000)
            rename("\(folder.path)/b.jpg", path)
        case "missing": unlink(path)
        default:
            unlink(path)
            mkdir(path, 0o700)
        }
        let error = #expect(throws: StorageError.self) { try store.open(digest) }
        #expect(error?.name == (change == "missing" || change == "folder" ? "not_found" : "resource_changed"))
    }

    @Test func `changed bytes with the same size and time are detected when they are read completely`() throws {
        let path = write("a.jpg", [1, 2, 3])
        setTime(path, 1_000_000)
        let digest = try refer(path).digest
        let file = open(path, O_WRONLY)
        pwrite(file, [9], 1, 0)
        close(file)
        setTime(path, 1_000_000)
        let error = #expect(throws: StorageError.self) { try store.readAll(digest, limit: 10) }
        #expect(error?.name == "resource_changed")
    }

    @Test func `a reference that cannot be parsed is reported as corrupt`() throws {
        let digest = try refer(write("a.jpg", [1, 2, 3])).digest
        let file = open(store.referencePath(of: digest), O_WRONLY | O_TRUNC)
        close(file)
        let error = #expect(throws: StorageError.self) { try store.open(digest) }
        #expect(error?.name == "corrupt")
    }

    @Test func `a reference that exists already is durable when it is acknowledged again`() throws {
        let path = write("a.jpg", [1, 2, 3])
        let digest = try refer(path).digest
        let steps = Mutex<[ResourceStore.Step]>([])
        let again = try ResourceStore(root: store.root, isReadOnly: false) { step in
            steps.withLock { $0.append(step) }
        }
        #expect(try again.refer(to: DurableFile.open(path), at: path, limit: 1 << 20).wasPresent)
        let folder = String(again.path(of: digest).dropLast(65))
        #expect(steps.withLock { $0 }.last == .syncFolder(folder))
        try again.makeAllDurable()
        #expect(steps.withLock { $0 }.last == .syncFilesystem(store.root))
    }

    @Test func `bytes are adopted by a link, checked, and not adopted twice`() throws {
        let target = try ResourceStore(root: folder.path + "/backup")
        let digest = try store.put(bytes: [1, 2, 3]).digest
        #expect(try target.adopt(digest, from: store) == .linked)
        #expect(try target.adopt(digest, from: store) == .present)
        var (first, second) = (stat(), stat())
        stat(store.path(of: digest), &first)
        stat(target.path(of: digest), &second)
        #expect(first.st_ino == second.st_ino)
        #expect(try DirectoryOperations.names(in: target.incoming).isEmpty)

        let reference = try refer(write("r.jpg", [4, 5])).digest
        #expect(try target.adopt(reference, from: store) == .referenced)
        #expect(try target.reference(of: reference) == store.reference(of: reference))

        let damaged = try store.put(bytes: [7, 8, 9]).digest
        chmod(store.path(of: damaged), 0o600)
        let file = open(store.path(of: damaged), O_WRONLY)
        pwrite(file, [0], 1, 0)
        close(file)
        let error = #expect(throws: StorageError.self) { try target.adopt(damaged, from: store) }
        #expect(error?.name == "resource_changed")
        #expect(!target.contains(damaged))
    }

    @Test func `nothing is removed while removals are suspended`() throws {
        let digest = try store.put(bytes: [1]).digest
        store.suspendRemovals()
        #expect(try store.remove(digest) == false)
        store.resumeRemovals()
        #expect(try store.remove(digest))
    }

    @Test func `bytes already stored are not synced again`() throws {
        let log = Steps()
        let watched = try ResourceStore(root: folder.path + "/watched", isReadOnly: false) {
            (step) throws(StorageError) in
            log.add(step)
        }
        let digest = try watched.put(bytes: [1, 2]).digest
        let synced = log.syncs
        let again = try watched.put(bytes: [1, 2])
        #expect(again.wasPresent && again.digest == digest)
        #expect(log.syncs == synced)
        #expect(try DirectoryOperations.names(in: watched.incoming).isEmpty)
    }
}

private final class Steps: Sendable {
    private let steps = Mutex<[ResourceStore.Step]>([])
    func add(_ step: ResourceStore.Step) { steps.withLock { $0.append(step) } }
    var syncs: Int {
        steps.withLock { steps in
            steps.count { step in if case .syncFile = step { true } else { false } }
        }
    }
}

/// Tests of the integrity checks of a database at start and after a copy.
@Suite(.timeLimit(.minutes(1)))
struct DatabaseCheckTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("storage") }

    private func open(_ path: String, seconds: Double) throws -> DatabaseFile {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { try $0.execute(sql: "CREATE TABLE note (text TEXT)") }
        var options = DatabaseFile.Options()
        options.checkSeconds = seconds
        return try DatabaseFile(path: path, migrator: migrator, options: options)
    }

    @Test func `the check at start ends at its time limit and reports it`() throws {
        let path = folder.path + "/db"
        let file = try open(path, seconds: 60)
        #expect(file.check == .sound)
        try file.pool.write { database in
            try database.execute(
                sql: """
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
                    INSERT INTO note SELECT hex(randomblob(100)) FROM n
                    """
            )
            try database.execute(sql: "CREATE INDEX note_text ON note (text)")
        }
        try file.close()
        let limited = try open(path, seconds: 0.001)
        #expect(limited.check == .unfinished)
        // Statements after the check are not interrupted.
        #expect(try limited.pool.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM note") } == 200_000)
        try limited.close()
        #expect(try open(path, seconds: 0).check == .skipped)
    }

    @Test func `the pages that the check has read do not stay in memory`() throws {
        let path = folder.path + "/db"
        let file = try open(path, seconds: 0)
        try file.pool.write { database in
            for _ in 0..<200 { try database.execute(sql: "INSERT INTO note VALUES (hex(randomblob(20000)))") }
        }
        try file.close()
        let checked = try open(path, seconds: 60)
        #expect(checked.check == .sound)
        let cached = checked.pool.writeWithoutTransaction { database -> Int32 in
            var bytes: Int32 = 0
            var highest: Int32 = 0
            sqlite3_db_status(database.sqliteConnection, SQLITE_DBSTATUS_CACHE_USED, &bytes, &highest, 0)
            return bytes
        }
        #expect(cached < 1 << 20)
        try checked.close()
    }

    @Test func `a database in use is checked on another connection, and its damage is found`() async throws {
        let path = folder.path + "/db"
        let file = try open(path, seconds: 0)
        try await file.pool.write { database in
            for _ in 0..<200 { try database.execute(sql: "INSERT INTO note VALUES (hex(randomblob(500)))") }
        }
        #expect(try await DatabaseCheck.quick(path: path, seconds: 60) == .sound)
        let cancelled = Task { try await DatabaseCheck.quick(path: path, seconds: 60) }
        cancelled.cancel()
        let outcome = try await cancelled.value
        #expect(outcome == .sound || outcome == .unfinished)
        try file.close()
        let again = try open(path, seconds: 0)
        let bytes = [UInt8](repeating: 0x5A, count: 4096)
        let raw = Glibc.open(path, O_WRONLY)
        pwrite(raw, bytes, bytes.count, 4 * 4096)
        close(raw)
        let damage = await #expect(throws: StorageError.self) { try await DatabaseCheck.quick(path: path, seconds: 60) }
        #expect(damage?.name == "corrupt")
        try? again.close()
    }

    @Test func `a copy is a snapshot in a single file while others write`() async throws {
        let file = try open(folder.path + "/db", seconds: 0)
        let writing = Task {
            // Each transaction adds two rows: an odd count would be a partial transaction.
            for _ in 0..<300 {
                try await file.write {
                    try $0.execute(sql: "INSERT INTO note VALUES (hex(randomblob(500)))")
                    try $0.execute(sql: "INSERT INTO note VALUES (hex(randomblob(500)))")
                }
            }
        }
        for index in 0..<5 {
            let copy = folder.path + "/copy\(index)"
            try file.copy(to: copy)
            let names = try DirectoryOperations.names(in: folder.path).filter { $0.hasPrefix("copy\(index)") }
            #expect(names == ["copy\(index)"])
            let count = try await DatabaseQueue(path: copy).read {
                try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM note")
            }
            #expect((count ?? 1) % 2 == 0)
        }
        try await writing.value
    }

    @Test func `a newer database and a damaged one are refused with advice`() throws {
        let path = folder.path + "/db"
        let file = try open(path, seconds: 0)
        try file.pool.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9 from the future')") }
        try file.close()
        let newer = #expect(throws: StorageError.self) { try open(path, seconds: 0) }
        #expect(newer?.name == "newer_version")
        #expect(newer?.message.contains("run that version") == true)

        let bytes = [UInt8](repeating: 0x5A, count: 4096)
        let raw = Glibc.open(path, O_WRONLY)
        pwrite(raw, bytes, bytes.count, 4096)
        close(raw)
        let damaged = #expect(throws: StorageError.self) { try open(path, seconds: 60) }
        #expect(damaged?.name == "corrupt")
        #expect(damaged?.message.contains("safelight restore") == true)
        #expect(throws: StorageError.self) { try DatabaseCheck.full(path: path) }
    }
}
