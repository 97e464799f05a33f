import GRDB
import Glibc
import TestSupport
import Testing

@testable import Storage

/// A disk of 2 MiB in a folder of its own.
private final class DiskFolder: Sendable {
    let folder: TemporaryFolder
    private let disk: SmallDisk

    init() throws {
        folder = try TemporaryFolder("storage")
        disk = try SmallDisk(folder.path, mebibytes: 2)
    }

    deinit { disk.unmount() }

    /// Fills the disk completely; returns the path of the file to remove.
    func fill() -> String {
        let path = folder.path + "/filler"
        let file = open(path, O_WRONLY | O_CREAT, 0o600)
        let bytes = [UInt8](repeating: 1, count: 4096)
        while write(file, bytes, bytes.count) > 0 {}
        close(file)
        return path
    }
}

@Suite(.timeLimit(.minutes(5)))
struct FullDiskTests {
    @Test func `a full disk refuses bytes, leaves no partial file, and accepts them when there is space`() throws {
        let disk = try DiskFolder()
        let store = try ResourceStore(root: disk.folder.path + "/resources")
        let stored = try store.put(bytes: [1, 2, 3])
        let error = #expect(throws: StorageError.self) { try store.put(bytes: [UInt8](repeating: 7, count: 4 << 20)) }
        #expect(error?.name == "not_enough_space")
        #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
        let filler = disk.fill()
        #expect(throws: StorageError.self) { try store.put(bytes: [UInt8](repeating: 8, count: 5000)) }
        #expect(try store.readAll(stored.digest, limit: 10) == [1, 2, 3])
        unlink(filler)
        #expect(try store.put(bytes: [UInt8](repeating: 8, count: 5000)).wasPresent == false)
    }

    @Test func `a log that does not fit into the database is an error, and no row is lost`() async throws {
        let disk = try DiskFolder()
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { try $0.execute(sql: "CREATE TABLE note (text TEXT)") }
        let file = try DatabaseFile(path: disk.folder.path + "/db", migrator: migrator)
        try await file.write { database in
            for _ in 0..<50 { try database.execute(sql: "INSERT INTO note VALUES (hex(randomblob(1000)))") }
        }
        let filler = disk.fill()
        let error = #expect(throws: StorageError.self) { try file.checkpoint() }
        #expect(error?.name == "not_enough_space")
        unlink(filler)
        try file.checkpoint()
        #expect(try await file.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM note") } == 50)
        try file.close()
    }

    @Test func `a copy that does not fit is refused, and takes no space`() async throws {
        let disk = try DiskFolder()
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { try $0.execute(sql: "CREATE TABLE note (text TEXT)") }
        let file = try DatabaseFile(path: disk.folder.path + "/db", migrator: migrator)
        try await file.write { database in
            for _ in 0..<100 { try database.execute(sql: "INSERT INTO note VALUES (hex(randomblob(1000)))") }
        }
        let filler = disk.fill()
        // This leaves less space than the database needs.
        let size = try Int(DirectoryOperations.status(filler).st_size)
        #expect(truncate(filler, size - 100_000) == 0)
        let error = #expect(throws: StorageError.self) { try file.copy(to: disk.folder.path + "/copy") }
        #expect(error?.name == "not_enough_space")
        #expect(try DirectoryOperations.names(in: disk.folder.path).filter { $0.hasPrefix("copy") } == [])
        try await file.write { try $0.execute(sql: "INSERT INTO note VALUES ('one more')") }
        unlink(filler)
        try file.copy(to: disk.folder.path + "/copy")
        try file.close()
    }

    @Test func `the head can be stored on a full disk`() throws {
        let disk = try DiskFolder()
        let head = try HeadFile(path: disk.folder.path + "/head")
        _ = disk.fill()
        try head.store(library: "lib", sequence: 1)
        try head.store(library: "lib", sequence: 2)
        #expect(try HeadFile(path: head.path).load() == .init(library: "lib", sequence: 2))
    }

    @Test func `a commit on a full disk is refused, reads continue, and later commits succeed`() async throws {
        let disk = try DiskFolder()
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { try $0.execute(sql: "CREATE TABLE note (text TEXT)") }
        let file = try DatabaseFile(path: disk.folder.path + "/db", migrator: migrator)
        let insert: @Sendable (Database) throws -> Void = { database in
            for _ in 0..<50 { try database.execute(sql: "INSERT INTO note VALUES (hex(randomblob(500)))") }
        }
        try await file.write(insert)
        let filler = disk.fill()
        for _ in 0..<5 {
            let error = await #expect(throws: StorageError.self) { try await file.write(insert) }
            #expect(error?.name == "not_enough_space")
            #expect(try await file.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM note") } == 50)
        }
        unlink(filler)
        try await file.write(insert)
        #expect(try await file.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM note") } == 100)
        #expect(try await file.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
        try file.close()
    }
}
