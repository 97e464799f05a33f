public import Contracts
public import JSONValue
public import Messaging

/// What a request that streams brings: notifications, then its answer.
public enum ServiceEvent<R: Request>: Sendable {
    case notification(method: String, params: JSON, attachments: [Bytes])
    /// The last element.
    case answer(Answer<R.Result>)
}

/// A request that streams. Each iteration is a request of its own; leaving the loop takes it back.
public struct ServiceStream<R: Request>: AsyncSequence, Sendable {
    public typealias Element = ServiceEvent<R>
    public typealias Failure = RPCError

    private let stream: RequestStream

    init(_ stream: RequestStream) { self.stream = stream }

    public func makeAsyncIterator() -> Iterator { Iterator(inner: stream.makeAsyncIterator()) }

    public struct Iterator: AsyncIteratorProtocol {
        var inner: RequestStream.Iterator

        /// The next notification or the answer; nil after the answer.
        ///
        /// - Throws: the service's error, or `connection_lost`
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> ServiceEvent<R>? {
            switch try await inner.next(isolation: actor) {
            case .notification(let method, let params, let attachments):
                .notification(method: method, params: params, attachments: attachments)
            case .reply(let reply):
                .answer(Answer(result: try R.result(of: reply.result), attachments: reply.attachments))
            case nil: nil
            }
        }

        public mutating func next() async throws(RPCError) -> ServiceEvent<R>? {
            try await next(isolation: #isolation)
        }
    }
}
