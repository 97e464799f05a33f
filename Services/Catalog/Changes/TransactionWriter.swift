import Basics
import Contracts
import Dispatch
import Hosting
import JSONValue
import Logging
import PhotoModel
import Storage
import Synchronization

/// Commits transactions in groups: everything that waits is committed together, up to a limit.
///
/// It runs on a thread of its own, which also makes the replies to small changes. Clients are served in turn: one with
/// many waiting transactions does not delay those of another one. A result is returned after the commit is durable and
/// the head file has been written.
final class TransactionWriter: Sendable {
    /// The limits of the queue and of one commit.
    struct Limits: Sendable {
        /// The maximum number of waiting transactions; further ones are refused as `busy`, except those of the catalog
        /// itself, among them decisions about access.
        var waiting = 1024
        /// The number of transactions of each source that may wait although the queue is full.
        var waitingAlways = 8
        /// The maximum number of transactions in one commit.
        var batch = 128
        /// The maximum number of entities that the transactions of one commit name, except that the first is always
        /// included.
        var batchWeight = 512
    }

    /// A waiting transaction. A class, so that moving it from the queue to the commit copies only a reference.
    private final class PendingWrite: Sendable {
        let write: WriteRequest
        let continuation: CheckedContinuation<Result<PerformedWrite, WriteFailure>, Never>

        init(_ write: WriteRequest, _ continuation: CheckedContinuation<Result<PerformedWrite, WriteFailure>, Never>) {
            self.write = write
            self.continuation = continuation
        }
    }

    private struct State {
        var pending = FairQueue<WorkSource, PendingWrite>()
        var isScheduled = false
        var isStopping = false
        var headSyncDue = Int64.min
        var metrics = WriterMetrics()
        var problem: String?
        /// The throttle of each message about a failure.
        var failureLogs: [String: LogThrottle] = [:]
    }

    private let store: LibraryStore
    private let tail: ChangeLogTail
    let retention: RetentionPolicy
    private let context: GroupCommit.WriteContext
    private let limits: Limits
    /// Receives each committed transaction before its client and the followers do.
    private let whenCommitted: @Sendable (PerformedWrite) -> Void
    private let logger: Logger
    private let clock: MonotonicClock
    /// Receives failures of the disk; returns the error of the cause if it is known.
    private let onDiskFailure: @Sendable (StorageError) -> RPCError?
    /// Called after the first commit that succeeds after such a failure.
    private let onDiskRecovery: @Sendable () -> Void
    /// The thread of the commits.
    let executor = WriterExecutor()
    private let state = Mutex(State())

    init(
        store: LibraryStore,
        tail: ChangeLogTail,
        retention: RetentionPolicy,
        context: GroupCommit.WriteContext,
        limits: Limits = Limits(),
        whenCommitted: @escaping @Sendable (PerformedWrite) -> Void = { _ in },
        logger: Logger,
        clock: MonotonicClock = .system,
        onDiskFailure: @escaping @Sendable (StorageError) -> RPCError? = { _ in nil },
        onDiskRecovery: @escaping @Sendable () -> Void = {}
    ) {
        self.onDiskFailure = onDiskFailure
        self.onDiskRecovery = onDiskRecovery
        self.store = store
        self.tail = tail
        self.retention = retention
        self.context = context
        self.limits = limits
        self.whenCommitted = whenCommitted
        self.logger = logger
        self.clock = clock
    }

    /// The counters for the method `figures`.
    var metrics: WriterMetrics { state.withLock { $0.metrics } }

    var queueDepth: Int { state.withLock { $0.pending.count } }

    /// The error of the last commit; nil if it succeeded.
    var problem: String? {
        // A commit that failed before another catalog took over is not a problem of this standby: it makes none.
        let isStandby = store.election?.refusal != nil
        return state.withLock { state in
            if isStandby { state.problem = nil }
            return state.problem
        }
    }

    /// Performs a transaction, grouped with others that wait; returns after the commit.
    func perform(_ write: WriteRequest) async throws(WriteFailure) -> PerformedWrite {
        if let refusal = store.election?.refusal { throw .refused(CatalogErrorMapping.rpcError(refusal)) }
        let result = await withCheckedContinuation { continuation in
            let (isAccepted, isFirst) = state.withLock { state in
                guard
                    state.pending.count < limits.waiting || write.source == .service
                        || state.pending.count(of: write.source) < limits.waitingAlways
                else { return (false, false) }
                state.pending.append(PendingWrite(write, continuation), from: write.source)
                defer { state.isScheduled = true }
                return (true, !state.isScheduled)
            }
            if !isAccepted {
                let error = CatalogError.tooManyTransactions(limit: limits.waiting)
                continuation.resume(returning: .failure(failure(error)))
            }
            if isFirst { schedule() }
        }
        return try result.get()
    }

    /// Stops deleting old records, so that the database can close soon; the rest is left for the next start.
    /// Transactions are performed as before.
    func stopTrimming() { state.withLock { $0.isStopping = true } }

    private func schedule() { executor.async { [self] in run() } }

    private func run() {
        let start = clock.nowMicroseconds()
        // Old records are deleted a few at a time, between commits and while there is nothing else to do.
        let trims = retention.isDue(start) && !state.withLock { $0.isStopping } && store.election?.refusal == nil
        if trims || queueDepth > 0 {
            store.withWriter { connection in
                let group = GroupCommit(database: connection, context: context)
                if trims { trim(group) }
                let batch = nextBatch()
                if !batch.isEmpty { commit(batch, in: group) }
            }
        }
        // Queued after the tasks that the commit has resumed, so that their replies do not wait for the disk or for the
        // next commit.
        executor.async { [self] in
            syncHead(at: start)
            checkpointIfDue()
            if !stopsWhenIdle() { schedule() }
        }
    }

    private func nextBatch() -> [PendingWrite] {
        state.withLock { state in
            var batch: [PendingWrite] = []
            var weight = 0
            while batch.count < limits.batch {
                let next = state.pending.popFirst { next in
                    weight += next.write.weight
                    return batch.isEmpty || weight <= limits.batchWeight
                }
                guard let next else { break }
                batch.append(next)
            }
            return batch
        }
    }

    /// Returns true and ends the loop if nothing has arrived meanwhile and no old records are left to delete.
    private func stopsWhenIdle() -> Bool {
        state.withLock { state in
            guard state.pending.isEmpty, state.isStopping || !retention.hasMore else { return false }
            state.isScheduled = false
            return true
        }
    }

    private func commit(_ batch: [PendingWrite], in group: GroupCommit) {
        let start = clock.nowMicroseconds()
        do {
            let (committed, head) = try group.commit(
                batch.map(\.write),
                isDatabaseFailure: { store.storageError($0) != nil }
            )
            if head.sequence != tail.head { rememberHead(head) }
            let duration = clock.nowMicroseconds() - start
            var records: [CommittedRecord] = []
            var results: [Result<PerformedWrite, WriteFailure>] = []
            for result in committed {
                switch result {
                case .success(let performed):
                    if let record = performed.record { records.append(record) }
                    whenCommitted(performed)
                    results.append(.success(performed))
                case .failure(let error): results.append(.failure(failure(error)))
                }
            }
            let hadFailed = state.withLock { state in
                defer { state.problem = nil }
                state.metrics.noteCommit(results, microseconds: duration)
                return state.problem != nil
            }
            if hadFailed { onDiskRecovery() }
            store.database.noteCommitted(head.sequence)
            tail.append(records, head: head.sequence)
            for (waiting, result) in zip(batch, results) { waiting.continuation.resume(returning: result) }
        } catch {
            let refusal = rpcError(forBatch: error)
            state.withLock { state in
                state.problem = refusal.message
                state.metrics.failedCommits += 1
            }
            report("a commit failed", error)
            let failure: WriteFailure = isRefusal(error) ? .refused(refusal) : .unknown(refusal)
            for waiting in batch { waiting.continuation.resume(returning: .failure(failure)) }
        }
    }

    /// Logs a failure, each kind at most once a second: on a full disk every change of every client fails, and the log
    /// may be on that disk.
    private func report(_ message: String, _ error: any Error) {
        let now = clock.nowMicroseconds()
        guard let count = state.withLock({ $0.failureLogs[message, default: LogThrottle()].count(at: now) }) else {
            return
        }
        logger.error("\(message)", metadata: ["error": "\(error)", "failures": "\(count)"])
    }

    /// Writes the newest sequence to the head file, in place and without waiting for the disk. The commit is valid in
    /// any case: with a head file that lags, fewer restored copies are detected.
    private func rememberHead(_ head: LibraryHead) {
        do throws(StorageError) {
            try store.headFile.store(library: head.library, sequence: head.sequence, isDurable: false)
        } catch {
            report("cannot write the head file", error)
        }
    }

    /// Syncs the head file between two commits, at most once every ``headSyncInterval``.
    private func syncHead(at now: Int64) {
        guard state.withLock({ $0.headSyncDue <= now }) else { return }
        do throws(StorageError) {
            try store.headFile.sync()
        } catch {
            report("cannot sync the head file", error)
        }
        state.withLock { $0.headSyncDue = now.addingReportingOverflow(Self.headSyncInterval).partialValue }
    }

    /// Writes a large log into the database between two commits, after the replies of the first.
    private func checkpointIfDue() {
        do throws(StorageError) {
            try store.checkpointIfDue()
        } catch {
            report("cannot write the log into the database", error)
        }
    }

    /// The minimum time between two syncs, in microseconds.
    private static let headSyncInterval: Int64 = 100_000

    private func failure(_ error: any Error) -> WriteFailure {
        switch error {
        case is RPCError, is any RefusedRequest: return .refused(CatalogErrorMapping.rpcError(error))
        case is MissingMetadataError: return .metadataNeeded
        default:
            report("a transaction failed", error)
            return .refused(CatalogErrorMapping.rpcError(CatalogError.transactionFailed))
        }
    }

    /// Returns true if nothing of a batch was committed; false if it may have been, after a lost connection or a
    /// failure of the disk.
    private func isRefusal(_ error: any Error) -> Bool {
        switch store.storageError(error) {
        case .notEnoughSpace?, .busy?, .readOnly?: true
        case nil: error is CatalogError
        default: false
        }
    }

    private func rpcError(forBatch error: any Error) -> RPCError {
        if let error = error as? CatalogError { return CatalogErrorMapping.rpcError(error) }
        guard let failure = store.storageError(error) else {
            return CatalogErrorMapping.rpcError(CatalogError.commitFailed)
        }
        return onDiskFailure(failure) ?? CatalogErrorMapping.rpcError(failure)
    }

    // MARK: Retention

    private func trim(_ group: GroupCommit) {
        do {
            // While the wall clock is behind the retention time, new records have the time of the wall clock.
            let hasMore = try group.trim(retention, now: min(context.retentionTime, context.now()))
            retention.noteStep(hasMore: hasMore, at: clock.nowMicroseconds())
        } catch {
            retention.noteStep(hasMore: false, at: clock.nowMicroseconds())
            logger.error("cannot delete old change records", metadata: ["error": "\(error)"])
        }
    }
}

/// The thread on which transactions are committed, and on which the tasks of small changes continue after the commit,
/// so that a reply is made without changing threads.
final class WriterExecutor: Sendable {
    /// A serial queue, used as one thread that exists only while there is work.
    private let queue = DispatchQueue(label: "writer")

    /// Runs work after everything that is already queued. It may block.
    func async(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }
}

// MARK: - Metrics

/// The writer's counters.
struct WriterMetrics: Sendable {
    var commits = 0
    var transactions = 0
    var refused = 0
    var repeats = 0
    var failedCommits = 0
    var largestBatch = 0
    /// The durations of the last commits in microseconds.
    private var durations: [Int64] = []
    private var position = 0
    private static let maxDurations = 1024

    mutating func noteCommit(_ results: [Result<PerformedWrite, WriteFailure>], microseconds: Int64) {
        commits += 1
        largestBatch = max(largestBatch, results.count)
        for result in results {
            switch result {
            case .success(let performed) where performed.isRepeat: repeats += 1
            case .success(let performed) where performed.isIdle: break
            case .success: transactions += 1
            case .failure: refused += 1
            }
        }
        if durations.count < Self.maxDurations {
            durations.append(microseconds)
        } else {
            durations[position] = microseconds
            position = (position + 1) % Self.maxDurations
        }
    }

    var json: JSONObject {
        let sorted = durations.sorted()
        func quantile(_ fraction: Double) -> JSON {
            sorted.isEmpty ? .null : .int(sorted[min(sorted.count - 1, Int(Double(sorted.count) * fraction))])
        }
        return [
            "commits": JSON(commits), "transactions": JSON(transactions), "refused": JSON(refused),
            "repeats": JSON(repeats), "failedCommits": JSON(failedCommits), "largestBatch": JSON(largestBatch),
            "commitMicrosecondsP50": quantile(0.5), "commitMicrosecondsP99": quantile(0.99),
        ]
    }
}
