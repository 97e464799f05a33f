public import Basics
import CZeroMQ
import JSONValue

/// The sequence of a subscriber's messages.
public struct SubscriberMessages: AsyncSequence, Sendable {
    public typealias Element = (topic: String, frames: [Bytes])
    public typealias Failure = Never

    let inbox: Mailbox<Publication>

    public func makeAsyncIterator() -> Iterator { Iterator(inbox: inbox) }

    /// The iterator of a subscriber's messages.
    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Mailbox<Publication>

        /// Returns the next message; `nil` if the subscriber is closed or the task cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> (topic: String, frames: [Bytes])? {
            guard case .element(let publication) = await inbox.next() else { return nil }
            return (publication.topic, publication.frames)
        }
    }
}
