import Basics
import Contracts
import Foundation
import Logging
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests that a library is created only in a folder without one: a new library in a folder with a lost database would
/// remove the files of the lost library.
@Suite(.timeLimit(.minutes(1)))
struct LibraryStartTests {
    private func isRefused(_ folder: TemporaryFolder) -> Bool {
        do {
            _ = try StoreFixture(at: folder.path)
            return false
        } catch StorageError.corrupt(let message) {
            return message.contains("restore a backup") && message.contains("--store")
        } catch {
            return false
        }
    }

    @Test func `no library is created in a folder with stored files`() throws {
        let folder = try TemporaryFolder("files")
        let name = String(repeating: "ab", count: 32)
        try folder.write([1, 2, 3], to: "resources/ab/ab/\(name)")
        #expect(isRefused(folder))
        #expect(FileManager.default.fileExists(atPath: folder.file("resources/ab/ab/\(name)")))
        // Empty parts of the store are not a library.
        try FileManager.default.removeItem(atPath: folder.file("resources/ab/ab/\(name)"))
        #expect(try StoreFixture(at: folder.path).store.startSequence == 0)
    }

    @Test(.onlySQLite)
    func `no library is created if the database is empty and a head file exists`() throws {
        let folder = try TemporaryFolder("head")
        _ = try StoreFixture(at: folder.path)
        for ending in ["-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: folder.file("library.sqlite") + ending)
        }
        try folder.write([], to: "library.sqlite")
        #expect(isRefused(folder))
        // The second attempt is refused too.
        #expect(isRefused(folder))
        try FileManager.default.removeItem(atPath: folder.file("head"))
        #expect(try StoreFixture(at: folder.path).store.startSequence == 0)
    }

    @Test func `a start with a database of another history keeps the existing files`() async throws {
        let (folder, other) = (try TemporaryFolder("first"), try TemporaryFolder("second"))
        let server = try PostgreSQLServer.shared().address(library: folder.path)
        func open(_ path: String) throws -> LibraryStore {
            try LibraryStore(
                folder: path,
                server: server,
                now: 1_700_000_000_000_000,
                newHistoryID: String(repeating: "1", count: 32),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        }
        func keptDate(_ store: LibraryStore) async throws -> Int {
            try await store.read { try $0.counter(ResourceCollector.keptCounter) }
        }
        let first = try open(folder.path)
        #expect(try await keptDate(first) == 0)
        try first.close()
        try other.write([1, 2, 3], to: "resources/ab/ab/\(String(repeating: "ab", count: 32))")
        try HeadFile(path: other.file("head")).store(library: String(repeating: "2", count: 32), sequence: 5)
        let second = try open(other.path)
        #expect(try await keptDate(second) == 1_700_000_000_000_000)
        try second.close()
    }

    @Test(.onlySQLite)
    func `files that an older database does not have are kept after a start with a clock that is behind`() async throws
    {
        let folder = try TemporaryFolder("clock")
        let path = folder.file("library/library.sqlite")
        try await CatalogFixture.with(folder) { _ = try await $0.importImages([image(1)]) }
        let older = try Data(contentsOf: URL(filePath: path))
        try await CatalogFixture.with(folder) { _ = try await $0.importImages([image(2)]) }
        let lost = ResourceDigest(of: image(2))
        for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + ending) }
        try older.write(to: URL(filePath: path))

        let time = WallClock.nowMicroseconds() - 3_600_000_000
        var environment = CatalogEnvironment()
        environment.now = { time }
        try await CatalogFixture.with(folder, environment: environment) {
            $0.collectAfterSeconds = 1
        } _: { catalog in
            let (resources, store) = (catalog.service.resources, catalog.service.store)
            // In two rounds, so that the collector has seen the lost file without a reference as long as a removed one.
            for number in UInt8(1)...2 {
                let other = try resources.put(bytes: [number]).digest
                while resources.contains(other) { try await Task.sleep(for: .milliseconds(20)) }
            }
            #expect(resources.contains(lost))
            #expect(try await catalog.call(CollectLibrary()).count == 1)
            #expect(!resources.contains(lost))
            #expect(try await store.read { try $0.counter(ResourceCollector.keptCounter) } == 0)
        }
    }

    @Test(.onlySQLite)
    func `after a loss of changes the files of assets that are deleted later are removed automatically`() async throws {
        let folder = try TemporaryFolder("later")
        let path = folder.file("library/library.sqlite")
        let known = try await CatalogFixture.with(folder) { try await $0.importImages([image(1)])[0] }
        let older = try Data(contentsOf: URL(filePath: path))
        try await CatalogFixture.with(folder) { _ = try await $0.importImages([image(2), image(3)]) }
        for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + ending) }
        try older.write(to: URL(filePath: path))

        let (deleted, lost, again) = (
            ResourceDigest(of: image(1)), ResourceDigest(of: image(2)), ResourceDigest(of: image(3))
        )
        try await CatalogFixture.with(folder) {
            $0.collectAfterSeconds = 1
        } _: { catalog in
            let resources = catalog.service.resources
            while resources.notedLoss() == nil { try await Task.sleep(for: .milliseconds(20)) }
            try await catalog.perform([.deleteAssets(.init(ids: [known]))])
            while resources.contains(deleted) { try await Task.sleep(for: .milliseconds(20)) }
            #expect(resources.contains(lost) && resources.contains(again))
        }
        // The marks exist after a restart too.
        try await CatalogFixture.with(folder) {
            $0.collectAfterSeconds = 1
        } _: { catalog in
            let resources = catalog.service.resources
            func isKept() throws -> Bool? { try resources.digests(in: String(again.text.prefix(2)))[again]?.isKept }
            let id = try await catalog.importImages([image(3)])[0]
            while try isKept() == true { try await Task.sleep(for: .milliseconds(20)) }
            try await catalog.perform([.deleteAssets(.init(ids: [id]))])
            while resources.contains(again) { try await Task.sleep(for: .milliseconds(20)) }
            #expect(resources.contains(lost))
            #expect(try await catalog.call(CollectLibrary()).count == 1)
            #expect(!resources.contains(lost))
        }
    }

    @Test(.onlySQLite)
    func `files that are kept after a loss of changes are kept after the next loss too, whatever the clock`()
        async throws
    {
        let folder = try TemporaryFolder("kept")
        let later = WallClock.nowMicroseconds() + 3_600_000_000
        let first = try StoreFixture(at: folder.path)
        try await first.store.remember(later, as: ResourceCollector.keptCounter)
        try first.store.close()
        try FileManager.default.removeItem(atPath: folder.file("head"))
        let next = try StoreFixture(at: folder.path)
        #expect(next.store.historyID != first.store.historyID)
        #expect(try await next.store.read { Int64(try $0.counter(ResourceCollector.keptCounter)) } == later)
        try next.store.close()
        withExtendedLifetime(folder) {}
    }

    @Test(.onlySQLite)
    func `the object store confirms every file again for a new history, but not for the same history`() async throws {
        let folder = try TemporaryFolder("store")
        let digest = ResourceDigest(of: [1, 2, 3])
        /// Begins the uploads; returns the objects that wait for them, and the size of the object if it is readable.
        func begin(_ store: LibraryStore) async throws -> (waiting: [ResourceDigest], size: Int64?) {
            try await store.changeUploadStates { objects in
                try objects.begin("s3://photos/library")
                return (try objects.registered(after: nil, limit: 10), try objects.readableSize(of: digest))
            }
        }
        let first = try StoreFixture(at: folder.path)
        _ = try await begin(first.store)
        try await first.store.changeUploadStates { objects in
            try objects.setKept(false, [digest])
            try objects.confirm(digest, size: 3, date: 1)
        }
        try first.store.close()
        let same = try StoreFixture(at: folder.path)
        #expect(try await begin(same.store).waiting == [])
        try same.store.close()
        try FileManager.default.removeItem(atPath: folder.file("head"))
        let new = try StoreFixture(at: folder.path)
        let found = try await begin(new.store)
        #expect(found.waiting == [digest] && found.size == 3)
        withExtendedLifetime(folder) {}
    }

    @Test func `a standby keeps the sequence of a change that it has acknowledged and the server does not have`()
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
            let acknowledged = HeadFile.Head(library: first.token.library, sequence: first.sequence + 100)
            try HeadFile(path: other.file("library/head")).store(
                library: acknowledged.library,
                sequence: acknowledged.sequence
            )
            try await CatalogFixture.with(other) {
                $0.server = server
            } _: { standby in
                let second = try await writer.perform([.createCollection(.init(title: "two"))])
                // The standby has read the record.
                #expect(await standby.service.tail.wait(for: second.sequence))
                #expect(try standby.service.store.headFile.load() == acknowledged)
            }
        }
    }
}
