import Basics
import Hosting
import ObjectStorage
import Storage
import Synchronization

/// Deletes objects at the store to which the library no longer refers, after the same time as the collector of local
/// files. In a versioned bucket, the store keeps their earlier versions.
final class RemoteCollector: Sendable {
    private let remote: RemoteStorage
    private let clock: MonotonicClock
    /// Microseconds without a reference after which an object is deleted.
    private let after: Int64
    private let state = Mutex(State())

    private struct State {
        var next: Int64 = 0
        /// The times at which bytes were first seen unreferenced.
        var seen: [ResourceDigest: Int64] = [:]
    }

    /// The maximum number of objects of one round; others are found in a later one.
    private static let most = 1000
    /// The maximum time between two rounds, in microseconds.
    private static let longestRound: Int64 = 900_000_000

    init(_ remote: RemoteStorage, clock: MonotonicClock, after: Int64) {
        self.remote = remote
        self.clock = clock
        self.after = after
    }

    /// The time between two rounds.
    private var interval: Int64 { min(Self.longestRound, max(1_000_000, after / 2)) }

    /// The seconds until the next round is due.
    var pause: Double {
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
        guard isDue, !remote.resources.isHeld else { return }
        // Only this task deletes, so none of these deletions is running.
        if try await remote.store.changeRemoteObjects({ try $0.registerReferenced() }) > 0 { remote.wake() }
        let found = try await remote.store.read { try $0.remoteObjects.unreferenced(limit: Self.most) }
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
        let isConfirmed = try await remote.store.read { try $0.remoteObjects.remoteSize(of: digest) != nil }
        guard try await remote.store.changeRemoteObjects({ try $0.beginDeleting(digest) }) else { return }
        // The store may have parts of an upload that a kill has interrupted.
        if !isConfirmed { try? await remote.client.abortUploads(of: RemoteStorage.key(digest)) }
        try await remote.client.delete(RemoteStorage.key(digest))
        try await remote.store.changeRemoteObjects { try $0.endDeleting(digest) }
        state.withLock { $0.seen[digest] = nil }
    }
}
