import Basics
import Hosting
import Logging
import ObjectStorage
import Storage
import Synchronization

/// Downloads bytes from remote storage into the library's resource store. Requests for the same bytes share one transfer,
/// which ends when no request waits for it. Bytes are stored under a digest only after their SHA-256 was compared.
final class ResourceDownloads: Sendable {
    private let remote: RemoteStorage
    private let transfers = FairSemaphore<BlockingIOExecutor.Source>(permits: ResourceDownloads.concurrent)
    private let state = Mutex(State())

    /// The number of transfers at the same time.
    private static let concurrent = 6
    /// The time for which downloaded bytes are not removed, in microseconds.
    private static let grace: Int64 = 10_000_000

    private struct State {
        var next = 0
        var flights: [ResourceDigest: Flight] = [:]
        /// Leases of the latest downloads and their ends.
        var recent: [(digest: ResourceDigest, end: Int64, lease: ResourceLease)] = []
    }

    private typealias Waiter = AsyncThrowingStream<Double, any Error>.Continuation

    private struct Flight {
        let number: Int
        var task: Task<Void, Never>?
        var waiters: [Int: Waiter] = [:]
        var progress = 0.0
    }

    init(_ remote: RemoteStorage) { self.remote = remote }

    /// Returns the size of an object that can be read from the store; nil if the store never had it.
    func remoteSize(of digest: ResourceDigest) async throws -> Int64? {
        try await remote.store.read { try $0.remoteObjects.readableSize(of: digest) }
    }

    /// The number of transfers.
    var count: Int { state.withLock { $0.flights.count } }

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
        for try await part in progress where part > last && part < 1 {
            last = part
            try await report(part)
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
        let (number, flight, isNew) = state.withLock { state in
            state.next += 1
            let number = state.next
            let isNew = state.flights[digest] == nil
            if isNew { state.flights[digest] = Flight(number: number) }
            state.flights[digest]?.waiters[number] = waiter
            waiter.yield(state.flights[digest]?.progress ?? 0)
            return (number, state.flights[digest]?.number ?? number, isNew)
        }
        waiter.onTermination = { [weak self] reason in
            if case .cancelled = reason { self?.leave(digest, flight, number) }
        }
        if isNew {
            let task = Task { await self.run(digest, size, flight, source) }
            state.withLock { state in
                if state.flights[digest]?.number == flight { state.flights[digest]?.task = task }
            }
            // The only waiter may have left before the task was known.
            cancelIfUnawaited(digest, flight)
        }
        return stream
    }

    private func leave(_ digest: ResourceDigest, _ flight: Int, _ number: Int) {
        state.withLock { state in
            guard state.flights[digest]?.number == flight else { return }
            state.flights[digest]?.waiters[number] = nil
        }
        cancelIfUnawaited(digest, flight)
    }

    /// Cancels a transfer for which no request waits. A later request begins a new one.
    private func cancelIfUnawaited(_ digest: ResourceDigest, _ flight: Int) {
        let task: Task<Void, Never>? = state.withLock { state in
            guard let found = state.flights[digest], found.number == flight, found.waiters.isEmpty,
                let task = found.task
            else { return nil }
            state.flights[digest] = nil
            return task
        }
        task?.cancel()
    }

    private func run(
        _ digest: ResourceDigest,
        _ size: Int64,
        _ flight: Int,
        _ source: BlockingIOExecutor.Source
    ) async {
        let result: Result<Void, any Error>
        do {
            let lease = try await transfers.withPermit(for: source) { try await self.transfer(digest, size, flight) }
            guard let lease else { throw CancellationError() }
            keep(digest, lease)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        let waiters = state.withLock { state in
            guard let found = state.flights[digest], found.number == flight else { return [Waiter]() }
            state.flights[digest] = nil
            return Array(found.waiters.values)
        }
        for waiter in waiters {
            switch result {
            case .success: waiter.finish()
            case .failure(let error): waiter.finish(throwing: error)
            }
        }
    }

    private func transfer(_ digest: ResourceDigest, _ size: Int64, _ flight: Int) async throws -> ResourceLease {
        let (resources, remote) = (remote.resources, remote)
        let writer = try await remote.blockingIO.run { try resources.writer(limit: size) }
        // Removes the file if it is not complete.
        defer { writer.cancel() }
        do {
            try await remote.client.download(RemoteStorage.key(digest), size: size) { [self] bytes in
                try writer.append(Array(bytes))
                advance(digest, flight, Double(writer.size) / Double(max(1, size)))
            }
            try Task.checkCancellation()
            let stored = try await remote.blockingIO.run(BlockingIOExecutor.lane(forBytes: size)) {
                try writer.finish(expecting: digest)
            }
            remote.downloaded(size)
            remote.note(nil)
            remote.wake()
            return stored.lease
        } catch let error as ObjectStoreError {
            if Task.isCancelled || error.problem == .cancelled { throw CancellationError() }
            if !error.problem.concernsObject {
                remote.note(error)
                // The rounds detect when the store answers again.
                remote.wake()
            }
            throw ResourceError.notDownloaded(digest, error)
        } catch StorageError.resourceChanged(let message) {
            let error = ObjectStoreError(.objectDamaged, message)
            remote.logger.error("an object at the store is damaged", metadata: ["digest": "\(digest)"])
            throw ResourceError.notDownloaded(digest, error)
        }
    }

    private func advance(_ digest: ResourceDigest, _ flight: Int, _ progress: Double) {
        state.withLock { state in
            guard let found = state.flights[digest], found.number == flight,
                progress - found.progress >= 0.01 || progress >= 1
            else { return }
            state.flights[digest]?.progress = progress
            for waiter in found.waiters.values { waiter.yield(progress) }
        }
    }

    /// Keeps local bytes for a moment: they are about to be used.
    private func keep(_ digest: ResourceDigest, _ lease: ResourceLease) {
        let now = MonotonicClock.system.nowMicroseconds()
        state.withLock { state in
            state.recent.removeAll { $0.end <= now }
            state.recent.append((digest, now + Self.grace, lease))
        }
    }

    /// Ends the lease of a recent download, because its bytes are to be removed.
    func endLease(of digest: ResourceDigest) { state.withLock { $0.recent.removeAll { $0.digest == digest } } }

    /// Ends the leases of downloads that are no longer new.
    func endOldLeases() {
        let now = MonotonicClock.system.nowMicroseconds()
        state.withLock { $0.recent.removeAll { $0.end <= now } }
    }
}
