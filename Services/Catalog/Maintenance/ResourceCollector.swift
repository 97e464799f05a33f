import Basics
import Contracts
import Glibc
import Hosting
import JSONValue
import Logging
import ServiceLifecycle
import Storage
import Synchronization

/// Removes stored bytes that nothing refers to: those of deleted assets, of requests that were interrupted because the
/// catalog was killed, and of uploads that no asset used.
///
/// It scans the store in 256 parts, one at a time, and removes bytes that are unreferenced in two rounds at least
/// `after` apart, by the monotonic clock. A request that is about to refer to bytes holds a lease on them until its
/// transaction is committed, so bytes without a lease that the database does not name are not needed.
///
/// After a start with a database that may be older than the files, the files that were unreferenced at that time are
/// removed only by ``collect(_:identity:)``. The first round marks those that were stored before the time in
/// ``keptCounter``. Files that lose their references later are removed by the rounds.
final class ResourceCollector: Service, Sendable {
    private let store: LibraryStore
    private let resources: ResourceStore
    private let blockingIO: BlockingIOExecutor
    private let uploads: UploadRegistry
    private let clock: MonotonicClock
    /// The time in microseconds after which unreferenced bytes are removed.
    private let after: Int64
    private let logger: Logger
    private let state = Mutex(State())

    private struct State {
        /// The times at which bytes were first seen unreferenced, by part of the store.
        var firstSeen: [String: [ResourceDigest: Int64]] = [:]
        /// The number of files that are removed only on request, by part, while a round marks them.
        var keptCounts: [String: Int] = [:]
        var collected = 0
        var collectedBytes: Int64 = 0
        var waiting: Int { firstSeen.values.reduce(0) { $0 + $1.count } }
    }

    /// The maximum number of digests that wait for removal; others are found in a later round.
    static let maxWaiting = 100_000
    /// The counter with a time in microseconds since 1970: unreferenced files that were stored before it are marked and
    /// removed only on request, because the database may be older than they are. 0 without such files or after such a
    /// request.
    static let keptCounter = "collect.kept"
    /// The maximum time for one round through the store, in microseconds.
    private static let maxRoundTime: Int64 = 900_000_000

    init(
        store: LibraryStore,
        resources: ResourceStore,
        blockingIO: BlockingIOExecutor,
        uploads: UploadRegistry,
        clock: MonotonicClock,
        after: Int64,
        logger: Logger
    ) {
        self.store = store
        self.resources = resources
        self.blockingIO = blockingIO
        self.uploads = uploads
        self.clock = clock
        self.after = after
        self.logger = logger
    }

    var metrics: JSONObject {
        state.withLock {
            ["collected": JSON($0.collected), "collectedBytes": .int($0.collectedBytes), "waiting": JSON($0.waiting)]
        }
    }

    func run() async throws {
        let round = min(Self.maxRoundTime, max(1_000_000, after / 2))
        await cancelWhenGracefulShutdown { [self] in
            var next = 0
            for await _ in TaskDelay.ticks(every: .microseconds(round / Int64(ResourceStore.parts.count))) {
                let part = ResourceStore.parts[next]
                next = (next + 1) % ResourceStore.parts.count
                do {
                    if next == 0 { await uploads.removeExpired() }
                    try await collectPart(part)
                } catch {
                    if Task.isCancelled { return }
                    logger.warning(
                        "unreferenced bytes could not be collected",
                        metadata: ["part": "\(part)", "error": "\(error)"]
                    )
                }
            }
        }
    }

    /// Implements `library.collect`: runs a round now.
    func collect(_ request: CollectLibrary, identity: String) async throws -> CollectLibrary.Result {
        try ServiceIdentities.checkOwner(identity, to: "collect bytes")
        if !request.isDryRun, resources.areRemovalsSuspended {
            throw MaintenanceError.collectionDuringBackup
        }
        var result = CollectLibrary.Result()
        for part in ResourceStore.parts {
            try Task.checkCancellation()
            let candidates = try await findUnreferenced(in: part)
            for candidate in candidates where request.isDryRun {
                result.count += 1
                result.bytes += candidate.size
            }
            guard !request.isDryRun else { continue }
            let removed = try await remove(candidates)
            result.count += removed.count
            result.bytes += removed.bytes
        }
        // The marked files were removed above, so the rounds need not mark any.
        if !request.isDryRun, try await store.read({ try $0.counter(Self.keptCounter) }) != 0 {
            try await store.remember(0, as: Self.keptCounter)
        }
        return result
    }

    /// Removes the bytes of a refused request, unless something else refers to them.
    ///
    /// Continues if the request is cancelled, for example because its client has ended.
    func discard(_ digests: [ResourceDigest]) async {
        guard !digests.isEmpty else { return }
        await Task { await discardNow(digests) }.value
    }

    private func discardNow(_ digests: [ResourceDigest]) async {
        do {
            let (resources, store) = (resources, store)
            let tickets = Set(digests).compactMap { digest in
                resources.removalTicket(digest).map { Candidate(digest: digest, size: 0, ticket: $0) }
            }
            let free = try await store.read { reader in
                try tickets.filter { try !reader.references.contains($0.digest) }
            }
            _ = try await remove(free)
        } catch {
            logger.info("bytes of a refused request are left to the collector", metadata: ["error": "\(error)"])
        }
    }

    // MARK: Helpers

    /// Bytes without a lease that the database does not name, with the removal ticket at that time.
    private struct Candidate: Sendable {
        let digest: ResourceDigest
        let size: Int64
        let ticket: UInt64
        /// The time at which the file was stored, last read or last linked, in microseconds since 1970.
        var changedAt: Int64 = .max
        /// True if the file is removed only on request.
        var isKept = false
    }

    private func collectPart(_ part: String) async throws {
        let now = clock.nowMicroseconds()
        let candidates = try await excludeKept(try await findUnreferenced(in: part), in: part)
        let due = state.withLock { state in
            let before = state.firstSeen[part] ?? [:]
            let capacity = Self.maxWaiting - state.waiting + before.count
            var seen: [ResourceDigest: Int64] = [:]
            for candidate in candidates.prefix(max(0, capacity)) {
                seen[candidate.digest] = before[candidate.digest] ?? now
            }
            state.firstSeen[part] = seen.isEmpty ? nil : seen
            return candidates.filter { seen[$0.digest].map { now - $0 >= after } ?? false }
        }
        guard !due.isEmpty else { return }
        let removed = try await remove(due)
        guard removed.count > 0 else { return }
        logger.info(
            "unreferenced bytes collected",
            metadata: ["files": "\(removed.count)", "bytes": "\(removed.bytes)"]
        )
    }

    /// Returns the unreferenced bytes of a part. Their tickets are read before the database: bytes that get a reference
    /// afterwards were published again and have a new ticket.
    ///
    /// A file that was marked to be kept and has a reference now loses its mark.
    private func findUnreferenced(in part: String) async throws -> [Candidate] {
        let resources = resources
        let stored = try await blockingIO.run {
            try resources.digests(in: part).compactMap { digest, file in
                resources.removalTicket(digest).map {
                    Candidate(
                        digest: digest,
                        size: file.size,
                        ticket: $0,
                        changedAt: file.changedAt,
                        isKept: file.isKept
                    )
                }
            }
        }
        guard !stored.isEmpty else { return [] }
        let named = try await store.read { try $0.references.digests(in: part) }
        let used = stored.filter { $0.isKept && named.contains($0.digest) }
        if !used.isEmpty { try await blockingIO.run { for file in used { resources.endKeeping(file.digest) } } }
        return stored.filter { !named.contains($0.digest) }
    }

    /// Returns the unreferenced bytes of a part without those that are removed only on request. If changes may have
    /// been lost, it first marks the files that existed at that time; this ends with a complete round.
    ///
    /// The round is recorded in the store, and not in the database, which several catalogs with stores of their own may
    /// share.
    private func excludeKept(_ candidates: [Candidate], in part: String) async throws -> [Candidate] {
        let resources = resources
        let time = try await store.read { Int64(try $0.counter(Self.keptCounter)) }
        let loss = "\(store.historyID) \(time)"
        let notedLoss = try await blockingIO.run { resources.notedLoss() }
        guard time > 0, notedLoss != loss else {
            return candidates.filter { !$0.isKept }
        }
        let kept = try await blockingIO.run {
            // A file with a time in the future was stored while the clock was ahead.
            let now = WallClock.nowMicroseconds()
            let kept = candidates.filter { file in
                file.isKept || file.changedAt <= time || !resources.wasCreated(file.digest, after: time, until: now)
            }
            for file in kept where !file.isKept { try resources.keep(file.digest) }
            return Set(kept.map(\.digest))
        }
        let count = state.withLock { state -> Int? in
            state.keptCounts[part] = kept.count
            return state.keptCounts.count == ResourceStore.parts.count ? state.keptCounts.values.reduce(0, +) : nil
        }
        if let count {
            try await blockingIO.run { try resources.noteLoss(loss) }
            if count > 0 {
                logger.notice(
                    "files that an older database may lack are kept until `safelight doctor --collect`",
                    metadata: ["files": "\(count)"]
                )
            }
        }
        return candidates.filter { !kept.contains($0.digest) }
    }

    private func remove(_ candidates: [Candidate]) async throws -> (count: Int, bytes: Int64) {
        guard !candidates.isEmpty else { return (0, 0) }
        let resources = resources
        let removed = try await blockingIO.run {
            var removed: (count: Int, bytes: Int64) = (0, 0)
            for candidate in candidates {
                guard let bytes = try resources.remove(candidate.digest, ifStillAt: candidate.ticket) else { continue }
                removed.count += 1
                removed.bytes += bytes
            }
            return removed
        }
        state.withLock { state in
            state.collected += removed.count
            state.collectedBytes += removed.bytes
        }
        return removed
    }
}
