import Basics
import Foundation
import Logging
import Storage
import TestSupport
import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(5)))
struct RenditionDiskCacheTests {
    private let folder = NSTemporaryDirectory() + "safelight-cache-\(UUID().uuidString)"

    private func key(_ number: Int) throws -> RenditionKey {
        let digits = String(number, radix: 16)
        return try #require(RenditionKey(String(repeating: "0", count: 64 - digits.count) + digits))
    }

    private func rendition(_ count: Int, _ byte: UInt8 = 7) -> EncodedRendition {
        EncodedRendition(
            bytes: [UInt8](repeating: byte, count: count),
            mimeType: "image/jpeg",
            pixelWidth: 3,
            pixelHeight: 2,
            isUpscaled: true
        )
    }

    private func files() -> [String] {
        (FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? []).filter { $0.count > 10 }
            .sorted()
    }

    @Test func `a cache that cannot be written reports a problem until it can be written again`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20)
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let writer = RenditionWriter(store, clock: .system, logger: logger)
        writer.write(rendition(5000), try key(1))
        #expect(writer.failures.count == 0 && writer.failures.problem == nil)
        // A file is in the place of the folder.
        try FileManager.default.moveItem(atPath: folder, toPath: folder + "-away")
        try Data().write(to: URL(filePath: folder))
        for number in 2...3 { #expect(writer.write(rendition(5000), try key(number)) != nil) }
        #expect(writer.failures.count == 2 && writer.failures.problem?.contains(folder) == true)
        try FileManager.default.removeItem(atPath: folder)
        try FileManager.default.moveItem(atPath: folder + "-away", toPath: folder)
        #expect(writer.write(rendition(5000), try key(4)) == nil)
        #expect(writer.failures.count == 2 && writer.failures.problem == nil)
    }

    @Test func `inserted renditions are found, also after a restart`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20)
        #expect(store.insert(rendition(5000), try key(1)) == nil)
        #expect(store.rendition(try key(1)) == rendition(5000))
        #expect(store.rendition(try key(2)) == nil)
        let again = try RenditionDiskCache(root: folder, budget: 1 << 20)
        #expect(again.rendition(try key(1)) == rendition(5000))
        #expect(again.metrics.bytes == 8192)
        #expect(files().allSatisfy { !$0.hasSuffix(".part") })
    }

    @Test func `a cache whose folder was deleted creates it again`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20)
        for number in 1...3 { #expect(store.insert(rendition(1000), try key(number)) == nil) }
        #expect(store.contains(try key(2)))
        try FileManager.default.removeItem(atPath: folder)
        #expect(!store.contains(try key(2)))
        #expect(store.rendition(try key(1)) == nil)
        #expect(store.insert(rendition(1000), try key(1)) == nil)
        #expect(store.rendition(try key(1)) == rendition(1000))
        #expect(store.metrics.damaged == 0)
        #expect(files().count == 1)
    }

    @Test func `the cache stays within its budget, also on disk`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 5 * 4096)
        for number in 1...5 { #expect(store.insert(rendition(1000), try key(number)) == nil) }
        #expect(store.rendition(try key(1)) != nil)
        _ = store.insert(rendition(1000), try key(6))
        #expect(store.rendition(try key(2)) == nil)
        #expect(store.metrics.count == 5)
        #expect(files().count == 5)
        _ = store.insert(rendition(100_000), try key(7))
        #expect(store.metrics.count == 5, "a rendition larger than the budget evicts nothing")
        let smaller = try RenditionDiskCache(root: folder, budget: 2 * 4096)
        #expect(smaller.metrics.count == 2)
        #expect(files().count == 2)
    }

    @Test func `the order of use survives a restart`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20)
        for number in 1...3 { #expect(store.insert(rendition(1000), try key(number)) == nil) }
        // The kernel's clock of files may not advance between two of them.
        for number in 1...3 {
            let past = Date(timeIntervalSinceNow: Double(number) - 100)
            let path = RenditionDiskCache.path(folder, try key(number))
            try FileManager.default.setAttributes([.modificationDate: past], ofItemAtPath: path)
        }
        #expect(store.rendition(try key(1)) != nil)
        let again = try RenditionDiskCache(root: folder, budget: 3 * 4096)
        _ = again.insert(rendition(1000), try key(4))
        #expect(again.rendition(try key(2)) == nil)
        #expect(again.rendition(try key(1)) != nil)
    }

    @Test func `a damaged, truncated or misplaced file is a miss and is removed`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20)
        let good = RenditionFile.encode(rendition(3000), key: try key(1))
        var flipped = good
        flipped[good.count / 2] ^= 1
        let broken: [[UInt8]] = [
            flipped, Array(good.dropLast()), Array(good.prefix(20)), [], good + [0],
            RenditionFile.encode(rendition(3000), key: try key(99)), Array("SLRENDR1".utf8) + [255, 255, 255, 255],
        ]
        for (index, bytes) in broken.enumerated() {
            let name = try key(100 + index)
            #expect(store.insert(rendition(10), name) == nil)
            let path = RenditionDiskCache.path(folder, name)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            #expect(store.rendition(name) == nil, "damaged file \(index)")
            #expect(!FileManager.default.fileExists(atPath: path))
        }
        #expect(store.metrics.damaged == broken.count)
        #expect(store.metrics.bytes == 0)
    }

    @Test func `temporary and foreign files are removed at start`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20)
        _ = store.insert(rendition(10), try key(1))
        let path = RenditionDiskCache.path(folder, try key(1))
        try Data([1]).write(to: URL(fileURLWithPath: path + ".9.part"))
        try Data([1]).write(to: URL(fileURLWithPath: (path as NSString).deletingLastPathComponent + "/stranger"))
        let again = try RenditionDiskCache(root: folder, budget: 1 << 20)
        #expect(files() == [String(path.dropFirst(folder.count + 1))])
        #expect(again.metrics.count == 1)
    }

    @Test func `a file deleted by another process is a miss`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20)
        _ = store.insert(rendition(10), try key(1))
        try FileManager.default.removeItem(atPath: RenditionDiskCache.path(folder, try key(1)))
        #expect(store.rendition(try key(1)) == nil)
        #expect(store.metrics.count == 0)
    }

    @Test func `the error of a file that cannot be written is returned, and the file takes no space`() throws {
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20)
        try Data([1]).write(to: URL(fileURLWithPath: folder + "/0"))
        #expect(store.insert(rendition(10), try key(1))?.contains("open") == true)
        #expect(store.metrics.count == 0)
    }

    @Test func `a failed sync removes the renditions since the last sync, which may be in memory only`() throws {
        let isFailing = AwaitableValue(false)
        let store = try RenditionDiskCache(root: folder, budget: 1 << 20) { () throws(StorageError) in
            if isFailing.current { throw StorageError.io("the disk failed") }
        }
        #expect(store.unsyncedCount == 1, "an earlier process may have left renditions")
        #expect(store.insert(rendition(1000), try key(1)) == nil)
        #expect(store.unsyncedCount == 2)
        #expect(store.sync() == nil)
        #expect(store.unsyncedCount == 0)
        #expect(store.insert(rendition(1000), try key(2)) == nil)
        isFailing.withLock { $0 = true }
        #expect(store.sync()?.contains("the disk failed") == true)
        #expect(store.rendition(try key(1)) != nil)
        #expect(store.rendition(try key(2)) == nil)
        #expect(store.metrics.bytes == 4096)
        #expect(files().count == 1)
        isFailing.withLock { $0 = false }
        #expect(store.insert(rendition(1000), try key(2)) == nil)
        #expect(store.sync() == nil)
        #expect(store.rendition(try key(2)) != nil)
    }

    @Test func `the filesystem of a cache is synced through its folder`() throws {
        let plain = try RenditionDiskCache(root: folder, budget: 1 << 20)
        #expect(plain.unsyncedCount == 0, "nothing depends on a sync")
        let store = try RenditionDiskCache(
            root: folder,
            budget: 1 << 20,
            syncFilesystem: RenditionDiskCache.filesystemSync(of: folder)
        )
        #expect(store.insert(rendition(1000), try key(1)) == nil)
        #expect(store.sync() == nil)
        #expect(store.unsyncedCount == 0)
        #expect(throws: StorageError.self) { _ = try RenditionDiskCache.filesystemSync(of: folder + "/none") }
    }

    @Test func `a folder that cannot be created is an error`() {
        #expect(throws: CacheError.self) { try RenditionDiskCache(root: "/proc/none/cache", budget: 1) }
    }

    @Test func `the memory cache evicts the least recently used rendition`() throws {
        let memory = RenditionMemoryCache<RenditionKey>(budget: 3 * 1256)
        for number in 1...3 { memory.insert(rendition(1000), try key(number)) }
        #expect(memory.rendition(try key(1)) != nil)
        memory.insert(rendition(1000), try key(4))
        #expect(memory.rendition(try key(2)) == nil)
        #expect(memory.size.count == 3)
        memory.insert(rendition(100_000), try key(5))
        #expect(memory.rendition(try key(5)) == nil)
        #expect(memory.size.bytes == 3 * 1256)
    }

    @Test func `uses in memory are reported to the disk cache once per interval`() throws {
        let memory = RenditionMemoryCache<RenditionKey>(budget: 10_000)
        memory.insert(rendition(100), try key(1), now: 1_000_000)
        let reported = try (0..<100).filter { second in
            try memory.use(key(1), now: Int64(second) * 1_000_000)?.shouldReport == true
        }
        #expect(reported == [11, 21, 31, 41, 51, 61, 71, 81, 91])
        #expect(try memory.use(key(2), now: 0) == nil)
    }

    @Test func `a caller that may not report misses when a report is due and hits otherwise`() throws {
        let memory = RenditionMemoryCache<RenditionKey>(budget: 3 * 1256)
        for number in 1...3 { memory.insert(rendition(1000), try key(number), now: 0) }
        #expect(try memory.use(key(1), now: 9_999_999, mayReport: false)?.shouldReport == false)
        #expect(try memory.use(key(1), now: 10_000_000, mayReport: false) == nil)
        #expect(try memory.use(key(1), now: 10_000_000)?.shouldReport == true, "the report is still due")
        #expect(try memory.use(key(1), now: 10_000_001, mayReport: false) != nil)
        #expect(try memory.use(key(2), now: 1, mayReport: false) != nil)
        memory.insert(rendition(1000), try key(4))
        #expect(try memory.use(key(3), now: 1) == nil, "evicted as the least recently used")
    }
}
