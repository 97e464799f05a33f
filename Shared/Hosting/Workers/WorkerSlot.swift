import Basics
import CProcess
import Glibc
import JSONValue
import Logging
import Synchronization

/// A slot of the pool: a thread that keeps one worker running and gives it jobs. A worker that is not one of the kept
/// ones ends after a while without a job, and the next job of the slot starts another one.
///
/// The thread runs as long as the pool. The workers' parent death signal depends on this thread, so if the service dies
/// its workers are killed.
struct WorkerSlot {
    private let pool: WorkerPool
    private let index: Int
    private let wakeup: EventDescriptor

    /// The time that a worker may take to report that it is ready, in seconds.
    private static let startSeconds = 10
    private static let firstDelay = 100_000 as Int64
    private static let maxDelay = 5_000_000 as Int64

    static func start(pool: WorkerPool, index: Int, wakeup: EventDescriptor) -> Bool {
        final class Box {
            let slot: WorkerSlot
            init(_ slot: WorkerSlot) { self.slot = slot }
        }
        let box = Unmanaged.passRetained(Box(WorkerSlot(pool: pool, index: index, wakeup: wakeup)))
        let result = safelight_thread(
            "worker-\(index)",
            { context in
                guard let context else { return }
                Unmanaged<Box>.fromOpaque(context).takeRetainedValue().slot.run()
            },
            box.toOpaque()
        )
        if result != 0 { box.release() }
        return result == 0
    }

    private enum End {
        /// It completed its number of jobs, was killed during one, or crashed: replace it at once.
        case replaced
        /// The process ended before its first job.
        case endedBeforeJob(String)
        /// It ended after a while without a job.
        case idle
        case stopping
    }

    /// Starts workers and gives them jobs, until the pool stops.
    private func run() {
        defer { pool.slotDidEnd(index) }
        var failures = 0
        while pool.isRunning {
            let problem: String
            do throws(WorkerStartError) {
                let worker = try RunningWorker(pool.command, logger: pool.logger)
                defer { worker.end() }
                try worker.awaitReady(until: .now().after(seconds: Self.startSeconds), wakeup: wakeup) {
                    !pool.isRunning
                }
                pool.slotDidStartWorker(index, pid: worker.pid, worker.confinement)
                switch serve(worker) {
                case .replaced:
                    failures = 0
                    continue
                case .idle:
                    failures = 0
                    worker.end()
                    while pool.isRunning, !pool.markStartingIfNeeded(index) { wakeup.wait() }
                    continue
                case .stopping: return
                case .endedBeforeJob(let reason): problem = reason
                }
            } catch {
                problem = error.reason
            }
            guard pool.isRunning else { return }
            failures += 1
            pool.slotDidFail(index, failures: failures, problem: problem)
            pause(after: failures)
        }
    }

    // Waits with exponential backoff; a stopping pool wakes it.
    private func pause(after failures: Int) {
        let delay = min(Self.maxDelay, Self.firstDelay << Int64(min(failures - 1, 10)))
        let until = MonotonicInstant.now().after(microseconds: delay)
        while pool.isRunning, MonotonicInstant.now() < until {
            wakeup.wait(until: until)
        }
    }

    private func serve(_ worker: RunningWorker) -> End {
        var jobs = 0
        while true {
            switch pool.next(for: index) {
            case .stop:
                return .stopping
            case .wait:
                switch worker.waitForWakeup(wakeup, until: pool.idleDeadline(of: index)) {
                // There is a job, or the pool stops.
                case .wakeup: continue
                case .outOfTime:
                    guard pool.releaseWorker(of: index) else { continue }
                    return .idle
                case .ended: break
                }
                pool.slotDidLoseWorker(index, wasRetired: false)
                let reason = worker.describeEnd()
                pool.logger.warning("idle worker ended", metadata: ["worker.end": "\(reason)"])
                return jobs == 0 ? .endedBeforeJob(reason) : .replaced
            case .job(let ticket):
                jobs += 1
                guard perform(ticket, on: worker) else {
                    pool.slotDidLoseWorker(index, wasRetired: false)
                    return .replaced
                }
                if jobs >= pool.limits.jobsPerWorker {
                    pool.slotDidLoseWorker(index, wasRetired: true)
                    return .replaced
                }
            }
        }
    }

    /// Runs a job on a worker; returns whether the worker can run another.
    private func perform(_ ticket: WorkerPool.Ticket, on worker: RunningWorker) -> Bool {
        let deadline = MonotonicInstant.now().after(seconds: ticket.wallSeconds)
        let outcome = worker.perform(ticket.job, until: deadline, wakeup: wakeup) {
            let (isCancelled, stop) = pool.interruption(of: index)
            return (isCancelled, MonotonicInstant(microseconds: stop))
        }
        switch outcome {
        case .answered(let result):
            pool.finish(ticket, on: index, result)
            return true
        case .notBegun where ticket.requeueCount < pool.count:
            pool.requeue(ticket, from: index)
            return false
        case .notBegun:
            pool.finish(ticket, on: index, .failure(.unavailable("the worker ended before the job was begun")))
        case .cancelled:
            worker.end()
            pool.finish(ticket, on: index, .failure(.cancelled))
        case .outOfTime:
            let phase = worker.phaseOfDelay(seconds: ticket.wallSeconds)
            worker.end()
            let isStopping = !pool.isRunning
            pool.finish(
                ticket,
                on: index,
                .failure(
                    isStopping
                        ? .unavailable("the service is stopping")
                        : .timedOut(seconds: ticket.wallSeconds, phase: phase)
                )
            )
        case .broken(let error):
            pool.finish(ticket, on: index, .failure(failure(error, worker)))
        }
        return false
    }

    private func failure(_ error: WorkerChannelError, _ worker: RunningWorker) -> WorkerFailure {
        worker.end(isExiting: error == .closed)
        let failure: WorkerFailure
        switch (error, worker.status) {
        case (.tooLarge, _): failure = .resultTooLarge(limit: pool.limits.resultBytes)
        case (.malformed(let reason), _): failure = .malformedResult(reason, phase: worker.phaseOfEnd)
        case (_, .signal(SIGXCPU)?):
            failure = .timedOut(seconds: pool.limits.cpuSeconds, phase: worker.phaseOfExhaustion)
        // It closed its socket without exiting.
        case (_, .signal(let number)?) where worker.wasKilled:
            failure = .crashed(signal: number, phase: worker.phaseOfEnd)
        case (_, .signal(SIGKILL)?), (_, .signal(SIGTERM)?): failure = .killed
        case (_, .signal(let number)?): failure = .crashed(signal: number, phase: worker.phaseOfEnd)
        case (_, .code(let code)?): failure = .exited(code: code, phase: worker.phaseOfEnd)
        case (_, nil): failure = .unavailable("\(error)")
        }
        pool.logger.warning(
            "worker failed a job",
            metadata: ["error": "\(failure)", "worker.pid": "\(worker.pid)"]
        )
        return failure
    }
}

// MARK: - The pool's side

/// The interface between the pool and the threads of its slots.
extension WorkerPool {
    /// The next action of a slot.
    enum Next {
        case job(Ticket)
        /// The queue is empty: wait for the wakeup.
        case wait
        case stop
    }

    /// Returns the next action of a slot whose worker is ready.
    func next(for index: Int) -> Next {
        state.withLock { state in
            guard state.stage == .running else { return .stop }
            guard let ticket = state.queue.next() else {
                state.slots[index].stage = .idle
                return .wait
            }
            state.slots[index].stage = .busy(ticket.id)
            state.slots[index].isCancelled = false
            // One wakeup may stand for several jobs, so the next idle slot is woken too.
            if state.queue.count > 0 { state.slots.first { $0.stage == .idle }?.wakeup.signal() }
            return .job(ticket)
        }
    }

    /// Returns whether the slot's job was cancelled and the stop deadline; called after each wakeup during a job.
    func interruption(of index: Int) -> (isCancelled: Bool, deadline: Int64) {
        state.withLock { ($0.slots[index].isCancelled, $0.stopDeadline) }
    }

    var isRunning: Bool { state.withLock { $0.stage == .running } }

    var started: Promise<Void> { state.withLock { $0.started } }

    /// Completes a job. Afterwards the slot is free or has lost its worker.
    func finish(_ ticket: Ticket, on index: Int, _ outcome: Result<WorkerResult, WorkerFailure>) {
        state.withLock { state in
            state.slots[index].stage = .starting
            switch outcome {
            case .success: state.counts.completed += 1
            case .failure(.refused): state.counts.refused += 1
            case .failure(.timedOut): state.counts.timedOut += 1
            case .failure(.cancelled): state.counts.cancelled += 1
            case .failure: state.counts.crashed += 1
            }
        }
        ticket.outcome.fulfill(outcome)
    }

    /// Requeues a job for another worker, because its worker had ended before the job reached it.
    func requeue(_ ticket: Ticket, from index: Int) {
        var ticket = ticket
        ticket.requeueCount += 1
        let waiting = ticket
        let failure = state.withLock { state -> WorkerFailure? in
            let isCancelled = state.slots[index].isCancelled
            state.slots[index].stage = .starting
            if isCancelled { return .cancelled }
            guard state.stage == .running else { return .unavailable("the service is stopping") }
            state.queue.requeue(waiting, id: waiting.id, priority: waiting.priority, from: waiting.source)
            state.slots.first { $0.stage == .idle }?.wakeup.signal()
            return nil
        }
        if let failure { ticket.outcome.fulfill(.failure(failure)) }
    }

    func slotDidStartWorker(_ index: Int, pid: Int32, _ confinement: Confinement?) {
        let isStarted = state.withLock { state in
            state.slots[index].pid = pid
            state.slots[index].failures = 0
            state.slots[index].isKnown = true
            state.confinement = confinement
            state.counts.started += 1
            return state.allKnown
        }
        if isStarted { started.fulfill(()) }
    }

    /// Returns the time at which the slot's idle worker ends; nil if it stays.
    ///
    /// Jobs are given to the first idle slot, so the workers of the first slots are those that stay.
    func idleDeadline(of index: Int) -> MonotonicInstant? {
        index < keptWorkers ? nil : .now().after(microseconds: idleTime)
    }

    /// Releases the worker of a slot that stays idle; returns false if the slot has got a job meanwhile.
    func releaseWorker(of index: Int) -> Bool {
        state.withLock { state in
            guard state.stage == .running, state.queue.count == 0 else { return false }
            state.slots[index].pid = 0
            state.counts.endedIdle += 1
            return true
        }
    }

    /// Marks an idle slot without a worker as starting if a job waits; returns false if none does.
    func markStartingIfNeeded(_ index: Int) -> Bool {
        state.withLock { state in
            guard state.queue.count > 0 else { return false }
            state.slots[index].stage = .starting
            return true
        }
    }

    func slotDidLoseWorker(_ index: Int, wasRetired: Bool) {
        state.withLock { state in
            state.slots[index].pid = 0
            state.slots[index].stage = .starting
            if wasRetired { state.counts.retired += 1 }
        }
    }

    /// Records that a worker could not be started. If none can be, all waiting jobs fail.
    func slotDidFail(_ index: Int, failures: Int, problem: String) {
        let (isStarted, dropped) = state.withLock { state in
            state.slots[index].stage = .backingOff
            state.slots[index].failures = failures
            state.slots[index].problem = problem
            state.slots[index].isKnown = true
            state.counts.startFailures += 1
            // An idle slot without a worker tries to start one, or fails too.
            if state.queue.count > 0 { state.slots.first { $0.stage == .idle }?.wakeup.signal() }
            return (state.allKnown, state.startFailure == nil ? [] : state.queue.removeAll())
        }
        logger.warning(
            "worker cannot be started",
            metadata: ["worker.problem": "\(problem)", "worker.tries": "\(failures)"]
        )
        if isStarted { started.fulfill(()) }
        for ticket in dropped { ticket.outcome.fulfill(.failure(.unavailable(problem))) }
    }

    /// Records that the slot's thread ends.
    func slotDidEnd(_ index: Int) {
        let (isStarted, isStopped) = state.withLock { state in
            state.slots[index].stage = .ended
            state.slots[index].pid = 0
            state.slots[index].isKnown = true
            guard state.stage == .stopping, state.slots.allSatisfy({ $0.stage == .ended }) else {
                return (state.allKnown, false)
            }
            state.stage = .stopped
            return (true, true)
        }
        if isStarted { started.fulfill(()) }
        if isStopped { stopped.signal() }
    }
}

extension WorkerPool.State {
    var allKnown: Bool { slots.allSatisfy(\.isKnown) }

    /// The number of consecutive failures after which a slot is not expected to start a worker.
    static let failuresOfRefusal = 3

    /// The reason why no job can run: every worker failed to start at least three times in a row; nil otherwise.
    var startFailure: String? {
        slots.allSatisfy { $0.failures >= Self.failuresOfRefusal } ? slots.first?.problem : nil
    }
}
