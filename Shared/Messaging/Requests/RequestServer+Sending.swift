import Basics
import DequeModule
import JSONValue

extension RequestServer {
    /// Handles an event from a task.
    func perform(_ event: ServerEvent) {
        switch event {
        case .notification(let request, let message):
            if let connection = state.notified(request) { transmit(message, to: connection) }
        case .answer(let request, let message, let failure):
            tasks[ObjectIdentifier(request)] = nil
            request.credit?.close()
            guard let connection = state.finished(request, failure: failure) else { return }
            transmit(message, to: connection)
            state.forgetIfIdle(connection)
        case .parsed(let id, let envelope, let message, let prefix):
            resume(id, envelope, message, prefix)
        case .revoked(let keys):
            for ending in state.endings(ofKeys: keys) { carryOut(ending) }
        case .stop:
            state.drain(at: clock.nowMicroseconds())
        }
    }

    /// Sends a reply made on the poll thread; returns false if it has to wait for capacity or is too large.
    func send(_ reply: Reply, to request: RequestServerStateMachine.AcceptedRequest) -> Bool {
        let connection = request.recipient.connection
        let frames = [reply.frame(id: request.incoming.id)] + reply.attachments
        let bytes = frames.reduce(0) { $0 + $1.count }
        guard limits.violation(of: frames) == nil, connection.outboxSemaphore.tryAcquire(bytes) else { return false }
        guard outboxSemaphore.tryAcquire(bytes) else {
            connection.outboxSemaphore.release(bytes)
            return false
        }
        state.metrics.answers += 1
        state.metrics.answersAtOnce += 1
        let reservation = ByteReservation(bytes: bytes, semaphores: [connection.outboxSemaphore, outboxSemaphore])
        transmit(OutgoingMessage(request.recipient.prefix + frames, reservation: reservation), to: connection)
        state.forgetIfIdle(connection)
        return true
    }

    /// Sends a response of the server itself; it never waits for capacity.
    func send(_ answer: RequestServerStateMachine.Answer) {
        let (connection, prefix) = (answer.recipient.connection, answer.recipient.prefix)
        let error: RPCError
        switch answer.content {
        case .error(let content): error = content
        case .result(let result):
            let frame = EnvelopeWriter.result(id: answer.id, result)
            return transmit(OutgoingMessage(prefix + [frame]), to: connection)
        }
        state.metrics.answers += 1
        state.metrics.errors[error.name, default: 0] += 1
        let frame = EnvelopeWriter.error(id: answer.id, error)
        connection.outboxSemaphore.acquireWithoutWaiting(frame.count)
        outboxSemaphore.acquireWithoutWaiting(frame.count)
        let reservation = ByteReservation(
            bytes: frame.count,
            semaphores: [connection.outboxSemaphore, outboxSemaphore]
        )
        transmit(OutgoingMessage(prefix + [frame], reservation: reservation), to: connection)
    }

    /// Sends a message now, or queues it until libzmq accepts it.
    func transmit(_ message: OutgoingMessage, to connection: Connection) {
        if connection.queue.isEmpty, attempt(message, connection) { return }
        guard state.connections[connection.id] != nil else { return }
        guard connection.queue.count < limits.outboxMessagesPerConnection else {
            state.metrics.messagesDropped += 1
            return
        }
        connection.queue.append(message)
        if blocked.insert(connection.id).inserted, blocked.count == 1 { pauseBlocked(Self.shortestPause) }
    }

    /// - Returns: whether the message is done with, sent or dropped.
    private func attempt(_ message: OutgoingMessage, _ connection: Connection) -> Bool {
        switch socketBox.socket?.socket.send(message) {
        case .sent:
            state.metrics.bytesOut += message.byteCount
            return true
        case .full: return false
        case .unreachable:
            state.metrics.messagesDropped += 1
            if state.remove(connection) { end(connection, .connectionLost) }
            return true
        case .failed, nil:
            state.metrics.messagesDropped += 1
            return true
        }
    }

    private static let shortestPause: Int64 = 1000
    private static let longestPause: Int64 = 64_000

    /// Retries the peers whose queue was full.
    ///
    /// ROUTER's POLLOUT says only that *some* peer accepts messages, so these are retried after a pause that doubles
    /// while no message can be sent.
    func retryBlocked() {
        guard !blocked.isEmpty, clock.nowMicroseconds() >= blockedUntil else { return }
        var moved = false
        for id in blocked {
            guard let connection = state.connections[id] else {
                blocked.remove(id)
                continue
            }
            while let message = connection.queue.first, attempt(message, connection) {
                moved = true
                // The attempt empties the queue if it ends the connection.
                if !connection.queue.isEmpty { connection.queue.removeFirst() }
            }
            if connection.queue.isEmpty { blocked.remove(id) }
        }
        pauseBlocked(moved ? Self.shortestPause : min(blockedPause * 2, Self.longestPause))
    }

    private func pauseBlocked(_ pause: Int64) {
        blockedPause = pause
        blockedUntil = clock.nowMicroseconds().addingClamped(pause)
    }

    /// Ends the requests of a connection that was removed from the table.
    func end(_ connection: Connection, _ reason: TerminationReason) {
        for ending in state.end(connection, reason) { carryOut(ending) }
        connection.queue = []
        connection.outboxSemaphore.close()
        blocked.remove(connection.id)
    }
}
