import Basics
public import JSONValue
public import Logging
import Synchronization

/// A fixed number of worker processes that decode untrusted bytes, which must not happen in a service.
///
/// All of them are started with the pool, and run while there is work. A worker without a job for a while ends, except
/// for a few that stay, so that an idle service needs little memory.
///
/// A worker that crashes, hangs or is killed fails only its job, with a named error, and is replaced at once. Blocking
/// calls run on the pool's own threads, one per worker, never on those of Swift concurrency. A started pool runs until
/// ``stop(graceSeconds:)``.
public final class WorkerPool: Sendable {
    /// The executable of this process.
    public static let ownExecutable = "/proc/self/exe"
    /// Maximum number of workers of a pool.
    public static let maxCount = 64

    let logger: Logger
    let limits: WorkerLimits
    /// Number of workers.
    let count: Int
    let command: WorkerLaunch
    /// The time without a job after which a worker ends, in microseconds.
    let idleTime: Int64
    /// The number of workers that stay without a job.
    let keptWorkers: Int
    let state: Mutex<State>
    /// Signalled when the threads of all slots have ended.
    let stopped = OneTimeEvent()

    struct Ticket {
        let id: UInt64
        let job: WorkerJob
        let source: WorkSource
        let priority: WorkerPriority
        let wallSeconds: Int
        let outcome = Promise<Result<WorkerResult, WorkerFailure>>()
        /// The attempts whose worker had already ended: at most one for each slot, if all workers are killed at the
        /// same time.
        var requeueCount = 0
    }

    struct State: ~Copyable {
        enum Stage { case idle, running, stopping, stopped }
        var stage = Stage.idle
        /// Fulfilled when the outcome of every slot's first start is known.
        var started = Promise<Void>()
        var queue: WorkerQueue<Ticket>
        var slots: [SlotState]
        var nextID: UInt64 = 0
        var stopDeadline = Int64.max
        var counts = Counts()
        /// The confinement reported by the most recently started worker.
        var confinement: Confinement?
    }

    struct SlotState {
        enum Stage: Equatable { case starting, idle, busy(UInt64), backingOff, ended }
        var stage = Stage.starting
        var wakeup: EventDescriptor
        var pid: Int32 = 0
        var isCancelled = false
        /// True if the outcome of the first start is known.
        var isKnown = false
        var failures = 0
        var problem = ""
    }

    struct Counts {
        var started = 0, completed = 0, refused = 0, crashed = 0, timedOut = 0, cancelled = 0
        var retired = 0, endedIdle = 0, startFailures = 0, rejected = 0
    }

    /// Creates a pool without starting it.
    ///
    /// - Parameters:
    ///   - executable: path of the program, by default this one.
    ///   - arguments: its arguments, by default the hidden subcommand `worker`.
    ///   - environment: variables in addition to the inherited ones (paths, locale, ImageMagick's and Swift's).
    ///   - count: number of workers, 1...``maxCount``.
    ///   - limits: limits of each worker.
    ///   - queueLimit: maximum number of waiting jobs; further jobs are refused, except a few of each client.
    ///   - keptWorkers: the number of workers that stay without a job: for jobs that cannot wait the tenth of a second
    ///     until a worker is ready.
    ///   - idleTime: the time without a job after which another worker ends.
    ///   - logger: receives starts, ends, and the standard output and error of workers.
    public init(
        executable: String = WorkerPool.ownExecutable,
        arguments: [String] = ["worker"],
        environment: [String: String] = [:],
        count: Int,
        limits: WorkerLimits = WorkerLimits(),
        queueLimit: Int = 256,
        keptWorkers: Int = 1,
        idleTime: Duration = .seconds(15),
        logger: Logger
    ) {
        self.logger = logger
        self.keptWorkers = keptWorkers
        self.idleTime = idleTime.microseconds
        self.limits = limits
        self.command = WorkerLaunch(
            executable: executable,
            arguments: arguments,
            additions: environment,
            limits: limits
        )
        let slots = (0..<min(max(1, count), Self.maxCount)).map { _ in SlotState(wakeup: EventDescriptor()) }
        self.count = slots.count
        self.state = Mutex(State(queue: WorkerQueue(limit: max(1, queueLimit)), slots: slots))
    }

    /// Starts all workers and waits until each is ready or has failed.
    ///
    /// - Parameter isRequired: true to throw ``WorkerFailure/unavailable(_:)`` if none could be started; the pool is
    ///   then stopped. Otherwise it tries again, as after a later failure, and jobs wait or fail meanwhile: for workers
    ///   that a running service starts on first use. Without a thread for any of them it throws; it can be started
    ///   again then.
    public func start(isRequired: Bool = true) async throws(WorkerFailure) {
        let count = state.withLock { state -> Int in
            guard state.stage == .idle else { return 0 }
            state.stage = .running
            return state.slots.count
        }
        guard count > 0 else { throw .unavailable("the pool was started before") }
        for index in 0..<count {
            let wakeup = state.withLock { $0.slots[index].wakeup }
            if !WorkerSlot.start(pool: self, index: index, wakeup: wakeup) {
                // Without the thread the slot is not started again, so jobs are refused at once if it is the only one.
                slotDidFail(index, failures: State.failuresOfRefusal, problem: "no thread can be started")
                slotDidEnd(index)
            }
        }
        try await awaitFirstStarts(isRequired: isRequired)
    }

    /// Waits until the outcome of every slot's first start is known.
    func awaitFirstStarts(isRequired: Bool) async throws(WorkerFailure) {
        await started.value()
        let (problem, hasThreads) = state.withLock { state -> (String?, Bool) in
            let problem = state.slots.contains { $0.failures == 0 } ? nil : state.slots.first?.problem
            let hasThreads = state.slots.contains { $0.stage != .ended }
            guard state.stage == .running, !hasThreads else { return (problem, true) }
            state.stage = .idle
            state.started = Promise()
            for index in state.slots.indices {
                state.slots[index].stage = .starting
                state.slots[index].failures = 0
                state.slots[index].isKnown = false
            }
            return (problem, false)
        }
        if isRequired || !hasThreads, let problem {
            if isRequired { await stop(graceSeconds: 0) }
            throw .unavailable(problem)
        }
    }

    /// Runs a job on a worker, in the turn of the client for which the task works (``WorkSource/current``).
    ///
    /// When it returns or throws, no part of the job is running any more and its descriptors may be closed. If the
    /// calling task is cancelled, a waiting job is dropped and a running one ends with its worker.
    ///
    /// - Parameters:
    ///   - job: the job.
    ///   - priority: its priority in the queue.
    ///   - wallSeconds: its time limit; nil for ``WorkerLimits/wallSeconds``.
    /// - Returns: the worker's result.
    /// - Throws: ``WorkerFailure``.
    public func run(_ job: WorkerJob, priority: WorkerPriority = .normal, wallSeconds: Int? = nil)
        async throws(WorkerFailure) -> WorkerResult
    {
        guard job.files.count <= 16, job.attachments.count <= WorkerFrame.maxAttachments else {
            throw .refused(name: "invalid_request", message: "a job has at most 16 files and 64 attachments")
        }
        if Task.isCancelled { throw .cancelled }
        let ticket = try enqueue(job, priority, wallSeconds: max(1, wallSeconds ?? limits.wallSeconds))
        return try await ticket.outcome.value { self.cancel(ticket.id) }.get()
    }

    /// The confinement of the workers; nil if none has reported it.
    public var confinement: Confinement? { state.withLock { $0.confinement } }

    /// Checks that a worker can be started, and ends it again; for `--check`.
    ///
    /// - Returns: a description of the worker's confinement.
    public static func check(
        executable: String = WorkerPool.ownExecutable,
        limits: WorkerLimits,
        logger: Logger
    ) async throws -> String {
        let pool = WorkerPool(executable: executable, count: 1, limits: limits, logger: logger)
        try await pool.start()
        await pool.stop(graceSeconds: 1)
        return pool.confinement?.description ?? "none was reported"
    }

    /// Ends all workers and waits until they have exited.
    ///
    /// Waiting jobs fail with `worker_unavailable`; running ones have `graceSeconds` to finish.
    public func stop(graceSeconds: Int = 5) async {
        let deadline = MonotonicInstant.now().after(seconds: max(0, graceSeconds))
        let dropped = state.withLock { state -> [Ticket] in
            guard state.stage == .running else {
                if state.stage == .idle { state.stage = .stopped }
                if state.stage == .stopped { stopped.signal() }
                return []
            }
            state.stage = .stopping
            state.stopDeadline = deadline.microseconds
            for slot in state.slots { slot.wakeup.signal() }
            // No slot has a thread that would signal its end.
            if state.slots.allSatisfy({ $0.stage == .ended }) {
                state.stage = .stopped
                stopped.signal()
            }
            return state.queue.removeAll()
        }
        for ticket in dropped { ticket.outcome.fulfill(.failure(.unavailable("the service is stopping"))) }
        await stopped.wait()
    }

    /// Returns the pool's counters and gauges, for the `figures` method.
    public func metrics() -> JSONObject {
        state.withLock { state in
            let counts = state.counts
            func slots(_ isCounted: (SlotState.Stage) -> Bool) -> JSON {
                JSON(state.slots.count { isCounted($0.stage) })
            }
            return [
                "workers": JSON(state.slots.count),
                "idle": slots { $0 == .idle },
                "busy": slots { if case .busy = $0 { true } else { false } },
                "backingOff": slots { $0 == .backingOff },
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
                "endedIdle": JSON(counts.endedIdle),
                "confinement": state.confinement.map { .string("\($0)") } ?? .null,
                "pids": .array(state.slots.filter { $0.pid > 0 }.map { JSON(Int($0.pid)) }),
            ]
        }
    }

    // MARK: The queue

    private func enqueue(_ job: WorkerJob, _ priority: WorkerPriority, wallSeconds: Int) throws(WorkerFailure)
        -> Ticket
    {
        try state.withLock { state throws(WorkerFailure) in
            switch state.stage {
            case .idle: throw .unavailable("the pool was not started")
            case .stopping, .stopped: throw .unavailable("the service is stopping")
            case .running: break
            }
            if let problem = state.startFailure { throw .unavailable(problem) }
            state.nextID += 1
            let ticket = Ticket(
                id: state.nextID,
                job: job,
                source: .current,
                priority: priority,
                wallSeconds: wallSeconds
            )
            guard state.queue.append(ticket, id: ticket.id, priority: priority, from: ticket.source) else {
                state.counts.rejected += 1
                throw .queueFull(limit: state.queue.limit)
            }
            state.slots.first { $0.stage == .idle }?.wakeup.signal()
            return ticket
        }
    }

    private func cancel(_ id: UInt64) {
        let dropped = state.withLock { state -> Ticket? in
            if let ticket = state.queue.remove(id) {
                state.counts.cancelled += 1
                return ticket
            }
            if let index = state.slots.firstIndex(where: { $0.stage == .busy(id) }) {
                state.slots[index].isCancelled = true
                state.slots[index].wakeup.signal()
            }
            return nil
        }
        dropped?.outcome.fulfill(.failure(.cancelled))
    }
}

// MARK: - The jobs that wait

/// A bounded queue of jobs that wait for a worker. Clients take turns; the jobs of each are ordered by priority, then
/// by arrival. Jobs of low priority run when there are no others. It uses no clock or thread.
///
/// Jobs are not shared or grouped here: the thumbnailer groups requests for one file first (`CoalescingPriorityQueue`),
/// because only it knows which jobs are equal. A job returns to the front when its worker ended before the job began,
/// which queued requests never do; hence two queues.
struct WorkerQueue<Ticket> {
    private struct Entry {
        let id: UInt64
        let priority: WorkerPriority
        let ticket: Ticket
    }

    private var urgent = FairQueue<WorkSource, Entry>()
    private var low = FairQueue<WorkSource, Entry>()
    /// The sources of the waiting jobs, and whether their priority is low.
    private var waiting: [UInt64: (source: WorkSource, isLow: Bool)] = [:]
    let limit: Int

    init(limit: Int) { self.limit = limit }

    var count: Int { urgent.count + low.count }

    /// Appends a job to those of its source and priority; returns false if the queue is full. A source with few jobs
    /// may always append one, so that another source with many does not exclude it.
    mutating func append(
        _ ticket: Ticket,
        id: UInt64,
        priority: WorkerPriority,
        from source: WorkSource = .service
    ) -> Bool {
        let own = urgent.count(of: source) + low.count(of: source)
        guard count < limit || own < WorkSource.reservedCount(of: limit) else { return false }
        let entry = Entry(id: id, priority: priority, ticket: ticket)
        insert(entry, from: source, isNext: false) { $0.rawValue > priority.rawValue }
        return true
    }

    /// Puts a dequeued job back in front of those of its source and priority, regardless of the limit. It is the turn
    /// of its source again.
    mutating func requeue(_ ticket: Ticket, id: UInt64, priority: WorkerPriority, from source: WorkSource = .service) {
        let entry = Entry(id: id, priority: priority, ticket: ticket)
        insert(entry, from: source, isNext: true) { $0.rawValue >= priority.rawValue }
    }

    private mutating func insert(
        _ entry: Entry,
        from source: WorkSource,
        isNext: Bool,
        before isLater: (WorkerPriority) -> Bool
    ) {
        let isLow = entry.priority == .low
        waiting[entry.id] = (source, isLow)
        if isLow {
            low.insert(entry, from: source, isNext: isNext) { isLater($0.priority) }
        } else {
            urgent.insert(entry, from: source, isNext: isNext) { isLater($0.priority) }
        }
    }

    /// Removes and returns the next job; nil if the queue is empty.
    mutating func next() -> Ticket? {
        guard let entry = urgent.popFirst() ?? low.popFirst() else { return nil }
        waiting[entry.id] = nil
        return entry.ticket
    }

    /// Removes and returns a job; nil if it is no longer waiting.
    mutating func remove(_ id: UInt64) -> Ticket? {
        guard let (source, isLow) = waiting.removeValue(forKey: id) else { return nil }
        return isLow
            ? low.remove(from: source) { $0.id == id }?.ticket : urgent.remove(from: source) { $0.id == id }?.ticket
    }

    /// Removes and returns all jobs.
    mutating func removeAll() -> [Ticket] {
        var all: [Ticket] = []
        while let ticket = next() { all.append(ticket) }
        return all
    }
}
