import Basics
import Hosting
import ObjectStorage
import Storage
import Synchronization

/// Deletes objects to which the library no longer refers from the object store, after the same time as the collector of
/// local files. In a versioned bucket, the object store keeps their earlier versions.
final class RemoteCollector: Sendable {
    private let remote: RemoteStorage
    private let clock: MonotonicClock
    /// Microseconds without a reference after which an object is deleted.
    private let after: Int64
    private let state = Mutex(State())

    private struct State {
        /// The time of the next round.
        var next: Int64 = 0
        /// The times at which bytes were first seen unreferenced.
        var seen: [ResourceDigest: Int64] = [:]
    }

    /// The maximum number of objects of one round; others are found in a later one.
    private static let maxPerRound = 1000
    /// The maximum time between two rounds, in microseconds.
    private static let maxInterval: Int64 = 900_000_000

    init(_ remote: RemoteStorage, clock: MonotonicClock, after: Int64) {
        self.remote = remote
        self.clock = clock
        self.after = after
    }

    /// The time between two rounds, in microseconds.
    private var interval: Int64 { min(Self.maxInterval, max(1_000_000, after / 2)) }

    /// The seconds until the next round is due.
    var secondsUntilRound: Double {
        let now = clock.nowMicroseconds()
        return state.withLock { max(0.5, Double($0.next - now) / 1_000_000) }
    }

    /// Runs a round if it is due. No object is deleted during a backup.
    func run() async throws {
        let now = clock.nowMicroseconds()
        let isDue = state.withLock { state in
            guard now >= state.next else { return false }
            state.next = now + interval
            return true
        }
        guard isDue, !remote.resources.areRemovalsSuspended else { return }
        // Only this task deletes objects, so no deletion of these objects is running.
        if try await remote.store.changeUploadStates({ try $0.registerReferenced() }) > 0 { remote.wake() }
        let found = try await remote.store.read { try $0.uploadStates.unreferenced(limit: Self.maxPerRound) }
        let due = state.withLock { state in
            let before = state.seen
            state.seen = Dictionary(uniqueKeysWithValues: found.map { ($0, before[$0] ?? now) })
            return found.filter { now - (state.seen[$0] ?? now) >= after }
        }
        for digest in due where !Task.isCancelled {
            _ = try await remote.exclusive.withPermit(for: 1) { try await self.delete(digest) }
        }
    }

    private func delete(_ digest: ResourceDigest) async throws {
        // A request that is about to refer to the bytes has a lease.
        guard remote.resources.removalTicket(digest) != nil else { return }
        let isConfirmed = try await remote.store.read { try $0.uploadStates.remoteSize(of: digest) != nil }
        guard try await remote.store.changeUploadStates({ try $0.beginDeleting(digest) }) else { return }
        // The object store may have parts of an upload that was interrupted when the catalog was killed.
        if !isConfirmed { try? await remote.client.abortUploads(of: RemoteStorage.key(digest)) }
        try await remote.client.delete(RemoteStorage.key(digest))
        try await remote.store.changeUploadStates { try $0.endDeleting(digest) }
        state.withLock { $0.seen[digest] = nil }
    }
}
