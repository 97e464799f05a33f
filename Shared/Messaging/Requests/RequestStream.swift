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
    var isEncoded = false

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
                let draft = try stream.client.draft(
                    stream.method,
                    stream.params,
                    stream.attachments,
                    deadline: stream.deadline,
                    credit: stream.credit
                )
                guard stream.client.commands.capacity.tryAcquire(draft.byteCount) else {
                    throw .busy("too many bytes of requests are queued for the service; wait for responses")
                }
                call = try stream.client.send(
                    draft,
                    inbox: inbox,
                    waitsForConnection: stream.waitsForConnection,
                    isStream: true,
                    isEncoded: stream.isEncoded
                )
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

        /// Returns credit in steps of half the window: this avoids both a message for each notification and a stall
        /// before the next step.
        private func returnCredit(_ bytes: Int, of call: OutgoingCall) {
            guard let credit = stream.credit else { return }
            consumed += bytes
            guard consumed >= Swift.max(1, credit / 2) else { return }
            stream.client.giveCredit(consumed, to: call)
            consumed = 0
        }
    }
}

// MARK: - Unparsed notifications

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
