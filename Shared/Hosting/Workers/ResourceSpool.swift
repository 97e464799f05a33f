public import Basics
import Contracts
import Foundation
import Glibc
public import JSONValue
public import Storage
import Synchronization

/// A cache of a library's files for a service on another machine than the catalog: a content-addressed store within a
/// byte budget, of which the files used least recently are removed. Its option is `--spool-mib`.
///
/// Requests for the same bytes share one transfer, which is cancelled when the last of them is. A file can be opened
/// only after the SHA-256 of all its bytes was compared. A transfer that ended early leaves no file; the file of a
/// killed process is removed at the next start.
public final class ResourceSpool: Sendable {
    /// Appends bytes to a file that is being transferred.
    public typealias Sink = @Sendable (Bytes) async throws(RPCError) -> Void
    /// Reads all bytes of a file into a sink.
    public typealias Source = @Sendable (Sink) async throws(RPCError) -> Void

    let store: ResourceStore
    private let folder: String
    private let lock: LockFile
    private let maxBytes: Int64
    private let blockingIO: BlockingIOExecutor
    private let transfers = FairSemaphore<Int>(permits: ResourceSpool.maxTransfers)
    private let clock: MonotonicClock
    private let state: Mutex<State>

    private typealias Outcome = Result<Void, RPCError>

    private struct Transfer {
        let number: Int
        var task: Task<Void, Never>?
        var waiters: [Int: Promise<Outcome>] = [:]
    }

    private struct State {
        var next = 0
        var bytes: Int64
        var transfers: [String: Transfer] = [:]
        /// Leases of the files that were requested last, with their expiry.
        var recent: [(end: Int64, lease: ResourceLease)] = []
        var transferred = 0
        var removed = 0
    }

    /// The maximum number of transfers at the same time.
    private static let maxTransfers = 4
    /// The time in microseconds for which a requested file is kept, so that it can be opened.
    private static let grace: Int64 = 10_000_000
    /// The maximum number of files with such a lease.
    private static let maxRecent = 1000

    /// Opens the spool, and removes the files of transfers that were interrupted by a kill.
    ///
    /// - Parameters:
    ///   - folder: created if it does not exist; no other process may write to it
    ///   - maxBytes: the maximum size of all files together; the newest file alone may exceed it
    /// - Throws: ``StorageError``
    public init(
        folder: String,
        maxBytes: Int64,
        blockingIO: BlockingIOExecutor,
        clock: MonotonicClock = .system
    ) throws(StorageError) {
        self.folder = folder
        self.maxBytes = maxBytes
        self.blockingIO = blockingIO
        self.clock = clock
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            throw .io("\(folder) cannot be created: \(error.localizedDescription)")
        }
        lock = try LockFile(
            path: folder + "/lock",
            program: ProcessInfo.processInfo.processName,
            using: "the copies in \(folder)",
            advice: "stop it, or choose another folder with SAFELIGHT_CACHE"
        )
        let store = try ResourceStore(root: folder)
        _ = try store.clearIncoming()
        var bytes: Int64 = 0
        try store.forEachFile { bytes += $0.size }
        self.store = store
        state = Mutex(State(bytes: bytes))
    }

    /// Counters and gauges, for the method `figures`.
    public var metrics: JSONObject {
        state.withLock {
            [
                "bytes": .int($0.bytes), "limit": .int(maxBytes), "transfers": JSON($0.transfers.count),
                "transferred": JSON($0.transferred), "removed": JSON($0.removed),
            ]
        }
    }

    /// Makes sure that the file of a digest is in the spool, and keeps it there until it can be opened.
    ///
    /// - Parameter source: reads the file if it is not there; not called if another request already reads it
    /// - Throws: the error of the source, `resource_changed` for other bytes, `not_enough_space`, `user_cancelled`
    public func require(_ digest: String, from source: @escaping Source) async throws(RPCError) {
        guard let name = ResourceDigest(digest) else {
            throw ErrorCode.internalError.error("the catalog named a resource by an invalid digest")
        }
        keep(digest)
        guard !store.contains(name) else { return }
        let promise = Promise<Outcome>()
        let (number, transfer, isNew) = state.withLock { state in
            state.next += 1
            let number = state.next
            let isNew = state.transfers[digest] == nil
            if isNew { state.transfers[digest] = Transfer(number: number) }
            state.transfers[digest]?.waiters[number] = promise
            return (number, state.transfers[digest]?.number ?? number, isNew)
        }
        if isNew {
            let task = Task { await self.run(name, number, source) }
            state.withLock { state in
                if state.transfers[digest]?.number == number { state.transfers[digest]?.task = task }
            }
        }
        let outcome = await withTaskCancellationHandler {
            await promise.value()
        } onCancel: {
            self.removeWaiter(number, from: transfer, of: digest)
            promise.fulfill(.failure(ErrorCode.userCancelled.error("the request was cancelled")))
        }
        try outcome.get()
    }

    /// Keeps a file until it can be opened, and ends expired leases.
    public func keep(_ digest: String) {
        guard let lease = ResourceDigest(digest).map(store.lease) else { return }
        let now = clock.nowMicroseconds()
        state.withLock { state in
            state.recent.append((now + Self.grace, lease))
            let excess = state.recent.count - Self.maxRecent
            state.recent.removeFirst(max(excess, state.recent.prefix { $0.end <= now }.count, 0))
        }
    }

    /// Removes a file if its bytes are damaged.
    func removeIfDamaged(_ digest: String) async {
        guard let name = ResourceDigest(digest) else { return }
        let store = store
        let opened = try? await io { try store.open(name) }
        guard let file = opened else { return }
        do {
            // The caller may have read an older copy, and the worker's report may be wrong.
            return try await blockingIO.verify(file, fromDisk: true)
        } catch StorageError.resourceChanged, StorageError.io {
            // The copy is damaged or cannot be read.
        } catch {
            return
        }
        let removed = try? await io { () throws -> Int64? in
            var status = stat()
            // Another request may have replaced it by a good copy meanwhile.
            guard fstat(file.descriptor, &status) == 0, status.st_nlink > 0 else { return nil }
            self.state.withLock { $0.recent.removeAll { $0.lease.digest == name } }
            return try store.remove(name) ? file.size : nil
        }
        guard let removed else { return }
        state.withLock { state in
            state.bytes -= removed
            state.removed += 1
        }
    }

    /// Removes a cancelled request from its transfer, and ends the transfer if no other request waits for it.
    private func removeWaiter(_ number: Int, from transfer: Int, of digest: String) {
        let task: Task<Void, Never>? = state.withLock { state in
            guard state.transfers[digest]?.number == transfer else { return nil }
            state.transfers[digest]?.waiters[number] = nil
            guard let current = state.transfers[digest], current.waiters.isEmpty else { return nil }
            state.transfers[digest] = nil
            return current.task
        }
        task?.cancel()
    }

    private func run(_ digest: ResourceDigest, _ number: Int, _ source: @escaping Source) async {
        let outcome: Outcome
        do throws(RPCError) {
            let done: Void? = try await transfers.withPermit(for: 0) { () async throws(RPCError) in
                // Another transfer may have ended after the file was looked up and before this one began.
                if !store.contains(digest) { try await transfer(digest, source) }
            }
            if done == nil { throw ErrorCode.userCancelled.error("the request was cancelled") }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        let waiters = state.withLock { state in
            guard let found = state.transfers[digest.text], found.number == number else {
                return [Promise<Outcome>]()
            }
            state.transfers[digest.text] = nil
            return Array(found.waiters.values)
        }
        for waiter in waiters { waiter.fulfill(outcome) }
    }

    private func transfer(_ digest: ResourceDigest, _ source: Source) async throws(RPCError) {
        let (store, folder) = (store, folder)
        // The folder of a cache may be deleted at any time.
        let isNew = try await io {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            return try store.remakeMissingFolders()
        }
        if isNew { state.withLock { $0.bytes = 0 } }
        // Removes the file if it is not complete.
        let writer = try await io { try store.writer(limit: .max) }
        defer { writer.cancel() }
        try await source { bytes throws(RPCError) in
            try await self.io { try writer.append(bytes) }
        }
        let size = writer.size
        // Once the file exists, another transfer may remove it, because the lease of the request may have expired.
        let lease = store.lease(digest)
        defer { lease.end() }
        _ = try await io(BlockingIOExecutor.lane(forBytes: size)) { try writer.finish(expecting: digest) }
        keep(digest.text)
        let isOver = state.withLock { state in
            state.bytes += size
            state.transferred += 1
            return state.bytes > maxBytes
        }
        guard isOver else { return }
        let (bytes, removed) = try await io(.long) { try self.removeOldest(keeping: digest) }
        state.withLock { state in
            state.bytes = bytes
            state.removed += removed
        }
    }

    /// Removes the least recently used files until the others take at most nine tenths of the budget.
    private func removeOldest(keeping newest: ResourceDigest) throws -> (bytes: Int64, removed: Int) {
        var files: [ResourceStore.LocalFile] = []
        try store.forEachFile { files.append($0) }
        var (bytes, removed) = (files.reduce(0) { $0 + $1.size }, 0)
        for file in files.sorted(by: { $0.lastUse < $1.lastUse }) where file.digest != newest {
            guard bytes > maxBytes / 10 * 9 else { break }
            guard try store.remove(file.digest) else { continue }
            bytes -= file.size
            removed += 1
        }
        return (bytes, removed)
    }

    private func io<Value: Sendable>(
        _ lane: BlockingIOExecutor.Lane = .short,
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(RPCError) -> Value {
        do {
            return try await blockingIO.run(lane, work)
        } catch let error as RPCError {
            throw error
        } catch StorageError.notEnoughSpace {
            throw ErrorCode.notEnoughSpace.error(
                "the disk of \(folder) is full, so that the original could not be copied to this machine; free some space"
            )
        } catch let error as StorageError {
            switch error {
            case .resourceChanged, .corrupt, .invalid:
                throw ErrorCode.resourceChanged.error(
                    "the catalog sent other bytes than those of the original (\(error.message))"
                )
            default:
                throw ErrorCode.libraryOffline.error("the folder \(folder) cannot be written (\(error.message))")
            }
        } catch {
            throw ErrorCode.internalError.error("\(error)")
        }
    }
}
