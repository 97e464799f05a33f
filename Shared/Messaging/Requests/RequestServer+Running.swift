import Basics

extension RequestServer {
    /// Serves requests until the task is cancelled. Then it accepts no more, lets running requests finish for up to
    /// ``MessagingLimits/drainTimeout``, sends queued messages and closes.
    public func run() async {
        guard state.serve() else { return }
        wakeup.signal()
        // A separate task, so that cancelling this one does not cancel the running requests.
        let serving = Task { await serve() }
        await withTaskCancellationHandler {
            await serving.value
        } onCancel: {
            outbox.post(.stop)
        }
    }

    private func serve() async {
        while let batch = await nextBatch() {
            for execution in batch {
                let task = Task { @concurrent in await execution.run() }
                tasks[ObjectIdentifier(execution.request)] = task
                execution.request.signal.attach(task)
            }
        }
        for task in tasks.values { await task.value }
        guard state.flush(at: clock.nowMicroseconds()) else { return }
        wakeup.signal()
        while case .flushing = state.stage { await waitForWork() }
    }

    /// Returns the next requests to execute; `nil` if there will be no more.
    private func nextBatch() async -> [RequestExecution]? {
        while true {
            if !work.isEmpty {
                defer { work = [] }
                return work
            }
            guard state.expectsWork else { return nil }
            await waitForWork()
        }
    }

    private func waitForWork() async {
        await withCheckedContinuation { workWaiter = $0 }
    }

    /// Resumes the serving task if there is work for it or there will be none any more.
    func startNextRequests() {
        let isFlushing = if case .flushing = state.stage { true } else { false }
        guard !work.isEmpty || !(state.expectsWork || isFlushing), let waiter = workWaiter else { return }
        workWaiter = nil
        waiter.resume()
    }

    /// Handles expired deadlines and timeouts.
    func checkTime() {
        let now = clock.nowMicroseconds()
        for ending in state.endings(at: now) { carryOut(ending) }
        if case .flushing(let until) = state.stage, now >= until || blocked.isEmpty { closeNow() }
    }

    /// Answers a request that ends early, if its peer is still there, and cancels its task.
    func carryOut(_ ending: RequestServerStateMachine.Ending) {
        ending.request.credit?.close()
        if let answer = ending.answer { send(answer) }
        ending.request.signal.cancel(ending.reason)
    }
}
