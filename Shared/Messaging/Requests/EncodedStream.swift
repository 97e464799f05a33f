import Basics
public import JSONValue

/// An element of an ``EncodedStream``: a notification in encoded form, or the reply.
public enum EncodedElement: Sendable, Equatable {
    /// A notification about the request.
    case notification(EncodedNotification)
    /// The response, the last element.
    case reply(Reply)
}

/// A request whose notifications are passed on without being parsed. Each iteration sends a request of its own.
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
