public import Basics
public import JSONValue

/// An element of a ``RequestStream``: a notification or the reply.
public enum StreamElement: Sendable, Equatable {
    /// A notification about the request; `params` contains the request's `id`.
    case notification(method: String, params: JSON, attachments: [Bytes])
    /// The response, the last element.
    case reply(Reply)
}

/// A request with notifications.
///
/// Each iteration sends a request of its own; leaving the loop cancels it.
public struct RequestStream: AsyncSequence, Sendable {
    public typealias Element = StreamElement
    public typealias Failure = RPCError

    let client: RequestClient
    let method: String
    let params: JSON
    let attachments: [Bytes]
    let deadline: Duration?
    let credit: Int?
    /// False if the stream fails at once while there is no connection.
    var waitsForConnection = true
    /// True if notifications are delivered unparsed.
    var wantsEncoded = false

    /// Sends the request.
    public func makeAsyncIterator() -> Iterator {
        Iterator(self)
    }

    /// One open request.
    public struct Iterator: AsyncIteratorProtocol {
        private let session: Session

        fileprivate init(_ stream: RequestStream) { session = Session(stream) }

        /// Returns the next notification or the reply; `nil` after the reply.
        ///
        /// - Throws: the request's error, `connection_lost`, or `user_cancelled` when the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> StreamElement? {
            switch try await session.next() {
            case .notification(let method, let params, let attachments, _):
                .notification(method: method, params: params, attachments: attachments)
            case .encoded(let notification, _):
                .notification(method: notification.method, params: try notification.params(), attachments: [])
            case .reply(let reply): .reply(reply)
            // Only calls without notifications receive an encoded reply.
            case .encodedReply, nil: nil
            }
        }

        /// Returns the next element with its notification unparsed.
        mutating func nextEncoded() async throws(RPCError) -> EncodedElement? {
            switch try await session.next() {
            case .notification(let method, let params, _, _): .notification(EncodedNotification(method, params))
            case .encoded(let notification, _): .notification(notification)
            case .reply(let reply): .reply(reply)
            // Only calls without notifications receive an encoded reply.
            case .encodedReply, nil: nil
            }
        }
    }

    /// Owns the call, and cancels it when the last iterator is released.
    private final class Session {
        private let stream: RequestStream
        private let call: OutgoingCall?
        private let inbox: Mailbox<CallElement>
        private var consumed = 0
        private var isOver = false
        private var refusal: RPCError?

        init(_ stream: RequestStream) {
            self.stream = stream
            let limits = stream.client.limits
            self.inbox = Mailbox(maxElements: limits.inboxMessages, maxBytes: limits.inboxBytes)
            do throws(RPCError) {
                let call = try stream.client.makeCall(
                    stream.method,
                    stream.params,
                    stream.attachments,
                    deadline: stream.deadline,
                    credit: stream.credit,
                    inbox: inbox,
                    waitsForConnection: stream.waitsForConnection,
                    wantsNotifications: true,
                    wantsEncoded: stream.wantsEncoded
                )
                guard stream.client.commands.capacity.tryAcquire(call.byteCount) else {
                    throw .busy("too many bytes of requests are queued for the service; wait for responses")
                }
                try stream.client.open(call)
                self.call = call
            } catch {
                call = nil
                refusal = error
            }
        }

        deinit {
            if let call, !isOver { stream.client.cancel(call) }
        }

        func next() async throws(RPCError) -> CallElement? {
            if let refusal {
                self.refusal = nil
                isOver = true
                throw refusal
            }
            guard let call, !isOver else { return nil }
            switch await inbox.next() {
            case .element(let element):
                switch element {
                case .notification(_, _, _, let bytes), .encoded(_, let bytes): returnCredit(bytes, of: call)
                case .reply, .encodedReply: isOver = true
                }
                return element
            case .end(let failure):
                isOver = true
                if let failure { throw failure }
                return nil
            case .cancelled:
                isOver = true
                stream.client.cancel(call)
                throw .cancelled("the waiting task was cancelled")
            }
        }

        /// Returns credit as soon as half of the stream's credit was consumed: this avoids both a message for each
        /// notification and a stall before the next step.
        private func returnCredit(_ bytes: Int, of call: OutgoingCall) {
            guard let credit = stream.credit else { return }
            consumed += bytes
            guard consumed >= Swift.max(1, credit / 2) else { return }
            stream.client.giveCredit(consumed, to: call)
            consumed = 0
        }
    }
}

// MARK: - Unparsed notifications and replies

/// A request whose notifications are delivered unparsed. Each iteration sends a request of its own.
public struct EncodedStream: AsyncSequence, Sendable {
    public typealias Element = EncodedElement
    public typealias Failure = RPCError

    let stream: RequestStream

    /// Sends the request.
    public func makeAsyncIterator() -> Iterator { Iterator(inner: stream.makeAsyncIterator()) }

    /// One open request.
    public struct Iterator: AsyncIteratorProtocol {
        var inner: RequestStream.Iterator

        /// Returns the next notification or the reply; `nil` after the reply.
        ///
        /// - Throws: the request's error, `connection_lost`, or `user_cancelled` when the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> EncodedElement? {
            try await inner.nextEncoded()
        }
    }
}

/// An element of an ``EncodedStream``: a notification in encoded form, or the reply.
public enum EncodedElement: Sendable, Equatable {
    /// A notification about the request.
    case notification(EncodedNotification)
    /// The response, the last element.
    case reply(Reply)
}

/// A notification whose params have not been parsed.
public struct EncodedNotification: Sendable, Equatable {
    /// The name of the notification, for example `progress`.
    public let method: String
    /// The whole JSON frame.
    public let frame: Bytes
    /// The byte range of the params, a JSON object, in ``frame``.
    public let range: Range<Int>

    /// Makes a notification from parsed params, which are an object.
    fileprivate init(_ method: String, _ params: JSON) {
        self.init(method: method, frame: params.bytes, range: 0..<params.bytes.count)
    }

    private init(method: String, frame: Bytes, range: Range<Int>) {
        self.method = method
        self.frame = frame
        self.range = range
    }

    /// Parses the params.
    fileprivate func params() throws(RPCError) -> JSON {
        do throws(JSONError) {
            return try JSON(parsing: frame[range])
        } catch {
            throw .internalError("a notification cannot be read: \(error)")
        }
    }

    /// Returns the notification in a frame and the id of the request it belongs to; nil if the frame is not such a
    /// notification.
    static func outline(of frame: Bytes) -> (id: Int64, notification: EncodedNotification)? {
        var (method, id, range): (String?, Int64?, Range<Int>?)
        do throws(JSONError) {
            try JSONCursor.read(frame) { (cursor) throws(JSONError) in
                try cursor.enterObject()
                while let name = try cursor.nextMember() {
                    switch name {
                    case "method": method = try cursor.parseString()
                    case "params":
                        guard try cursor.peek() == UInt8(ascii: "{") else { return }
                        let start = cursor.offset
                        try cursor.enterObject()
                        while let name = try cursor.nextMember() {
                            if name == "id" { id = try cursor.parseInteger() } else { try cursor.skip() }
                        }
                        range = start..<cursor.offset
                    default: try cursor.skip()
                    }
                }
            }
        } catch {
            return nil
        }
        guard let method, let id, let range else { return nil }
        return (id, EncodedNotification(method: method, frame: frame, range: range))
    }
}

/// A reply whose result has not been parsed.
public struct EncodedReply: Sendable, Equatable {
    /// The whole JSON frame.
    public let frame: Bytes
    /// The byte range of the result, one JSON value, in ``frame``.
    public let range: Range<Int>

    /// Returns the reply in a frame and the id of its request; nil if the frame is not a response with a result.
    static func outline(of frame: Bytes) -> (id: Int64, reply: EncodedReply)? {
        var (id, range): (Int64?, Range<Int>?)
        do throws(JSONError) {
            try JSONCursor.read(frame) { (cursor) throws(JSONError) in
                try cursor.enterObject()
                while let name = try cursor.nextMember() {
                    switch name {
                    case "id": id = try cursor.parseInteger()
                    case "result": range = try cursor.skip()
                    default: try cursor.skip()
                    }
                }
            }
        } catch {
            return nil
        }
        guard let id, let range else { return nil }
        return (id, EncodedReply(frame: frame, range: range))
    }
}
