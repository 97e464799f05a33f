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
                state.seats[index].stage = .idle
                return .wait
            }
            state.seats[index].stage = .busy(ticket.id)
            state.seats[index].isCancelled = false
            // One wakeup may stand for several jobs, so the next idle slot is woken too.
            if state.queue.count > 0 { state.seats.first { $0.stage == .idle }?.bell.ring() }
            return .job(ticket)
        }
    }

    /// Returns whether the slot's job was cancelled and the stop deadline; called after each wakeup during a job.
    func interruption(of index: Int) -> (isCancelled: Bool, deadline: Int64) {
        state.withLock { ($0.seats[index].isCancelled, $0.stopDeadline) }
    }

    var isRunning: Bool { state.withLock { $0.stage == .running } }

    /// Completes a job. Afterwards the slot is free or has lost its worker.
    func finish(_ ticket: Ticket, on index: Int, _ outcome: Result<WorkerResult, WorkerFailure>) {
        state.withLock { state in
            state.seats[index].stage = .starting
            switch outcome {
            case .success: state.counts.completed += 1
            case .failure(.refused): state.counts.refused += 1
            case .failure(.timedOut): state.counts.timedOut += 1
            case .failure(.cancelled): state.counts.cancelled += 1
            case .failure: state.counts.crashed += 1
            }
        }
        ticket.continuation.resume(returning: outcome)
    }

    /// Requeues a job for another worker, because its worker had ended before the job reached it.
    func putBack(_ ticket: Ticket, from index: Int) {
        var ticket = ticket
        ticket.timesPutBack += 1
        let waiting = ticket
        let failure = state.withLock { state -> WorkerFailure? in
            let isCancelled = state.seats[index].isCancelled
            state.seats[index].stage = .starting
            if isCancelled { return .cancelled }
            guard state.stage == .running else { return .unavailable("the service is stopping") }
            state.queue.putBack(waiting, id: waiting.id, priority: waiting.priority)
            state.seats.first { $0.stage == .idle }?.bell.ring()
            return nil
        }
        if let failure { ticket.continuation.resume(returning: .failure(failure)) }
    }

    func seatIsReady(_ index: Int, pid: Int32, _ confinement: Confinement?) {
        let waiter = state.withLock { state in
            state.seats[index].pid = pid
            state.seats[index].failures = 0
            state.seats[index].isKnown = true
            state.confinement = confinement
            state.counts.started += 1
            return state.takeStartWaiter()
        }
        waiter?.resume()
    }

    func seatLostWorker(_ index: Int, wasRetired: Bool) {
        state.withLock { state in
            state.seats[index].pid = 0
            state.seats[index].stage = .starting
            if wasRetired { state.counts.retired += 1 }
        }
    }

    /// Records that a worker could not be started. If none can be, all waiting jobs fail.
    func seatFailed(_ index: Int, failures: Int, problem: String) {
        let (waiter, dropped) = state.withLock { state in
            state.seats[index].stage = .backingOff
            state.seats[index].failures = failures
            state.seats[index].problem = problem
            state.seats[index].isKnown = true
            state.counts.startFailures += 1
            return (state.takeStartWaiter(), state.hopeless == nil ? [] : state.queue.removeAll())
        }
        logger.warning(
            "worker cannot be started",
            metadata: ["worker.problem": "\(problem)", "worker.tries": "\(failures)"]
        )
        waiter?.resume()
        for ticket in dropped { ticket.continuation.resume(returning: .failure(.unavailable(problem))) }
    }

    /// Records that the slot's thread ends.
    func seatEnded(_ index: Int) {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.seats[index].stage = .ended
            state.seats[index].pid = 0
            state.seats[index].isKnown = true
            guard state.stage == .stopping, state.seats.allSatisfy({ $0.stage == .ended }) else { return [] }
            state.stage = .stopped
            defer { state.stopWaiters = [] }
            return state.stopWaiters
        }
        for waiter in waiters { waiter.resume() }
    }
}

extension WorkerPool.State {
    mutating func takeStartWaiter() -> CheckedContinuation<Void, Never>? {
        guard allKnown else { return nil }
        defer { startWaiter = nil }
        return startWaiter
    }
}
