import Basics
import Contracts
public import JSONValue
public import Logging
public import Messaging
public import PhotoModel

/// The changes of a library, each exactly once, in order and without gaps, across lost messages, restarts of the broker
/// and long pauses of the caller.
///
/// Each iteration subscribes separately. A slow iteration affects no other client: messages that its bounded inbox
/// drops are read from history later.
public struct ChangeFeed: AsyncSequence, Sendable {
    public typealias Element = FeedEvent
    public typealias Failure = RPCError

    let broker: ServiceClient
    let feed: EndpointAddress
    let thread: PollThread
    let limits: MessagingLimits
    let security: SocketSecurity
    let logger: Logger
    let token: ChangeToken?
    let topics: [String]
    private(set) var confirmed: (@Sendable (ChangeToken) -> Void)?

    /// Creates a feed without a ``PhotoLibrary``.
    ///
    /// - Parameters:
    ///   - broker: the client for requests of history
    ///   - feed: the address of the live feed
    ///   - token: the last token seen; nil for new changes only
    ///   - topics: see ``FeedTopic``, at most 1,000; all changes if empty or if `changes` is among them
    public init(
        broker: ServiceClient,
        feed: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = MessagingLimits(),
        security: SocketSecurity = .none,
        logger: Logger,
        since token: ChangeToken?,
        topics: [String] = []
    ) {
        self.broker = broker
        self.feed = feed
        self.thread = thread
        self.limits = limits
        self.security = security
        self.logger = logger
        self.token = token
        self.topics = topics
    }

    /// Returns the same feed with a callback that confirms about once a second the token up to which the caller has
    /// received every event. Without a call, nothing is known about changes since the last one.
    public func confirming(_ confirmed: @escaping @Sendable (ChangeToken) -> Void) -> ChangeFeed {
        var feed = self
        feed.confirmed = confirmed
        return feed
    }

    public func makeAsyncIterator() -> Iterator { Iterator(reader: FeedReader(self)) }

    public struct Iterator: AsyncIteratorProtocol {
        let reader: FeedReader

        /// Waits for and returns the next event; nil if the task is cancelled or the library is closed.
        ///
        /// - Throws: permanent errors: one of the broker, or no more sockets are available
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> FeedEvent? {
            try await reader.next()
        }

        public mutating func next() async throws(RPCError) -> FeedEvent? { try await reader.next() }
    }
}

/// Waits between two attempts.
///
/// - Throws: `user_cancelled` if the task is cancelled
func pause(_ duration: Duration) async throws(RPCError) {
    await TaskDelay.retryDelay(duration)
    guard !Task.isCancelled else { throw ErrorCode.userCancelled.error("the waiting task was cancelled") }
}
