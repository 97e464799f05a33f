import Contracts
import Foundation
import Logging
import PhotoModel
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

    @Test func `a database of another history keeps the files that are there`() async throws {
        let (folder, other) = (try TemporaryFolder("first"), try TemporaryFolder("second"))
        let server = try PostgreSQLServer.shared().address(library: folder.path)
        func open(_ path: String) throws -> LibraryStore {
            try LibraryStore(
                folder: path,
                server: server,
                now: 1_700_000_000_000_000,
                newHistory: String(repeating: "1", count: 32),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        }
        func kept(_ store: LibraryStore) async throws -> Int {
            try await store.read { try $0.counter(ResourceCollector.keptCounter) }
        }
        let first = try open(folder.path)
        #expect(try await kept(first) == 0)
        try first.close()
        try other.write([1, 2, 3], to: "resources/ab/ab/\(String(repeating: "ab", count: 32))")
        try HeadFile(path: other.file("head")).store(library: String(repeating: "2", count: 32), sequence: 5)
        let second = try open(other.path)
        #expect(try await kept(second) == 1_700_000_000_000_000)
        try second.close()
    }

    @Test func `a standby keeps the number of a change that it has acknowledged and the server does not have`()
        async throws
    {
        let (folder, other) = (try TemporaryFolder("writer"), try TemporaryFolder("standby"))
        let server = try PostgreSQLServer.shared().address(library: folder.path)
        try await CatalogFixture.with(folder) {
            $0.server = server
        } _: { writer in
            let first = try await writer.perform([.createCollection(.init(title: "one"))])
            try await CatalogFixture.with(other) {
                $0.server = server
            } _: { _ in
            }
            let shown = HeadFile.Head(library: first.token.library, sequence: first.sequence + 100)
            try HeadFile(path: other.file("library/head")).store(library: shown.library, sequence: shown.sequence)
            try await CatalogFixture.with(other) {
                $0.server = server
            } _: { standby in
                let second = try await writer.perform([.createCollection(.init(title: "two"))])
                // The standby has read the record.
                #expect(await standby.service.tail.wait(for: second.sequence))
                #expect(try standby.service.store.headFile.load() == shown)
            }
        }
    }
}
