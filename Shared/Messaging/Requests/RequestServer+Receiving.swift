import Basics
import Dispatch
import JSONValue

extension RequestServer {
    /// Receives and handles messages, up to the budget.
    ///
    /// - Returns: whether there may be more.
    func receive(hasEvents: Bool) -> Bool {
        guard socketBox.socket != nil else { return false }
        var batch: [IncomingMessage] = []
        var bytes = 0
        while batch.count < limits.receiveBudget, bytes < limits.receiveBudgetBytes,
            let message = socketBox.socket?.socket.receive(
                maxFrames: limits.maxFrames + 2,
                maxBytes: limits.maxMessageBytes + 512,
                leadingFrames: 1,
                wantsPeer: true,
                knowsPeer: { state.connections.byRouting[$0]?.descriptor == $1 }
            )
        {
            bytes += message.totalBytes
            batch.append(message)
        }
        // Events are read after the messages, so that messages of a descriptor's new owner are never attributed to its
        // previous one.
        if hasEvents || !batch.isEmpty { for event in socketBox.socket?.events() ?? [] { handle(event) } }
        state.metrics.bytesIn += bytes
        for message in batch { handle(message) }
        return batch.count == limits.receiveBudget || bytes >= limits.receiveBudgetBytes
    }

    func handle(_ event: ConnectionEvent) {
        switch event {
        case .opened(let descriptor): state.opened(descriptor)
        case .closed(let descriptor):
            for connection in state.closed(descriptor) { end(connection, .connectionLost) }
        case .refused: state.metrics.handshakesRefused += 1
        case .ready: break
        }
    }

    private func handle(_ message: IncomingMessage) {
        let (connection, replaced) = state.connection(of: message)
        if let replaced { end(replaced, .connectionLost) }
        guard let connection else { return }
        guard !connection.isExcess else { return disconnect(connection, "its key has too many connections") }
        carryOut(state.received(message, on: connection, at: clock.nowMicroseconds()))
    }

    /// Continues after a large JSON frame was parsed: handles it and the messages queued behind it.
    func resume(_ id: ConnectionID, _ envelope: Envelope, _ message: IncomingMessage, _ prefix: [Bytes]) {
        let now = clock.nowMicroseconds()
        guard let decision = state.parsed(envelope, message, prefix: prefix, of: id, at: now) else { return }
        carryOut(decision)
        while let next = state.nextHeld(of: id, at: now) { carryOut(next) }
    }

    /// Opens waiting requests, up to the budget.
    func openWaiting() {
        guard state.mayOpenWaiting else { return }
        let now = clock.nowMicroseconds()
        for _ in 0..<limits.receiveBudget {
            guard let decision = state.nextWaiting(at: now) else { return }
            carryOut(decision)
        }
    }

    private func carryOut(_ decision: RequestServerStateMachine.Decision) {
        switch decision {
        case .nothing: break
        case .answer(let answer): send(answer)
        case .cancelWaiting(let cancelled, let answer):
            send(cancelled)
            if let answer { send(answer) }
        case .cancel(let request, let answer):
            request.signal.cancel(.cancelled)
            if let answer { send(answer) }
        case .addCredit(let request, let bytes, let answer):
            request.credit?.release(bytes)
            if let answer { send(answer) }
        case .parse(let message, let recipient): parse(message, recipient)
        case .run(let request):
            if let reply = handler.replyAtOnce(to: request.incoming, request.context), send(reply, to: request) {
                return
            }
            let semaphores = [request.recipient.connection.outboxSemaphore, outboxSemaphore]
            start(state.open(request, semaphores: semaphores))
        }
    }

    /// The queue that parses large JSON frames, one after the other. Each connection has at most one frame in it, so
    /// that connections are served fairly.
    private static let parser = DispatchQueue(label: "large-requests")

    private func parse(_ message: IncomingMessage, _ recipient: RequestServerStateMachine.Recipient) {
        let (limits, outbox, id, prefix) = (limits, outbox, recipient.connection.id, recipient.prefix)
        Self.parser.async {
            let frame = message.frames.first ?? []
            let envelope = Envelope(parsing: frame, limits: limits)
            message.reservation?.addValues(of: envelope, frameBytes: frame.count)
            outbox.post(.parsed(id, envelope, message, prefix: prefix))
        }
    }
}
