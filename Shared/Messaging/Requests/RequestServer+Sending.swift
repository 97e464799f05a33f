import Basics
import DequeModule
import JSONValue
import Logging

extension RequestServer {
    /// Handles an event from a task.
    func perform(_ event: ServerEvent) {
        switch event {
        case .notification(let request, let message):
            guard let connection = connection(of: request) else {
                currentMetrics.notificationsDropped += 1
                return
            }
            currentMetrics.notificationsSent += 1
            transmit(message, to: connection)
        case .answer(let request, let message, let failure):
            ended(request)
            request.credit?.close()
            guard let connection = connection(of: request) else {
                currentMetrics.answersDropped += 1
                return
            }
            connection.open[request.incoming.id] = nil
            currentMetrics.answers += 1
            if let failure { currentMetrics.errors[failure, default: 0] += 1 }
            transmit(message, to: connection)
            forgetIfIdle(connection)
        case .parsed(let id, let envelope, let message, let prefix):
            resume(id, envelope, message, prefix)
        case .revoked(let keys):
            endRequests(of: keys)
        case .stop:
            beginDraining()
        }
    }

    /// Updates the counts after a request's task has ended.
    private func ended(_ request: OpenRequest) {
        running -= 1
        tasks[ObjectIdentifier(request)] = nil
        guard let connection = connections[request.context.connection] else { return }
        connection.running -= 1
        // If the server answered the request itself, no response follows that would remove an idle connection.
        if connection.open[request.incoming.id] !== request { forgetIfIdle(connection) }
    }

    /// Returns the connection of a request that has no response yet.
    private func connection(of request: OpenRequest) -> Connection? {
        guard let connection = connections[request.context.connection],
            connection.open[request.incoming.id] === request
        else { return nil }
        return connection
    }

    /// Sends a reply made on the poll thread; returns false if it has to wait for capacity or is too large.
    func send(_ reply: Reply, to request: IncomingRequest, _ prefix: [Bytes], _ connection: Connection) -> Bool {
        let frames = [reply.frame(id: request.id)] + reply.attachments
        let bytes = frames.reduce(0) { $0 + $1.count }
        guard limits.violation(of: frames) == nil, connection.outboxSemaphore.tryAcquire(bytes) else { return false }
        guard outboxSemaphore.tryAcquire(bytes) else {
            connection.outboxSemaphore.release(bytes)
            return false
        }
        currentMetrics.answers += 1
        currentMetrics.answersAtOnce += 1
        let reservation = ByteReservation(bytes: bytes, semaphores: [connection.outboxSemaphore, outboxSemaphore])
        transmit(OutgoingMessage(prefix + frames, reservation: reservation), to: connection)
        forgetIfIdle(connection)
        return true
    }

    /// Responds with an error of the server itself.
    func sendError(_ error: RPCError, id: JSON, prefix: [Bytes], to connection: Connection) {
        currentMetrics.answers += 1
        currentMetrics.errors[error.name, default: 0] += 1
        let frame = EnvelopeWriter.error(id: id, error)
        connection.outboxSemaphore.acquireWithoutWaiting(frame.count)
        outboxSemaphore.acquireWithoutWaiting(frame.count)
        let reservation = ByteReservation(
            bytes: frame.count,
            semaphores: [connection.outboxSemaphore, outboxSemaphore]
        )
        transmit(OutgoingMessage(prefix + [frame], reservation: reservation), to: connection)
    }

    func sendError(_ error: RPCError, id: JSON, _ prefix: [Bytes], _ connection: Connection) {
        sendError(error, id: id, prefix: prefix, to: connection)
    }

    /// Sends a message now, or queues it until libzmq accepts it.
    func transmit(_ message: OutgoingMessage, to connection: Connection) {
        if connection.queue.isEmpty, attempt(message, connection) { return }
        guard connections[connection.id] != nil else { return }
        guard connection.queue.count < limits.outboxMessagesPerConnection else {
            currentMetrics.messagesDropped += 1
            return
        }
        connection.queue.append(message)
        if blocked.insert(connection.id).inserted, blocked.count == 1 { pauseBlocked(Self.shortestPause) }
    }

    /// - Returns: whether the message is done with, sent or dropped.
    private func attempt(_ message: OutgoingMessage, _ connection: Connection) -> Bool {
        switch socketBox.socket?.socket.send(message) {
        case .sent:
            currentMetrics.bytesOut += message.byteCount
            return true
        case .full: return false
        case .unreachable:
            currentMetrics.messagesDropped += 1
            if connections.remove(connection.id) != nil { end(connection, .connectionLost) }
            return true
        case .failed, nil:
            currentMetrics.messagesDropped += 1
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
            guard let connection = connections[id] else {
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
    func end(_ connection: Connection, _ ending: TerminationReason) {
        for request in connection.open.values {
            request.credit?.close()
            request.signal.cancel(ending)
        }
        connection.open = [:]
        connection.queue = []
        connection.held = []
        connection.outboxSemaphore.close()
        blocked.remove(connection.id)
    }

    /// Removes an idle inproc connection: inproc does not report a peer that leaves. The peer's next message adds it
    /// again.
    private func forgetIfIdle(_ connection: Connection) {
        guard connection.descriptor == nil, connection.isIdle else { return }
        _ = connections.remove(connection.id)
    }
}
