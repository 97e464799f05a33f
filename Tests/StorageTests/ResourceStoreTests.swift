import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Storage

@Suite(.timeLimit(.minutes(5)))
struct ResourceStoreTests {
    let folder: TemporaryFolder
    let store: ResourceStore

    init() throws {
        folder = try TemporaryFolder("storage")
        store = try ResourceStore(root: folder.path + "/resources")
    }

    private func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var state = seed
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1
            return UInt8(truncatingIfNeeded: state >> 33)
        }
    }

    @Test func `a digest is exactly 64 lower-case hexadecimal digits`() {
        #expect(
            ResourceDigest(of: []).text == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        )
        let text = String(repeating: "a", count: 64)
        #expect(ResourceDigest(text) != nil)
        for wrong in ["", String(text.dropLast()), text + "a", text.uppercased(), "../" + text.dropLast(3)] {
            #expect(ResourceDigest(wrong) == nil)
        }
    }

    @Test func `bytes are stored once under their hash and can be read in ranges`() throws {
        let content = bytes(3 << 20 | 17)
        let first = try store.put(bytes: content)
        #expect(
            first.digest == ResourceDigest(of: content) && first.size == Int64(content.count) && !first.wasPresent
        )
        #expect(try store.put(bytes: content).wasPresent)
        #expect(store.contains(first.digest))
        #expect(
            store.path(of: first.digest).hasSuffix(
                "/\(first.digest.text.prefix(2))/\(first.digest.text.dropFirst(2).prefix(2))/\(first.digest)"
            )
        )
        #expect(try store.readAll(first.digest, limit: 4 << 20) == content)
        #expect(
            try store.read(first.digest, offset: 1 << 20, count: 10) == Array(content[(1 << 20)..<((1 << 20) + 10)])
        )
        #expect(try store.read(first.digest, offset: Int64(content.count) - 3, count: 10) == Array(content.suffix(3)))
        #expect(try store.read(first.digest, offset: Int64.max, count: 10) == [])
        #expect(try store.read(first.digest, offset: 5, count: 0) == [])
        var status = stat()
        #expect(stat(store.path(of: first.digest), &status) == 0)
        #expect(status.st_mode & 0o777 == 0o444)
    }

    @Test func `invalid ranges and exceeded limits are refused`() throws {
        let stored = try store.put(bytes: [1, 2, 3])
        #expect(throws: StorageError.self) { try store.read(stored.digest, offset: -1, count: 1) }
        #expect(throws: StorageError.self) { try store.read(stored.digest, offset: 0, count: -1) }
        #expect(throws: StorageError.self) { try store.read(stored.digest, offset: 0, count: Int.max) }
        let error = #expect(throws: StorageError.self) { try store.readAll(stored.digest, limit: 2) }
        #expect(error?.name == "too_large")
        let missing = #expect(throws: StorageError.self) { try store.open(ResourceDigest(of: [9])) }
        #expect(missing?.name == "not_found")
    }

    @Test func `only a regular file up to the limit is copied`() throws {
        let path = folder.path + "/source"
        folder.overwrite("source", bytes(2_500_000), at: 0)
        let stored = try store.put(copying: path, limit: 2_500_000)
        #expect(stored.size == 2_500_000)
        let error = #expect(throws: StorageError.self) { try store.put(copying: path, limit: 2_499_999) }
        #expect(error?.name == "too_large")
        #expect(throws: StorageError.self) { try store.put(copying: folder.path, limit: 10) }
        #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
        let pipe = #expect(throws: StorageError.self) { try store.put(copying: folder.path + "/pipe", limit: 10) }
        #expect(pipe?.name == "invalid")
        let file = try PathAllowlist(roots: [folder.path]).open(path)
        #expect(try store.put(copying: file, limit: 1 << 30).digest == stored.digest)
    }

    @Test func `an upload in parts can be finished, cancelled or released`() throws {
        let writer = try store.writer(limit: 10)
        try writer.append([1, 2, 3])
        try writer.append([])
        try writer.append([4, 5])
        #expect(writer.size == 5)
        #expect(try writer.finish().digest == ResourceDigest(of: [1, 2, 3, 4, 5]))
        #expect(throws: StorageError.self) { try writer.append([6]) }
        #expect(throws: StorageError.self) { try writer.finish() }

        let tooLarge = try store.writer(limit: 3)
        let error = #expect(throws: StorageError.self) { try tooLarge.append([1, 2, 3, 4]) }
        #expect(error?.name == "too_large")
        let cancelled = try store.writer(limit: 3)
        cancelled.cancel()
        cancelled.cancel()
        _ = try store.writer(limit: 3)
        #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
    }

    @Test func `concurrent writers of one digest store one file`() async throws {
        let content = bytes(100_000)
        let store = store
        let stored = try await withThrowingTaskGroup { group in
            for _ in 0..<16 { group.addTask { try store.put(bytes: content) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(stored.count { !$0.wasPresent } == 1)
        #expect(Set(stored.map(\.digest)).count == 1)
        #expect(try store.readAll(stored[0].digest, limit: 1 << 20) == content)
        #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
    }

    @Test func `damage is detected by a complete read, and a file of another size is replaced`() throws {
        let stored = try store.put(bytes: bytes(5000))
        let path = store.path(of: stored.digest)
        #expect(chmod(path, 0o644) == 0)
        let file = open(path, O_WRONLY)
        pwrite(file, [0xFF, 0xFE] as [UInt8], 2, 100)
        let error = #expect(throws: StorageError.self) { try store.readAll(stored.digest, limit: 1 << 20) }
        #expect(error?.name == "resource_changed")
        #expect(throws: StorageError.self) { try store.open(stored.digest).verify() }
        ftruncate(file, 10)
        close(file)
        #expect(throws: StorageError.self) { try store.readAll(stored.digest, limit: 1 << 20) }
        #expect(try store.put(bytes: bytes(5000)).digest == stored.digest)
        #expect(try store.readAll(stored.digest, limit: 1 << 20) == bytes(5000))
    }

    @Test func `temporary files of earlier processes are removed at start`() throws {
        folder.overwrite("resources/.incoming/123-1", [1, 2], at: 0)
        let again = try ResourceStore(root: store.root)
        #expect(try again.clearIncoming() == 1)
        #expect(try again.clearIncoming() == 0)
    }

    @Test func `removing checks its condition last, and an open file stays readable`() throws {
        let digest = try store.put(bytes: [1, 2, 3]).digest
        let file = try store.open(digest)
        #expect(try store.remove(digest, if: { _ in false }) == false)
        #expect(store.contains(digest))
        #expect(try store.remove(digest, if: { $0 > 1_600_000_000_000_000 }))
        #expect(!store.contains(digest))
        #expect(try store.remove(digest) == false)
        #expect(try file.readAll(limit: 10) == [1, 2, 3])
    }

    @Test func `storing existing bytes resets their age`() throws {
        let stored = try store.put(bytes: [7])
        let path = store.path(of: stored.digest)
        var old = [timespec(tv_sec: 1000, tv_nsec: 0), timespec(tv_sec: 1000, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, path, &old, 0) == 0)
        #expect(try store.put(bytes: [7]).wasPresent)
        #expect(try store.remove(stored.digest, if: { $0 < 2_000_000_000 }) == false)
    }

    @Test func `all stored bytes are visited`() throws {
        let stored = try (0..<20).map { try store.put(bytes: [UInt8($0)]) }
        var seen: [ResourceDigest: Int64] = [:]
        try store.forEach { digest, size, _ in
            seen[digest] = size
            return true
        }
        #expect(seen == Dictionary(uniqueKeysWithValues: stored.map { ($0.digest, $0.size) }))
    }

    @Test func `a read-only store refuses to store and to remove`() throws {
        let stored = try store.put(bytes: [1])
        let reader = try ResourceStore(root: store.root, isReadOnly: true)
        #expect(try reader.readAll(stored.digest, limit: 10) == [1])
        for attempt in [{ _ = try reader.put(bytes: [2]) }, { _ = try reader.remove(stored.digest) }] {
            let error = #expect(throws: StorageError.self) { try attempt() }
            #expect(error?.name == "read_only")
        }
        #expect(throws: StorageError.self) { try ResourceStore(root: folder.path + "/none", isReadOnly: true) }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ResourceDurabilityTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("storage") }

    private final class Trace: Sendable {
        let steps = Mutex<[ResourceStore.Step]>([])
        let failAt: Int?
        init(failAt: Int? = nil) { self.failAt = failAt }

        func record(_ step: ResourceStore.Step) throws(StorageError) {
            let count = steps.withLock { steps in
                steps.append(step)
                return steps.count
            }
            if count == failAt { throw .notEnoughSpace("test") }
        }
    }

    @Test func `the file is synced before its rename, and every folder after it`() throws {
        let root = folder.path + "/r"
        let trace = Trace()
        let store = try ResourceStore(root: root, isReadOnly: false, watcher: trace.record)
        let digest = try store.put(bytes: [1, 2, 3]).digest
        let first = "\(root)/\(digest.text.prefix(2))"
        let second = "\(first)/\(digest.text.dropFirst(2).prefix(2))"
        let temporary = "\(root)/.incoming/\(getpid())-1"
        #expect(
            trace.steps.withLock { $0 } == [
                .syncFolder(folder.path), .syncFolder(root), .write(temporary), .syncFile(temporary),
                .syncFolder(root), .syncFolder(first), .rename(temporary, "\(second)/\(digest)"), .syncFolder(second),
            ]
        )
    }

    @Test(arguments: 3...8)
    func `a failure at any step throws and leaves no partial file`(step: Int) throws {
        let root = folder.path + "/r"
        let trace = Trace(failAt: step)
        let store = try ResourceStore(root: root, isReadOnly: false, watcher: trace.record)
        let error = #expect(throws: StorageError.self) { try store.put(bytes: [1, 2, 3]) }
        #expect(error?.name == "not_enough_space")
        #expect(try DirectoryOperations.names(in: store.incoming).isEmpty)
        // Trying again succeeds, and a file that was already renamed is durable then.
        let stored = try store.put(bytes: [1, 2, 3])
        #expect(stored.wasPresent == (step == 8))
        #expect(try store.readAll(stored.digest, limit: 10) == [1, 2, 3])
    }
}
