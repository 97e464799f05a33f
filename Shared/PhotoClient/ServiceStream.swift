public import Basics
public import Contracts
public import JSONValue
import Messaging

/// An event of a streaming request: notifications, then the response.
public enum ServiceEvent<R: Request>: Sendable {
    /// A notification about the request.
    case notification(method: String, params: JSON, attachments: [Bytes])
    /// The response; the last element.
    case answer(ServiceResponse<R.Result>)
}

/// A streaming request. Each iteration sends a request of its own; leaving the loop cancels it.
public struct ServiceStream<R: Request>: AsyncSequence, Sendable {
    public typealias Element = ServiceEvent<R>
    public typealias Failure = RPCError

    private let stream: RequestStream

    init(_ stream: RequestStream) { self.stream = stream }

    public func makeAsyncIterator() -> Iterator { Iterator(inner: stream.makeAsyncIterator()) }

    public struct Iterator: AsyncIteratorProtocol {
        var inner: RequestStream.Iterator

        /// Returns the next notification or the response; nil after the response.
        ///
        /// - Throws: the service's error, or `connection_lost`
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> ServiceEvent<R>? {
            switch try await inner.next(isolation: actor) {
            case .notification(let method, let params, let attachments):
                .notification(method: method, params: params, attachments: attachments)
            case .reply(let reply):
                .answer(ServiceResponse(result: try R.result(of: reply.result), attachments: reply.attachments))
            case nil: nil
            }
        }

        public mutating func next() async throws(RPCError) -> ServiceEvent<R>? {
            try await next(isolation: #isolation)
        }
    }
}
