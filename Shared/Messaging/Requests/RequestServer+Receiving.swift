import Basics
import DequeModule
import Dispatch
import JSONValue
import Logging

extension RequestServer {
    /// Receives and handles messages, up to the budget.
    ///
    /// - Returns: whether there may be more.
    func receive() -> Bool {
        guard socketBox.socket != nil else { return false }
        var batch: [IncomingMessage] = []
        var bytes = 0
        while batch.count < limits.receiveBudget, bytes < limits.receiveBudgetBytes,
            let message = socketBox.socket?.socket.receive(
                maxFrames: limits.maxFrames + 2,
                maxBytes: limits.maxMessageBytes + 512,
                leadingFrames: 1,
                wantsPeer: true
            )
        {
            bytes += message.totalBytes
            batch.append(message)
        }
        // Events are read after the messages, so that messages of a descriptor's new owner are never attributed to its
        // previous one.
        for event in socketBox.socket?.events() ?? [] { handle(event) }
        currentMetrics.bytesIn += bytes
        for message in batch { handle(message) }
        return batch.count == limits.receiveBudget || bytes >= limits.receiveBudgetBytes
    }

    private func handle(_ event: ConnectionEvent) {
        switch event {
        case .opened(let descriptor):
            currentMetrics.peersOpened += 1
            connections.opened(descriptor)
        case .closed(let descriptor):
            currentMetrics.peersClosed += 1
            for connection in connections.closed(descriptor) { end(connection, .connectionLost) }
        case .refused: currentMetrics.handshakesRefused += 1
        case .ready: break
        }
    }

    private func handle(_ message: IncomingMessage) {
        guard let routing = message.frames.first else { return }
        // CURVE messages without a key have no identity and are dropped.
        if domain != nil, message.curveIdentity == nil {
            currentMetrics.messagesDropped += 1
            return
        }
        let found = connections.find(routing: routing, message: message, limits: limits) { end($0, .connectionLost) }
        guard case .connection(let connection) = found else {
            currentMetrics.messagesDropped += 1
            return
        }
        var content = message
        let length = EnvelopePrefix.length(in: message.frames.dropFirst())
        let prefix = Array(message.frames.prefix(1 + length))
        content.frames.removeFirst(1 + length)
        content.totalFrames -= 1 + length
        let reservation = RequestReservation.make(
            content.keptBytes,
            connection: connection.memory,
            service: memory,
            limits: limits
        )
        guard let reservation else { return refuseForMemory(content, prefix, on: connection) }
        content.reservation = reservation
        guard !connection.isParsing else { return parkMessage(content, prefix, on: connection) }
        decode(content, prefix, on: connection)
    }

    /// Answers with `busy` and drops the message.
    private func refuseForMemory(_ message: IncomingMessage, _ prefix: [Bytes], on connection: Connection) {
        count("busy")
        sendError(
            .busy(
                "open requests may use at most \(limits.requestBytesPerConnection) bytes per connection and "
                    + "\(limits.requestBytes) per service; wait for responses"
            ),
            id: message.frames.first.flatMap { EnvelopeHead($0).id } ?? .null,
            prefix,
            connection
        )
    }

    /// Queues a message behind a large one of the same connection that is being parsed, to keep their order.
    private func parkMessage(_ message: IncomingMessage, _ prefix: [Bytes], on connection: Connection) {
        guard connection.held.count < limits.requestsPerConnection else {
            count("busy")
            let id = message.frames.first.flatMap { EnvelopeHead($0).id } ?? .null
            sendError(.busy("too many messages wait behind a large one; try again later"), id: id, prefix, connection)
            return
        }
        connection.held.append((message, prefix))
    }

    private func decode(_ message: IncomingMessage, _ prefix: [Bytes], on connection: Connection) {
        guard let frame = message.frames.first else {
            count("empty")
            sendError(
                .invalidRequest("the message is empty; its first frame must be a JSON-RPC object"),
                id: .null,
                prefix,
                connection
            )
            return
        }
        guard frame.count <= limits.parseInlineBytes else {
            let head = EnvelopeHead(frame)
            let most = (head.method.map(handler.limits(of:)) ?? .usual).maxJSONBytes
            guard frame.count <= most else {
                count("json_too_large")
                return sendError(Self.tooLarge(frame, head, most), id: head.id ?? .null, prefix, connection)
            }
            connection.isParsing = true
            return parse(message, prefix, of: connection.id)
        }
        let envelope = Envelope(parsing: frame, limits: limits)
        message.reservation?.addValues(of: envelope, frameBytes: frame.count)
        handle(envelope, message, prefix, on: connection)
    }

    private static func tooLarge(_ frame: Bytes, _ head: EnvelopeHead, _ most: Int) -> RPCError {
        guard let method = head.method else {
            return .limitExceeded(
                "a request has at most \(most) bytes of JSON if its method does not precede its params, this one has "
                    + "\(frame.count)"
            )
        }
        return .limitExceeded(
            "a request of \(method.prefix(64)) has at most \(most) bytes of JSON, this one has \(frame.count); split it"
        )
    }

    /// The queue that parses large JSON frames, one after the other. Each connection has at most one frame in it, so
    /// that connections are served fairly.
    private static let parser = DispatchQueue(label: "large-requests")

    private func parse(_ message: IncomingMessage, _ prefix: [Bytes], of connection: ConnectionID) {
        let (limits, outbox) = (limits, outbox)
        Self.parser.async {
            let frame = message.frames.first ?? []
            let envelope = Envelope(parsing: frame, limits: limits)
            message.reservation?.addValues(of: envelope, frameBytes: frame.count)
            outbox.post(.parsed(connection, envelope, message, prefix: prefix))
        }
    }

    /// Continues after a large JSON frame was parsed: handles it and the messages queued behind it.
    func resume(_ id: ConnectionID, _ envelope: Envelope, _ message: IncomingMessage, _ prefix: [Bytes]) {
        guard let connection = connections[id] else { return }
        connection.isParsing = false
        handle(envelope, message, prefix, on: connection)
        while !connection.isParsing, let (next, nextPrefix) = connection.held.popFirst() {
            decode(next, nextPrefix, on: connection)
        }
    }

    private func handle(
        _ envelope: Envelope,
        _ message: IncomingMessage,
        _ prefix: [Bytes],
        on connection: Connection
    ) {
        switch envelope {
        case .request(let request):
            if let error = rpcError(of: message) {
                return sendError(error, id: request.id, prefix, connection)
            }
            open(request, message, prefix, on: connection)
        case .cancel(let id, let target):
            let request = connection.open[target]
            request?.signal.cancel(.cancelled)
            acknowledge(id, "cancelled", request != nil, prefix, connection)
        case .credit(let id, let target, let bytes):
            let request = connection.open[target]
            request?.credit?.release(bytes)
            acknowledge(id, "credited", request?.credit != nil, prefix, connection)
        case .notification:
            currentMetrics.notificationsReceived += 1
            // REQ waits for a response to every message; a DEALER does not.
            if prefix.count > 1 {
                sendError(.invalidRequest("a request has an id"), id: .null, prefix, connection)
            }
        case .invalid(let id, let error, let kind):
            count(kind)
            sendError(error, id: id, prefix, connection)
        }
    }

    private func acknowledge(
        _ id: JSON?,
        _ name: String,
        _ value: Bool,
        _ prefix: [Bytes],
        _ connection: Connection
    ) {
        guard let id else {
            if prefix.count > 1 { sendError(.invalidRequest("a request has an id"), id: .null, prefix, connection) }
            return
        }
        let result: JSON = .object([name: .bool(value)])
        transmit(OutgoingMessage(prefix + [EnvelopeWriter.result(id: id, result)]), to: connection)
    }

    private func rpcError(of message: IncomingMessage) -> RPCError? {
        if message.violation == .tooManyFrames || message.totalFrames > limits.maxFrames {
            count(IncomingMessage.Violation.tooManyFrames.rawValue)
            return .invalidRequest("a message has at most \(limits.maxFrames) frames, this one \(message.totalFrames)")
        }
        if message.violation == .messageTooLarge {
            count(IncomingMessage.Violation.messageTooLarge.rawValue)
            return .invalidRequest(
                "a message has at most \(limits.maxMessageBytes) bytes, this one \(message.totalBytes)"
            )
        }
        if let large = message.frames.dropFirst().first(where: { $0.count > limits.maxAttachmentBytes }) {
            count("attachment_too_large")
            return .invalidRequest(
                "an attachment has at most \(limits.maxAttachmentBytes) bytes, this one \(large.count)"
            )
        }
        return nil
    }

    private func open(
        _ request: Envelope.Request,
        _ message: IncomingMessage,
        _ prefix: [Bytes],
        on connection: Connection
    ) {
        guard stage == .serving else {
            return sendError(.busy("the service is stopping; connect again later"), id: request.id, prefix, connection)
        }
        if let domain, let curveIdentity = connection.curveIdentity,
            !thread.context.authenticator.isAdmitted(curveIdentity, to: domain)
        {
            count("revoked")
            return sendError(Self.revoked, id: request.id, prefix, connection)
        }
        guard message.frames.count == 1 || handler.limits(of: request.method).takesAttachments else {
            count("attachments")
            let error = RPCError.invalidRequest("\(request.method) accepts no attachments; send the JSON frame alone")
            return sendError(error, id: request.id, prefix, connection)
        }
        guard connection.open[request.id] == nil else {
            count("id_in_use")
            var error = RPCError.requestIDInUse("the id belongs to a request that is still open; use another id")
            error.data = ["id": request.id]
            return sendError(error, id: .null, prefix, connection)
        }
        // A task may still be running after its request was answered and the next request was accepted.
        guard connection.open.count < limits.requestsPerConnection,
            connection.running < 2 * limits.requestsPerConnection, running < limits.requests
        else {
            let error = RPCError.busy(
                "a connection has at most \(limits.requestsPerConnection) open requests and the service "
                    + "\(limits.requests); wait for responses"
            )
            return sendError(error, id: request.id, prefix, connection)
        }
        currentMetrics.requests += 1
        let deadline = deadline(of: request)
        let incoming = IncomingRequest(id: request.id, method: request.method, params: .object(request.params))
        let context = RequestContext(
            attachments: Array(message.frames.dropFirst()),
            connection: connection.id,
            identity: connection.identity,
            acceptsNotifications: prefix.count == 1,
            deadlineMicroseconds: deadline,
            credit: request.credit
        )
        if let reply = handler.replyAtOnce(to: incoming, context), send(reply, to: incoming, prefix, connection) {
            return
        }
        nextDeadline = min(nextDeadline, deadline)
        let credit = request.credit.map { ByteSemaphore(available: $0, maxAvailable: limits.maxCredit) }
        let open = OpenRequest(
            incoming,
            context,
            prefix: prefix,
            credit: credit,
            semaphores: [connection.outboxSemaphore, outboxSemaphore],
            reservation: message.reservation
        )
        connection.open[request.id] = open
        connection.running += 1
        running += 1
        work.append(RequestExecution(request: open, handler: handler, outbox: outbox))
    }

    /// Returns when a request's deadline passes. A request with credit and without `deadlineMs` is a stream and ends
    /// with its connection.
    private func deadline(of request: Envelope.Request) -> Int64 {
        if request.deadline == nil, request.credit != nil { return .max }
        return clock.nowMicroseconds().addingClamped(request.deadline ?? limits.defaultDeadline.microseconds)
    }

    func count(_ kind: String) {
        currentMetrics.refusedMessages[kind, default: 0] += 1
    }
}
