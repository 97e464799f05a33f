import Basics
import Logging
import Synchronization

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
            state.queue.requeue(waiting, id: waiting.id, priority: waiting.priority)
            state.slots.first { $0.stage == .idle }?.wakeup.signal()
            return nil
        }
        if let failure { ticket.outcome.fulfill(.failure(failure)) }
    }

    func slotIsReady(_ index: Int, pid: Int32, _ confinement: Confinement?) {
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
