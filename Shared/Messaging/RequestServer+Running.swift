import Logging

extension RequestServer {
    /// Serves until the task is cancelled; then takes nothing more, lets running requests finish up to
    /// ``MessagingLimits/drainTimeout``, sends what is ready to leave and closes.
    public func run() async {
        guard stage == .idle else { return }
        stage = .serving
        doorbell.ring()
        // A task of its own, so that cancelling this one does not cancel the requests under way.
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
                execution.request.signal.guide(task)
            }
        }
        for task in tasks.values { await task.value }
        guard stage != .closed else { return }
        stage = .flushing(until: clock.nowMicroseconds().addingClamped(limits.linger.microseconds))
        doorbell.ring()
        while case .flushing = stage { await waitForWork() }
    }

    /// The next things to do; `nil` when there will be none.
    private func nextBatch() async -> [RequestExecution]? {
        while true {
            if !work.isEmpty {
                defer { work = [] }
                return work
            }
            switch stage {
            case .serving, .idle: break
            case .draining where running > 0: break
            case .draining, .flushing, .closed: return nil
            }
            await waitForWork()
        }
    }

    private func waitForWork() async {
        await withCheckedContinuation { workWaiter = $0 }
    }

    /// Wakes the serving task where there is something for it, or nothing any more.
    func handOutWork() {
        let isOver =
            switch stage {
            case .idle, .serving, .flushing: false
            case .draining: running == 0
            case .closed: true
            }
        guard !work.isEmpty || isOver, let waiter = workWaiter else { return }
        workWaiter = nil
        waiter.resume()
    }

    /// No further requests: those under way have until the bound.
    func beginDraining() {
        guard stage == .serving || stage == .idle else { return }
        stage = .draining(until: clock.nowMicroseconds().addingClamped(limits.drainTimeout.microseconds))
    }

    /// Ends what has reached its time.
    func checkTime() {
        let now = clock.nowMicroseconds()
        if now >= nextDeadline { expire(now) }
        switch stage {
        case .draining(let until) where now >= until:
            for connection in connections.byRouting.values {
                for request in connection.open.values {
                    refuse(request, .cancelled("the service is stopping; send the request again"), on: connection)
                    request.signal.fire(.stopping)
                }
            }
            stage = .draining(until: .max)
        case .flushing(let until) where now >= until || blocked.isEmpty:
            closeNow()
        default: break
        }
    }

    /// Ends what the holders of keys have under way: they were taken off the list.
    func endRequests(of keys: Set<String>) {
        for connection in connections.byRouting.values {
            guard let holder = connection.holder, keys.contains(holder.key) else { continue }
            for request in connection.open.values {
                refuse(request, Self.revoked, on: connection)
                request.signal.fire(.cancelled)
            }
        }
    }

    static let revoked = RPCError.accessDenied("this key was taken off the list; ask whoever runs the library")

    private func expire(_ now: Int64) {
        var earliest = Int64.max
        for connection in connections.byRouting.values {
            for request in connection.open.values {
                let deadline = request.incoming.deadlineMicroseconds
                if deadline > now {
                    earliest = min(earliest, deadline)
                    continue
                }
                refuse(
                    request,
                    .deadlineExceeded("the request's time is up; ask with a longer deadlineMs"),
                    on: connection
                )
                request.signal.fire(.deadline)
            }
        }
        nextDeadline = earliest
    }

    /// Answers an open request with an error at once; what its handler still says is dropped.
    private func refuse(_ request: OpenRequest, _ error: RPCError, on connection: Connection) {
        connection.open[request.incoming.id] = nil
        request.credit?.close()
        say(error, id: request.incoming.id, prefix: request.prefix, to: connection)
    }
}
