import Basics
import JSONValue
import Logging

extension RequestServer {
    /// Serves requests until the task is cancelled. Then it accepts no more, lets running requests finish for up to
    /// ``MessagingLimits/drainTimeout``, sends queued messages and closes.
    public func run() async {
        guard stage == .idle else { return }
        stage = .serving
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
        guard stage != .closed else { return }
        stage = .flushing(until: clock.nowMicroseconds().addingClamped(limits.linger.microseconds))
        wakeup.signal()
        while case .flushing = stage { await waitForWork() }
    }

    /// Returns the next requests to execute; `nil` if there will be no more.
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

    /// Resumes the serving task if there is work for it or there will be none any more.
    func startNextRequests() {
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

    /// Stops accepting requests; running ones may finish until the drain timeout.
    func beginDraining() {
        guard stage == .serving || stage == .idle else { return }
        stage = .draining(until: clock.nowMicroseconds().addingClamped(limits.drainTimeout.microseconds))
    }

    /// Handles expired deadlines and timeouts.
    func checkTime() {
        let now = clock.nowMicroseconds()
        if now >= nextDeadline { expire(now) }
        switch stage {
        case .draining(let until) where now >= until:
            for connection in connections.byRouting.values {
                for request in connection.open.values {
                    refuse(request, .cancelled("the service is stopping; send the request again"), on: connection)
                    request.signal.cancel(.stopping)
                }
            }
            stage = .draining(until: .max)
        case .flushing(let until) where now >= until || blocked.isEmpty:
            closeNow()
        default: break
        }
    }

    /// Ends the open requests of keys that were removed from the list.
    func endRequests(of keys: Set<String>) {
        for connection in connections.byRouting.values {
            guard let curveIdentity = connection.curveIdentity, keys.contains(curveIdentity.key) else { continue }
            for request in connection.open.values {
                refuse(request, Self.revoked, on: connection)
                request.signal.cancel(.cancelled)
            }
        }
    }

    static let revoked = RPCError.accessDenied("this key was removed from the list; ask the owner of the library")

    private func expire(_ now: Int64) {
        var earliest = Int64.max
        for connection in connections.byRouting.values {
            for request in connection.open.values {
                let deadline = request.context.deadlineMicroseconds
                if deadline > now {
                    earliest = min(earliest, deadline)
                    continue
                }
                refuse(
                    request,
                    .deadlineExceeded("the deadline has passed; send the request with a longer deadlineMs"),
                    on: connection
                )
                request.signal.cancel(.deadline)
            }
        }
        nextDeadline = earliest
    }

    /// Answers an open request with an error at once; its handler's reply will be dropped.
    private func refuse(_ request: OpenRequest, _ error: RPCError, on connection: Connection) {
        connection.open[request.incoming.id] = nil
        request.credit?.close()
        sendError(error, id: request.incoming.id, prefix: request.prefix, to: connection)
    }
}
