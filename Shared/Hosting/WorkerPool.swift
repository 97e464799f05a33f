public import JSONValue
public import Logging
import Synchronization

/// A fixed number of worker processes that do what must not be done in a service: decoding bytes nobody trusts.
///
/// A worker that crashes, hangs or is killed fails only the job it had, with a named error, and is replaced at once.
/// All blocking goes on in threads of the pool's own, one per worker, never on Swift's. A pool that was started lives
/// until ``stop(graceSeconds:)``.
public final class WorkerPool: Sendable {
    /// The executable of this very process.
    public static let ownExecutable = "/proc/self/exe"

    let logger: Logger
    let limits: WorkerLimits
    /// How many workers.
    let count: Int
    let command: WorkerCommand
    let state: Mutex<State>

    struct Ticket {
        let id: UInt64
        let job: WorkerJob
        let priority: WorkerPriority
        let wallSeconds: Int
        let continuation: CheckedContinuation<Result<WorkerResult, WorkerFailure>, Never>
        /// How often its worker turned out to be gone: at most once for each seat, should all be killed at one moment.
        var timesPutBack = 0
    }

    struct State: ~Copyable {
        enum Stage { case idle, running, stopping, stopped }
        var stage = Stage.idle
        var queue: WorkerQueue<Ticket>
        var seats: [SeatState]
        var nextID: UInt64 = 0
        /// Cancelled before they reached the queue.
        var cancelledEarly: Set<UInt64> = []
        var stopDeadline = Int64.max
        var startWaiter: CheckedContinuation<Void, Never>?
        var stopWaiters: [CheckedContinuation<Void, Never>] = []
        var counts = Counts()
        /// As the worker that was started last reports it.
        var confinement: Confinement?
    }

    struct SeatState {
        enum Stage: Equatable { case starting, idle, busy(UInt64), backingOff, ended }
        var stage = Stage.starting
        var bell: WorkerBell
        var pid: Int32 = 0
        var isCancelled = false
        /// Whether the first start is known to have succeeded or failed.
        var isKnown = false
        var failures = 0
        var problem = ""
    }

    struct Counts {
        var started = 0, completed = 0, refused = 0, crashed = 0, timedOut = 0, cancelled = 0
        var retired = 0, startFailures = 0, rejected = 0
    }

    /// A pool; nothing is started yet.
    ///
    /// - Parameters:
    ///   - executable: the program, by default this one.
    ///   - arguments: its arguments, by default the hidden subcommand `worker`.
    ///   - environment: variables beside the few that workers inherit (paths, locale, ImageMagick's and Swift's).
    ///   - count: how many workers, 1...64.
    ///   - limits: what each may use.
    ///   - queueLimit: how many jobs may wait; the next one is refused.
    ///   - logger: gets starts, ends and what workers write to their standard error.
    public init(
        executable: String = WorkerPool.ownExecutable,
        arguments: [String] = ["worker"],
        environment: [String: String] = [:],
        count: Int,
        limits: WorkerLimits = WorkerLimits(),
        queueLimit: Int = 256,
        logger: Logger
    ) {
        self.logger = logger
        self.limits = limits
        self.command = WorkerCommand(
            executable: executable,
            arguments: arguments,
            additions: environment,
            limits: limits
        )
        let seats = (0..<min(max(1, count), 64)).map { _ in SeatState(bell: WorkerBell()) }
        self.count = seats.count
        self.state = Mutex(State(queue: WorkerQueue(limit: max(1, queueLimit)), seats: seats))
    }

    /// Starts all workers and waits until each is ready or has failed.
    ///
    /// Throws ``WorkerFailure/unavailable(_:)`` where none could be started; the pool is stopped then.
    public func start() async throws(WorkerFailure) {
        let count = state.withLock { state -> Int in
            guard state.stage == .idle else { return 0 }
            state.stage = .running
            return state.seats.count
        }
        guard count > 0 else { throw .unavailable("the pool was started before") }
        for index in 0..<count {
            let bell = state.withLock { $0.seats[index].bell }
            if !WorkerSeat.start(pool: self, index: index, bell: bell) {
                seatFailed(index, failures: 1, problem: "no thread can be started")
                seatEnded(index)
            }
        }
        await withCheckedContinuation { continuation in
            let isKnown = state.withLock { state in
                if state.allKnown { return true }
                state.startWaiter = continuation
                return false
            }
            if isKnown { continuation.resume() }
        }
        let problem = state.withLock { state -> String? in
            state.seats.contains { $0.failures == 0 } ? nil : state.seats.first?.problem
        }
        if let problem {
            await stop(graceSeconds: 0)
            throw .unavailable(problem)
        }
    }

    /// Has a job done.
    ///
    /// Returns or throws once nothing of the job is under way any more: its descriptors may be closed then. Where the
    /// calling task is cancelled, a waiting job is dropped and a running one ends with its worker.
    ///
    /// - Parameters:
    ///   - job: what to do.
    ///   - priority: which waiting jobs it may pass.
    ///   - wallSeconds: the most time it may take, where less or more than ``WorkerLimits/wallSeconds``.
    /// - Returns: the worker's answer.
    /// - Throws: ``WorkerFailure``.
    public func run(_ job: WorkerJob, priority: WorkerPriority = .normal, wallSeconds: Int? = nil)
        async throws(WorkerFailure) -> WorkerResult
    {
        guard job.files.count <= 16, job.attachments.count <= WorkerFrame.mostAttachments else {
            throw .refused(name: "invalid_request", message: "a job has at most 16 files and 64 attachments")
        }
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let seconds = max(1, wallSeconds ?? limits.wallSeconds)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                enqueue(
                    Ticket(id: id, job: job, priority: priority, wallSeconds: seconds, continuation: continuation)
                )
            }
        } onCancel: {
            cancel(id)
        }
        state.withLock { _ = $0.cancelledEarly.remove(id) }
        return try outcome.get()
    }

    /// What keeps the workers from everything but their jobs; nil where none has reported it.
    public var confinement: Confinement? { state.withLock { $0.confinement } }

    /// Starts one worker and ends it again: whether any can be started, for `--check`.
    ///
    /// - Returns: in words, what confines it.
    public static func check(
        executable: String = WorkerPool.ownExecutable,
        limits: WorkerLimits,
        logger: Logger
    ) async throws -> String {
        let pool = WorkerPool(executable: executable, count: 1, limits: limits, logger: logger)
        try await pool.start()
        await pool.stop(graceSeconds: 1)
        return pool.confinement?.description ?? "nothing"
    }

    /// Ends all workers and waits until they are gone.
    ///
    /// Waiting jobs fail with `worker_unavailable`; running ones have
    /// `graceSeconds` to finish.
    public func stop(graceSeconds: Int = 5) async {
        let deadline = MonotonicTime.now().after(seconds: max(0, graceSeconds))
        let dropped = state.withLock { state -> [Ticket] in
            guard state.stage == .running else {
                if state.stage == .idle { state.stage = .stopped }
                return []
            }
            state.stage = .stopping
            state.stopDeadline = deadline.microseconds
            for seat in state.seats { seat.bell.ring() }
            return state.queue.removeAll()
        }
        for ticket in dropped {
            ticket.continuation.resume(returning: .failure(.unavailable("the service is stopping")))
        }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.stage == .stopped { return true }
                state.stopWaiters.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// What the pool has done and holds now, for the `figures` method.
    public func figures() -> JSONObject {
        state.withLock { state in
            let counts = state.counts
            func seats(_ isCounted: (SeatState.Stage) -> Bool) -> JSON {
                JSON(state.seats.count { isCounted($0.stage) })
            }
            return [
                "workers": JSON(state.seats.count),
                "idle": seats { $0 == .idle },
                "busy": seats { if case .busy = $0 { true } else { false } },
                "backingOff": seats { $0 == .backingOff },
                "queued": JSON(state.queue.count),
                "queueLimit": JSON(state.queue.limit),
                "started": JSON(counts.started),
                "startFailures": JSON(counts.startFailures),
                "completed": JSON(counts.completed),
                "refused": JSON(counts.refused),
                "crashed": JSON(counts.crashed),
                "timedOut": JSON(counts.timedOut),
                "cancelled": JSON(counts.cancelled),
                "rejected": JSON(counts.rejected),
                "retired": JSON(counts.retired),
                "confinement": state.confinement.map { .string("\($0)") } ?? .null,
                "pids": .array(state.seats.filter { $0.pid > 0 }.map { JSON(Int($0.pid)) }),
            ]
        }
    }

    // MARK: The queue

    private func enqueue(_ ticket: Ticket) {
        let failure = state.withLock { state -> WorkerFailure? in
            if state.cancelledEarly.contains(ticket.id) { return .cancelled }
            switch state.stage {
            case .idle: return .unavailable("the pool was not started")
            case .stopping, .stopped: return .unavailable("the service is stopping")
            case .running: break
            }
            if let problem = state.hopeless { return .unavailable(problem) }
            guard state.queue.append(ticket, id: ticket.id, priority: ticket.priority) else {
                state.counts.rejected += 1
                return .queueFull(limit: state.queue.limit)
            }
            state.seats.first { $0.stage == .idle }?.bell.ring()
            return nil
        }
        if let failure { ticket.continuation.resume(returning: .failure(failure)) }
    }

    private func cancel(_ id: UInt64) {
        let dropped = state.withLock { state -> Ticket? in
            if let ticket = state.queue.remove(id) {
                state.counts.cancelled += 1
                return ticket
            }
            if let index = state.seats.firstIndex(where: { $0.stage == .busy(id) }) {
                state.seats[index].isCancelled = true
                state.seats[index].bell.ring()
            } else {
                state.cancelledEarly.insert(id)
            }
            return nil
        }
        dropped?.continuation.resume(returning: .failure(.cancelled))
    }
}

extension WorkerPool.State {
    var allKnown: Bool { seats.allSatisfy(\.isKnown) }

    /// Why no job can be done for now: every worker failed to start several times in a row.
    var hopeless: String? {
        seats.allSatisfy { $0.failures >= 3 } ? seats.first?.problem : nil
    }
}
