import Basics
import DequeModule
import JSONValue
import Logging

/// The steps of sending, all on the poll thread.
///
/// ``respondAtOnce(with:to:)`` and ``respond(with:)`` make the message of a response that needs no task; a task makes
/// its own and posts it as an event. ``addOutgoing(_:to:)`` adds a message to those of this pass, which
/// ``flushOutgoing()`` passes to libzmq together. A message whose peer has a full queue in libzmq waits in the queue of
/// its connection, until ``retryBlocked()`` has sent it.
extension RequestServer {
    /// Sends a reply made on the poll thread; returns false if it has to wait for capacity or is too large.
    func respondAtOnce(with reply: Reply, to request: RequestServerStateMachine.AcceptedRequest) -> Bool {
        let connection = request.recipient.connection
        let frames = [reply.frame(id: request.incoming.id)] + reply.attachments
        let bytes = frames.reduce(0) { $0 + $1.count }
        guard limits.violation(of: frames) == nil, let reservation = connection.outbox.tryReserve(bytes) else {
            return false
        }
        state.metrics.responses += 1
        state.metrics.responsesAtOnce += 1
        addOutgoing(OutgoingMessage(request.recipient.prefix + frames, reservation: reservation), to: connection)
        return true
    }

    /// Sends a response of the server itself; it never waits for capacity.
    func respond(with response: RequestServerStateMachine.ServerResponse) {
        let (connection, prefix) = (response.recipient.connection, response.recipient.prefix)
        let error: RPCError
        switch response.content {
        case .error(let content): error = content
        case .result(let result):
            let frame = RPCMessageWriter.result(id: response.id, result)
            return addOutgoing(OutgoingMessage(prefix + [frame]), to: connection)
        }
        state.metrics.responses += 1
        state.metrics.errors[error.name, default: 0] += 1
        let frame = RPCMessageWriter.error(id: response.id, error)
        let reservation = connection.outbox.reserveWithoutWaiting(frame.count)
        addOutgoing(OutgoingMessage(prefix + [frame], reservation: reservation), to: connection)
    }

    /// Adds a message to those of this pass. They are sent at its end, or as soon as there are ``maxOutgoing``.
    func addOutgoing(_ message: OutgoingMessage, to connection: Connection) {
        outgoing.append((message, connection))
        if outgoing.count >= Self.maxOutgoing { flushOutgoing() }
    }

    /// The maximum number of messages that are sent together; more would delay the first of them.
    private static let maxOutgoing = 32

    /// Sends the messages of this pass.
    func flushOutgoing() {
        guard !outgoing.isEmpty else { return }
        let messages = outgoing
        outgoing.removeAll(keepingCapacity: true)
        for (message, connection) in messages {
            sendOrQueue(message, to: connection)
            state.forgetIfIdle(connection)
        }
    }

    /// Sends a message now, or queues it for its connection until libzmq accepts it.
    private func sendOrQueue(_ message: OutgoingMessage, to connection: Connection) {
        var message = message
        if connection.queue.isEmpty, trySend(&message, to: connection) { return }
        guard state.connections[connection.id] != nil else { return }
        guard connection.queue.count < limits.outboxMessagesPerConnection else {
            state.metrics.messagesDropped += 1
            return
        }
        connection.queue.append(message)
        if blocked.insert(connection.id).inserted, blocked.count == 1 { pauseBlocked(Self.minDelay) }
    }

    /// Passes a message to libzmq.
    ///
    /// - Returns: true if it was sent or dropped; false if the queue to the peer is full
    private func trySend(_ message: inout OutgoingMessage, to connection: Connection) -> Bool {
        countEarlier(&message, connection)
        switch socketBox.socket?.socket.send(message) {
        case .sent:
            let bytes = message.byteCount
            state.metrics.bytesOut += bytes
            if !message.isCounted { connection.uncountedBytes += bytes }
            return true
        case .full: return false
        case .unreachable:
            state.metrics.messagesDropped += 1
            if state.remove(connection) { endRequests(of: connection, .connectionLost) }
            return true
        case .failed, nil:
            state.metrics.messagesDropped += 1
            return true
        }
    }

    /// Adds the bytes of earlier small messages to a message's reservation, because libzmq may have queued many of
    /// them. Messages leave in order, so the small ones have left once this one has.
    private func countEarlier(_ message: inout OutgoingMessage, _ connection: Connection) {
        let bytes = connection.uncountedBytes
        guard bytes >= OutgoingMessage.countedBytes else { return }
        connection.uncountedBytes = 0
        message.reservation = connection.outbox.reserveWithoutWaiting(bytes, keeping: message.reservation)
    }

    private static let minDelay: Int64 = 1000
    private static let maxDelay: Int64 = 64_000

    /// Retries the peers whose queue was full.
    ///
    /// ROUTER's POLLOUT says only that *some* peer accepts messages, so these are retried after a pause that doubles
    /// while no message can be sent.
    func retryBlocked() {
        guard !blocked.isEmpty, clock.nowMicroseconds() >= blockedUntil else { return }
        var hasSent = false
        for id in blocked {
            guard let connection = state.connections[id] else {
                blocked.remove(id)
                continue
            }
            while var message = connection.queue.first {
                guard trySend(&message, to: connection) else {
                    connection.queue[0] = message
                    break
                }
                hasSent = true
                // The queue is empty now if the connection has ended.
                if !connection.queue.isEmpty { connection.queue.removeFirst() }
            }
            if connection.queue.isEmpty { blocked.remove(id) }
        }
        pauseBlocked(hasSent ? Self.minDelay : min(blockedPause * 2, Self.maxDelay))
    }

    private func pauseBlocked(_ pause: Int64) {
        blockedPause = pause
        blockedUntil = clock.nowMicroseconds().addingClamped(pause)
    }

    /// Ends the requests of a connection that was removed from the table.
    func endRequests(of connection: Connection, _ reason: TerminationReason) {
        for ending in state.endRequests(of: connection, reason) { endRequest(ending) }
        connection.queue = []
        connection.outbox.close()
        blocked.remove(connection.id)
        handler.connectionEnded(connection.id)
    }
}

// MARK: - Peers that do not read

extension RequestServer {
    /// Ends a connection that does not read, at most once a second while at most half of the outbox is free.
    func endStalled(at now: Int64) {
        guard now >= nextOutboxCheck else { return }
        nextOutboxCheck = now.addingClamped(Self.outboxCheckInterval)
        let wasShort = isOutboxShort
        isOutboxShort = state.isOutboxShort
        guard isOutboxShort, let connection = state.stalledConnection(at: now, isFirst: !wasShort) else { return }
        disconnect(connection, "it has not read a whole message for a long time, and its replies delay those of others")
    }

    private static let outboxCheckInterval: Int64 = 1_000_000

    /// Ends connections over which no message was received, while few connections are left for other peers.
    func endSilent(at now: Int64) {
        let peers = state.connections.peers
        for peer in peers.silent(at: now) {
            let isEnded = peers.end(peer) { handleConnectionEvents() }
            if isEnded { noteEnd(of: nil, "it has sent nothing, and few connections are left for others") }
        }
    }

    /// Ends connections that send a message without an end.
    ///
    /// - Parameter isDrained: true if all whole messages that libzmq had received have been read
    func endConnectionsWithEndlessMessages(isDrained: Bool) {
        let peers = state.connections.peers
        let unread = isDrained ? 0 : Int(limits.requestHighWaterMark)
        for peer in peers.endless(at: clock.nowMicroseconds(), above: limits.maxMessageBytes * (unread + 3)) {
            let isEnded = peers.end(peer) { handleConnectionEvents() }
            if isEnded { noteEnd(of: nil, "its message exceeds the maximum size and has no end") }
        }
    }

    /// Ends a connection; libzmq then reports its end like any other.
    func disconnect(_ connection: Connection, _ reason: String) {
        guard !connection.isEnding, let descriptor = connection.descriptor else { return }
        let isShutDown = Socket.shutDown(descriptor) {
            handleConnectionEvents()
            return state.connections[connection.id] === connection && state.connections.isSoleOwner(connection)
        }
        guard isShutDown else { return }
        connection.isEnding = true
        noteEnd(of: connection.identity, reason)
    }

    private func noteEnd(of identity: String?, _ reason: String) {
        state.metrics.connectionsEnded += 1
        guard let count = disconnections.count(at: clock.nowMicroseconds()) else { return }
        logger.warning(
            "connection ended",
            metadata: [
                "address": "\(boundAddress)", "identity": "\(identity ?? "unknown")", "reason": "\(reason)",
                "disconnected": "\(count)",
            ]
        )
    }
}
