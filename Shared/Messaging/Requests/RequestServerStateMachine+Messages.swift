import Basics
import DequeModule
import JSONValue

// MARK: - Decisions about received messages

extension RequestServerStateMachine {
    /// Decides about a received message.
    mutating func received(_ message: IncomingMessage, on connection: Connection, at now: Int64) -> Decision {
        var content = message
        let length = ReplyEnvelope.length(in: message.frames.dropFirst())
        let recipient = Recipient(connection: connection, prefix: Array(message.frames.prefix(1 + length)))
        content.frames.removeFirst(1 + length)
        content.totalFrames -= 1 + length
        content.reservation = RequestReservation.make(content.frameBytes, of: connection.memory, limits: limits)
        guard content.reservation != nil else {
            return refuse(limits.requestMemoryExceeded, "busy", id: Self.headID(of: content), recipient)
        }
        if connection.isParsing { return queueBehindLarge(content, recipient) }
        return decideUnparsed(content, recipient, at: now)
    }

    /// Queues a message behind a large one of the same connection that is being parsed, to keep their order.
    private mutating func queueBehindLarge(_ message: IncomingMessage, _ recipient: Recipient) -> Decision {
        guard recipient.connection.queuedBehindLarge.count < limits.waitingRequestsPerConnection else {
            let error = RPCError.busy("too many messages wait behind a large one; try again later")
            return refuse(error, "busy", id: Self.headID(of: message), recipient)
        }
        recipient.connection.queuedBehindLarge.append((message, recipient.prefix))
        return .nothing
    }

    /// Decides about a large message after its JSON frame was parsed. ``nextBehindLarge(of:at:)`` decides about those
    /// queued behind it.
    ///
    /// - Returns: nil if its sender has left
    mutating func parsed(
        _ parsed: RPCMessage,
        _ message: IncomingMessage,
        prefix: [Bytes],
        of id: ConnectionID,
        at now: Int64
    ) -> Decision? {
        guard let connection = connections[id] else { return nil }
        connection.isParsing = false
        return decide(parsed, message, Recipient(connection: connection, prefix: prefix), at: now)
    }

    /// Decides about the next message that waited behind a large one; returns nil if there is none, or if the next
    /// large one is being parsed.
    mutating func nextBehindLarge(of id: ConnectionID, at now: Int64) -> Decision? {
        guard let connection = connections[id], !connection.isParsing,
            let (message, prefix) = connection.queuedBehindLarge.popFirst()
        else { return nil }
        return decideUnparsed(message, Recipient(connection: connection, prefix: prefix), at: now)
    }

    private mutating func decideUnparsed(
        _ message: IncomingMessage,
        _ recipient: Recipient,
        at now: Int64
    ) -> Decision {
        guard let frame = message.frames.first else {
            let error = RPCError.invalidRequest("the message is empty; its first frame must be a JSON-RPC object")
            return refuse(error, "empty", id: .null, recipient)
        }
        guard frame.count <= limits.parseInlineBytes else {
            let head = RPCMessageHead(frame)
            let applied = head.method.map(methodLimits) ?? .default
            guard frame.count <= applied.maxJSONBytes else {
                return refuse(Self.tooLarge(frame, head, applied), "json_too_large", id: head.id ?? .null, recipient)
            }
            recipient.connection.isParsing = true
            return .parse(message, recipient)
        }
        return decide(RPCMessage(of: message, limits: limits), message, recipient, at: now)
    }

    private mutating func decide(
        _ parsed: RPCMessage,
        _ message: IncomingMessage,
        _ recipient: Recipient,
        at now: Int64
    ) -> Decision {
        let connection = recipient.connection
        switch parsed {
        case .request(let request):
            return violation(of: message, request, recipient) ?? accept(request, message, recipient, at: now)
        case .cancel(let id, let target):
            if let waiting = connection.waiting.remove(target) { return cancel(waiting, id, recipient) }
            let request = connection.open[target]
            let response = acknowledgement(id, "cancelled", request != nil, recipient)
            return request.map { .cancel($0, response) } ?? response.map { .respond($0) } ?? .nothing
        case .credit(let id, let target, let bytes):
            if connection.waiting[target] != nil {
                let isCredited = connection.waiting.addCredit(bytes, to: target, limit: limits.maxCredit)
                return acknowledgement(id, "credited", isCredited, recipient).map { .respond($0) } ?? .nothing
            }
            let request = connection.open[target]
            let response = acknowledgement(id, "credited", request?.credit != nil, recipient)
            return request.map { .addCredit($0, bytes: bytes, response) } ?? response.map { .respond($0) } ?? .nothing
        case .notification:
            metrics.notificationsReceived += 1
            return recipient.isREQ ? refuse(Self.noID, id: .null, recipient) : .nothing
        case .invalid(let id, let error, let kind):
            return refuse(error, kind, id: id, recipient)
        }
    }

    private mutating func cancel(_ waiting: WaitingRequests.Entry, _ id: JSON?, _ recipient: Recipient) -> Decision {
        waitingCount -= 1
        let ended = ServerResponse(
            content: .error(.cancelled("the request was cancelled before it began")),
            id: waiting.request.id,
            recipient: Recipient(connection: recipient.connection, prefix: waiting.prefix)
        )
        return .cancelWaiting(ended, acknowledgement(id, "cancelled", true, recipient))
    }

    /// Returns the response to `rpc.cancel` or `rpc.credit`; nil if none is expected.
    private func acknowledgement(
        _ id: JSON?,
        _ name: String,
        _ value: Bool,
        _ recipient: Recipient
    ) -> ServerResponse? {
        guard let id else {
            return recipient.isREQ ? ServerResponse(content: .error(Self.noID), id: .null, recipient: recipient) : nil
        }
        return ServerResponse(content: .result(.object([name: .bool(value)])), id: id, recipient: recipient)
    }

    private mutating func violation(
        of message: IncomingMessage,
        _ request: RPCMessage.Request,
        _ recipient: Recipient
    ) -> Decision? {
        let (kind, text): (String, String)
        if message.violation == .tooManyFrames || message.totalFrames > limits.maxFrames {
            kind = IncomingMessage.Violation.tooManyFrames.rawValue
            text = "a message has at most \(limits.maxFrames) frames, this one \(message.totalFrames)"
        } else if message.violation == .messageTooLarge {
            kind = IncomingMessage.Violation.messageTooLarge.rawValue
            text = "a message has at most \(limits.maxMessageBytes) bytes, this one \(message.totalBytes)"
        } else if let large = message.frames.dropFirst().first(where: { $0.count > limits.maxAttachmentBytes }) {
            kind = "attachment_too_large"
            text = "an attachment has at most \(limits.maxAttachmentBytes) bytes, this one \(large.count)"
        } else {
            return nil
        }
        let method = methodLimits(request.method)
        let advice = method.takesAttachments ? method.advice : "\(request.method) accepts no attachments"
        return refuse(.invalidRequest("\(text); \(advice)"), kind, id: request.id, recipient)
    }

    private mutating func accept(
        _ request: RPCMessage.Request,
        _ message: IncomingMessage,
        _ recipient: Recipient,
        at now: Int64
    ) -> Decision {
        let connection = recipient.connection
        guard stage == .serving else {
            return refuse(Self.stopping, id: request.id, recipient)
        }
        if let isAdmitted, let curveIdentity = connection.curveIdentity, !isAdmitted(curveIdentity) {
            return refuse(Self.revoked, "revoked", id: request.id, recipient)
        }
        guard message.frames.count == 1 || methodLimits(request.method).takesAttachments else {
            let error = RPCError.invalidRequest("\(request.method) accepts no attachments; send the JSON frame alone")
            return refuse(error, "attachments", id: request.id, recipient)
        }
        guard connection.open[request.id] == nil, connection.waiting[request.id] == nil else {
            var error = RPCError.requestIDInUse("the id belongs to a request that is still open; use another id")
            error.data = ["id": request.id]
            return refuse(error, "id_in_use", id: .null, recipient)
        }
        guard connection.waiting.isEmpty, hasCapacity(connection) else {
            return wait(request, message, recipient, at: now) ? .nothing : refuse(busy, id: request.id, recipient)
        }
        return decisionToRun(request, message, attachments: Array(message.frames.dropFirst()), recipient, at: now)
    }

    /// Returns the decision to run a request that was checked.
    mutating func decisionToRun(
        _ request: RPCMessage.Request,
        _ message: IncomingMessage,
        attachments: [Bytes],
        _ recipient: Recipient,
        at now: Int64
    ) -> Decision {
        let connection = recipient.connection
        metrics.requests += 1
        let context = RequestContext(
            attachments: attachments,
            connection: connection.id,
            identity: connection.identity,
            cachedPermission: connection.cachedPermission,
            acceptsNotifications: !recipient.isREQ,
            deadlineMicroseconds: deadline(of: request, at: now),
            credit: request.credit
        )
        return .run(
            AcceptedRequest(
                incoming: IncomingRequest(id: request.id, method: request.method, params: .object(request.params)),
                context: context,
                recipient: recipient,
                reservation: message.reservation
            )
        )
    }

    /// Returns the time of a request's deadline. A request with credit and without `deadlineMs` is a stream and ends
    /// with its connection.
    private func deadline(of request: RPCMessage.Request, at now: Int64) -> Int64 {
        if request.deadline == nil, request.credit != nil { return .max }
        return now.addingClamped(request.deadline ?? limits.defaultDeadline.microseconds)
    }

    /// Counts a refused message and returns the response to it.
    ///
    /// - Parameter kind: the name of the counter; nil for errors that are counted by their own name only
    private mutating func refuse(
        _ error: RPCError,
        _ kind: String? = nil,
        id: JSON,
        _ recipient: Recipient
    ) -> Decision {
        if let kind { metrics.refusedMessages[kind, default: 0] += 1 }
        return .respond(ServerResponse(content: .error(error), id: id, recipient: recipient))
    }

    private static func headID(of message: IncomingMessage) -> JSON {
        message.frames.first.flatMap { RPCMessageHead($0).id } ?? .null
    }

    private static func tooLarge(_ frame: Bytes, _ head: RPCMessageHead, _ limits: MethodLimits) -> RPCError {
        let maximum = limits.maxJSONBytes
        guard let method = head.method else {
            return .limitExceeded(
                "a request has at most \(maximum) bytes of JSON if its method does not precede its params, "
                    + "this one has \(frame.count); write the method before the params"
            )
        }
        return .limitExceeded(
            "a request of \(method.prefix(64)) has at most \(maximum) bytes of JSON, this one has \(frame.count); "
                + limits.advice
        )
    }

    private static let noID = RPCError.invalidRequest("a request has an id")
}
