import Basics
import Hosting
import Storage
import Synchronization

/// Removes local files beyond the budget, the least recently used first. Before a local file is removed, the object
/// store is asked once more whether it has the bytes.
final class LocalFileEvictor: Sendable {
    private let remote: RemoteStorage
    private let clock: MonotonicClock
    private let state = Mutex(State())

    private struct State {
        /// True if local files exceed the budget because they may not be removed yet.
        var isOver = false
        /// The earliest time of the next pass over all files.
        var next: Int64 = .min
        /// The earliest time of the next pass while imports wait for it.
        var nextIfBehind: Int64 = .min
        /// True if a pass was skipped because it was too early.
        var isDue = false
    }

    /// The number of files whose release is decided together.
    private static let batch = 64

    /// The minimum time between two passes over all files, in microseconds.
    private static let minPause: Int64 = 500_000
    /// The minimum time between two passes, as a multiple of the duration of a listing.
    private static let pausePerListingTime: Int64 = 20
    /// The time between two passes that only count the files, in microseconds.
    private static let countingPause: Int64 = 60_000_000

    init(_ remote: RemoteStorage, clock: MonotonicClock) {
        self.remote = remote
        self.clock = clock
    }

    /// The seconds until a pass is needed; nil if none is.
    var secondsUntilPass: Double? {
        let now = clock.nowMicroseconds()
        return state.withLock { state in
            guard state.isOver || state.isDue else { return nil }
            return max(state.isOver ? 2 : 0.1, Double(state.next - now) / 1_000_000)
        }
    }

    func run() async throws {
        let start = clock.nowMicroseconds()
        let isEarly = state.withLock { state in
            state.isDue = start < (remote.throttle.isBehind ? state.nextIfBehind : state.next)
            return state.isDue
        }
        guard !isEarly else { return }
        // The pause is a multiple of the time of the listing, so that listing takes a small part of the time. The time
        // of removals is not included: if there were many, the next pass would begin too late.
        var listing = Self.minPause / Self.pausePerListingTime
        defer {
            let pause =
                remote.options.policy == .all
                ? Self.countingPause : max(Self.minPause, Self.pausePerListingTime * listing)
            let end = clock.nowMicroseconds()
            state.withLock { state in
                state.next = end + pause
                state.nextIfBehind = end + listing
            }
        }
        let resources = remote.resources
        remote.throttle.beginListing()
        let files = try await remote.blockingIO.run(.long) {
            var files: [ResourceStore.LocalFile] = []
            try resources.forEachFile { files.append($0) }
            return files
        }
        listing = clock.nowMicroseconds() - start
        var total = files.reduce(0) { $0 + $1.size }
        remote.throttle.endListing(total)
        guard remote.options.policy == .optimize, total > remote.options.localBytes else {
            return state.withLock { $0.isOver = false }
        }
        // Local files are kept while a backup is made.
        guard !resources.areRemovalsSuspended else { return state.withLock { $0.isOver = true } }
        var rest = files.sorted { $0.lastUse < $1.lastUse }[...]
        while total > remote.options.localBytes, !rest.isEmpty, !Task.isCancelled {
            let batch = rest.prefix(Self.batch)
            rest = rest.dropFirst(Self.batch)
            let candidates = try await remote.store.read { reader in
                try batch.filter { try reader.uploadStates.isReleasable($0.digest) }
            }
            // As many files as are needed, if all of them can be removed.
            var remaining = total
            let chosen = candidates.prefix { file in
                defer { remaining -= file.size }
                return remaining > remote.options.localBytes
            }
            total -= try await remote.release(chosen.map(\.digest))
        }
        state.withLock { $0.isOver = total > remote.options.localBytes }
    }
}
