import Basics
import Hosting
import Logging
import ObjectStorage
import Storage
import Synchronization

/// Downloads bytes from remote storage into the library's resource store. Requests for the same bytes share one
/// transfer, which is cancelled when no request waits for it. Bytes are stored under a digest only after their SHA-256
/// was compared.
final class ResourceDownloads: Sendable {
    private let remote: RemoteStorage
    private let transfers = FairSemaphore<BlockingIOExecutor.Source>(permits: ResourceDownloads.maxTransfers)
    private let state = Mutex(State())

    /// The maximum number of transfers at the same time.
    private static let maxTransfers = 6
    /// The time for which downloaded bytes are not removed, in microseconds.
    private static let leaseTime: Int64 = 10_000_000

    private struct State {
        /// The last number of a transfer or a waiter.
        var next = 0
        var running: [ResourceDigest: RunningTransfer] = [:]
        /// Leases of the latest downloads and their end times.
        var recent: [(digest: ResourceDigest, end: Int64, lease: ResourceLease)] = []
    }

    private typealias Waiter = AsyncThrowingStream<Double, any Error>.Continuation

    private struct RunningTransfer {
        let number: Int
        var task: Task<Void, Never>?
        var waiters: [Int: Waiter] = [:]
        var progress = 0.0
    }

    init(_ remote: RemoteStorage) { self.remote = remote }

    /// Returns the size of an object that can be read from the object store; nil if there is no such object.
    func remoteSize(of digest: ResourceDigest) async throws -> Int64? {
        try await remote.store.read { try $0.uploadStates.readableSize(of: digest) }
    }

    /// The number of transfers.
    var count: Int { state.withLock { $0.running.count } }

    /// Downloads bytes, or joins a running transfer of them.
    ///
    /// - Parameter report: receives the fraction that has arrived, from 0 to 1, increasing; the last is 1
    /// - Returns: a lease, so that the bytes are not removed before they are opened
    /// - Throws: ``ResourceError``, ``StorageError``, `CancellationError`
    func download(
        _ digest: ResourceDigest,
        size: Int64,
        for source: BlockingIOExecutor.Source,
        report: (Double) async throws -> Void
    ) async throws -> ResourceLease {
        let lease = remote.resources.lease(digest)
        let progress = join(digest, size, source)
        var last = -1.0
        for try await fraction in progress where fraction > last && fraction < 1 {
            last = fraction
            try await report(fraction)
        }
        // The stream also ends if this task was cancelled.
        try Task.checkCancellation()
        try await report(1)
        return lease
    }

    private func join(
        _ digest: ResourceDigest,
        _ size: Int64,
        _ source: BlockingIOExecutor.Source
    ) -> AsyncThrowingStream<Double, any Error> {
        let (stream, waiter) = AsyncThrowingStream<Double, any Error>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let (number, transferID, isNew) = state.withLock { state in
            state.next += 1
            let number = state.next
            let isNew = state.running[digest] == nil
            if isNew { state.running[digest] = RunningTransfer(number: number) }
            state.running[digest]?.waiters[number] = waiter
            waiter.yield(state.running[digest]?.progress ?? 0)
            return (number, state.running[digest]?.number ?? number, isNew)
        }
        waiter.onTermination = { [weak self] reason in
            if case .cancelled = reason { self?.removeWaiter(number, of: digest, transferID) }
        }
        if isNew {
            let task = Task { await self.run(digest, size, transferID, source) }
            state.withLock { state in
                if state.running[digest]?.number == transferID { state.running[digest]?.task = task }
            }
            // The only waiter may have been removed before the task was stored.
            cancelIfUnawaited(digest, transferID)
        }
        return stream
    }

    private func removeWaiter(_ number: Int, of digest: ResourceDigest, _ transferID: Int) {
        state.withLock { state in
            guard state.running[digest]?.number == transferID else { return }
            state.running[digest]?.waiters[number] = nil
        }
        cancelIfUnawaited(digest, transferID)
    }

    /// Cancels a transfer for which no request waits. A later request begins a new one.
    private func cancelIfUnawaited(_ digest: ResourceDigest, _ transferID: Int) {
        let task: Task<Void, Never>? = state.withLock { state in
            guard let found = state.running[digest], found.number == transferID, found.waiters.isEmpty,
                let task = found.task
            else { return nil }
            state.running[digest] = nil
            return task
        }
        task?.cancel()
    }

    private func run(
        _ digest: ResourceDigest,
        _ size: Int64,
        _ transferID: Int,
        _ source: BlockingIOExecutor.Source
    ) async {
        let result: Result<Void, any Error>
        do {
            let lease = try await transfers.withPermit(for: source) {
                try await self.transfer(digest, size, transferID)
            }
            guard let lease else { throw CancellationError() }
            keepLease(lease, of: digest)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        let waiters = state.withLock { state in
            guard let found = state.running[digest], found.number == transferID else { return [Waiter]() }
            state.running[digest] = nil
            return Array(found.waiters.values)
        }
        for waiter in waiters {
            switch result {
            case .success: waiter.finish()
            case .failure(let error): waiter.finish(throwing: error)
            }
        }
    }

    private func transfer(_ digest: ResourceDigest, _ size: Int64, _ transferID: Int) async throws -> ResourceLease {
        let (resources, remote) = (remote.resources, remote)
        let writer = try await remote.blockingIO.run { try resources.writer(limit: size) }
        // Removes the file if it is not complete.
        defer { writer.cancel() }
        do {
            try await remote.client.download(RemoteStorage.key(digest), size: size) { [self] bytes in
                try writer.append(Array(bytes))
                advance(digest, transferID, Double(writer.size) / Double(max(1, size)))
            }
            try Task.checkCancellation()
            let stored = try await remote.blockingIO.run(BlockingIOExecutor.lane(forBytes: size)) {
                try writer.finish(expecting: digest)
            }
            remote.noteDownloaded(size)
            remote.note(nil)
            remote.wake()
            return stored.lease
        } catch let error as ObjectStoreError {
            if Task.isCancelled || error.problem == .cancelled { throw CancellationError() }
            if !error.problem.concernsObject {
                remote.note(error)
                // The rounds of the uploads detect when the object store answers again.
                remote.wake()
            }
            throw ResourceError.notDownloaded(digest, error)
        } catch StorageError.resourceChanged(let message) {
            let error = ObjectStoreError(.objectDamaged, message)
            remote.logger.error("an object at the store is damaged", metadata: ["digest": "\(digest)"])
            throw ResourceError.notDownloaded(digest, error)
        }
    }

    private func advance(_ digest: ResourceDigest, _ transferID: Int, _ progress: Double) {
        state.withLock { state in
            guard let found = state.running[digest], found.number == transferID,
                progress - found.progress >= 0.01 || progress >= 1
            else { return }
            state.running[digest]?.progress = progress
            for waiter in found.waiters.values { waiter.yield(progress) }
        }
    }

    /// Keeps the lease of downloaded bytes for some seconds: they are about to be used.
    private func keepLease(_ lease: ResourceLease, of digest: ResourceDigest) {
        let now = MonotonicClock.system.nowMicroseconds()
        state.withLock { state in
            state.recent.removeAll { $0.end <= now }
            state.recent.append((digest, now + Self.leaseTime, lease))
        }
    }

    /// Ends the lease of a recent download, because its bytes are to be removed.
    func endLease(of digest: ResourceDigest) { state.withLock { $0.recent.removeAll { $0.digest == digest } } }

    /// Ends the leases whose time has passed.
    func endOldLeases() {
        let now = MonotonicClock.system.nowMicroseconds()
        state.withLock { $0.recent.removeAll { $0.end <= now } }
    }
}
