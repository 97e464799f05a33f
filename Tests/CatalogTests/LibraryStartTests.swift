import Foundation
import Storage
import TestSupport
import Testing

@testable import Catalog

/// A library begins only where none was: a lost database is not taken for a new library, which would have the files of
/// the lost one removed.
@Suite(.timeLimit(.minutes(1)))
struct LibraryStartTests {
    private func refuses(_ folder: TemporaryFolder) -> Bool {
        do {
            _ = try StoreFixture(at: folder.path)
            return false
        } catch StorageError.corrupt(let message) {
            return message.contains("restore a backup") && message.contains("--store")
        } catch {
            return false
        }
    }

    @Test func `no library begins in a folder with stored files`() throws {
        let folder = try TemporaryFolder("files")
        let name = String(repeating: "ab", count: 32)
        try folder.write([1, 2, 3], to: "resources/ab/ab/\(name)")
        #expect(refuses(folder))
        #expect(FileManager.default.fileExists(atPath: folder.file("resources/ab/ab/\(name)")))
        // Empty parts of the store are not a library.
        try FileManager.default.removeItem(atPath: folder.file("resources/ab/ab/\(name)"))
        #expect(try StoreFixture(at: folder.path).store.startSequence == 0)
    }

    @Test(.onlySQLite)
    func `no library begins where the database is empty and a head file is there`() throws {
        let folder = try TemporaryFolder("head")
        _ = try StoreFixture(at: folder.path)
        for ending in ["-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: folder.file("library.sqlite") + ending)
        }
        try folder.write([], to: "library.sqlite")
        #expect(refuses(folder))
        // Also at the second attempt.
        #expect(refuses(folder))
        try FileManager.default.removeItem(atPath: folder.file("head"))
        #expect(try StoreFixture(at: folder.path).store.startSequence == 0)
    }
}
