public import Basics
import CZeroMQ
import JSONValue

/// The sequence of a subscriber's messages.
public struct SubscriberMessages: AsyncSequence, Sendable {
    public typealias Element = (topic: String, frames: [Bytes])
    public typealias Failure = Never

    let inbox: Mailbox<Publication>

    /// The outcome of waiting for a message with ``nextArrival()``.
    public enum Arrival: Sendable {
        case message(topic: String, frames: [Bytes])
        /// No message has arrived for an interval of ``watchSilence(every:)``.
        case silence
        /// The subscriber is closed or the task cancelled.
        case end
    }

    /// Waits for the next message, or until there was none for as long as ``watchSilence(every:)`` says.
    public func nextArrival() async -> Arrival {
        switch await inbox.next() {
        case .element(let publication): .message(topic: publication.topic, frames: publication.frames)
        case .cancelled: Task.isCancelled ? .end : .silence
        case .end: .end
        }
    }

    /// Ends each call of ``nextArrival()`` that has waited for one to two intervals. One timer serves all messages.
    ///
    /// - Returns: the task of the timer, to be cancelled by its owner; it ends with the subscriber too
    public func watchSilence(every interval: Duration) -> Task<Void, Never> {
        Task { [weak inbox = self.inbox] in
            for await _ in TaskDelay.ticks(every: interval) {
                guard !Task.isCancelled, let inbox else { return }
                inbox.endSilentWait()
            }
        }
    }

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
