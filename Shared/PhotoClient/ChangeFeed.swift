import Basics
public import Contracts
import DequeModule
public import JSONValue
public import Logging
public import Messaging
public import PhotoModel

/// The changes of a library, each exactly once, in order and without gaps, across lost messages, restarts of the broker
/// and long pauses of the caller.
///
/// Each iteration subscribes separately. A slow iteration affects no other client: messages that its bounded inbox
/// drops are read from history later. ``FeedReader`` at the end of this file receives messages and requests history for
/// an iteration; ``FeedStateMachine`` decides about the events and the next step.
public struct ChangeFeed: AsyncSequence, Sendable {
    public typealias Element = FeedEvent
    public typealias Failure = RPCError

    let broker: ServiceClient
    let address: EndpointAddress
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
    ///   - token: the last token that was processed; nil for new changes only
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
        self.address = feed
        self.thread = thread
        self.limits = limits
        self.security = security
        self.logger = logger
        self.token = token
        self.topics = topics
    }

    /// Returns the same feed with a callback that confirms about once a second the token up to which the caller has
    /// received every event. Between two calls, changes may not have arrived yet.
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

// MARK: - Events

/// An event of the change feed.
public enum FeedEvent: Sendable, Hashable {
    /// A change; each is delivered once, in the order of the sequences. If the feed is filtered by topics, the record
    /// contains only the changes that those topics carry.
    case change(ChangeRecord)
    /// The token is older than the retained history, or of another history (P-30): fetch everything again. The feed
    /// continues after `head`, so a fetch begun now misses nothing.
    case expired(head: ChangeToken, oldest: ChangeToken)
    /// Every event up to this token has been delivered. The feed can be continued from it later.
    case caughtUp(ChangeToken)

    /// The token to store once this event has been processed.
    public var token: ChangeToken {
        switch self {
        case .change(let record): record.token
        case .expired(let head, _): head
        case .caughtUp(let token): token
        }
    }
}

extension ChangeRecord {
    /// Returns the record with only those changes that a filter includes.
    public func restricted(to filter: FeedTopicFilter) -> ChangeRecord {
        if filter.isEverything { return self }
        let topics = filter.topics
        var part = self
        part.assets = assets.filter { topics.contains(FeedTopic.object($0.id)) }
        part.collections = collections.filter { topics.contains(FeedTopic.object($0.id)) }
        part.lists = lists.filter { topics.contains(FeedTopic.object($0.id)) }
        part.edits = edits.filter { topics.contains(FeedTopic.edit($0.id)) }
        if !topics.contains(FeedTopic.grants) { (part.grants, part.questions) = ([], []) }
        return part
    }

    /// True if the record contains no changes, for example after filtering.
    public var isEmpty: Bool {
        assets.isEmpty && collections.isEmpty && lists.isEmpty && edits.isEmpty && grants.isEmpty && questions.isEmpty
    }
}

// MARK: - Reading

/// Executes the actions of a ``FeedStateMachine``, one at a time.
final class FeedReader {
    private let feed: ChangeFeed
    private let filter: FeedTopicFilter
    private var state: FeedStateMachine
    private var subscriber: Subscriber?
    private var messages: SubscriberMessages?
    private var silence: Task<Void, Never>?
    private var events: Deque<FeedEvent> = []
    private var backoff = Backoff()

    private static let pageRecords = 500
    private static let requestDeadline = Duration.seconds(10)

    init(_ feed: ChangeFeed) {
        self.feed = feed
        self.filter = FeedTopicFilter(feed.topics)
        self.state = FeedStateMachine(since: feed.token, topics: feed.topics)
    }

    deinit { silence?.cancel() }

    func next() async throws(RPCError) -> FeedEvent? {
        do throws(RPCError) {
            // Subscribes before requesting history, so that messages published in between wait in the inbox.
            if subscriber == nil { try await subscribe() }
            while true {
                if let event = events.popFirst() { return event }
                switch state.nextAction {
                case .live:
                    switch await messages?.nextArrival() {
                    case .message(let topic, let frames): handle(topic, frames)
                    case .silence: state.handleSilence()
                    case .end, nil: return nil
                    }
                case .head: try await attempt(requestHead)
                case .page(let token):
                    try await attempt { () throws(RPCError) in try await self.requestPage(after: token) }
                }
            }
        } catch {
            if Task.isCancelled { return nil }
            throw error
        }
    }

    private func subscribe() async throws(RPCError) {
        if let error = FeedTopicFilter.rpcError(of: feed.topics) { throw error }
        let subscriber: Subscriber
        do throws(MessagingError) {
            subscriber = try Subscriber(
                address: feed.address,
                thread: feed.thread,
                limits: feed.limits,
                security: feed.security,
                logger: feed.logger
            )
        } catch {
            throw ErrorCode.unavailable.error("cannot subscribe to the feed: \(error)")
        }
        let refused = await subscriber.subscribe(filter.isEverything ? [FeedTopic.changes] : Array(filter.topics))
        guard refused.isEmpty, await subscriber.subscribe([FeedTopic.head]).isEmpty else {
            throw ErrorCode.limitExceeded.error(
                "a feed has at most \(feed.limits.topicsPerSubscriber) topics of at most \(FeedTopic.maxBytes) bytes",
                ["topics": JSON(Array(refused.prefix(10)))]
            )
        }
        self.subscriber = subscriber
        self.messages = subscriber.messages
        self.silence = subscriber.messages.watchSilence()
    }

    private func handle(_ topic: String, _ frames: [Bytes]) {
        do throws(JSONProblem) {
            switch try LiveMessage(topic: topic, frames: frames) {
            case .head(let head):
                state.handleHead(head, now: MonotonicClock.system.nowMicroseconds())
                confirm(head)
            case .change(let change): if let event = state.handleLive(change) { events.append(event) }
            }
        } catch {
            feed.logger.warning(
                "feed message cannot be decoded",
                metadata: ["topic": "\(topic)", "error": "\(error)"]
            )
            state.handleUndecodable()
        }
    }

    /// Confirms the position. All earlier events have been delivered, because a message is only read if none are left.
    private func confirm(_ head: FeedHead) {
        guard let position = state.position, position.library == head.library, position.sequence >= head.sequence,
            events.isEmpty, state.nextAction == .live
        else { return }
        feed.confirmed?(position)
    }

    /// Sends a request; after a transient error it waits and returns, and the state machine requests it again.
    private func attempt(_ request: () async throws(RPCError) -> Void) async throws(RPCError) {
        do throws(RPCError) {
            try await request()
            backoff.reset()
        } catch  where error.isTransient {
            feed.logger.debug("change-broker does not respond, retrying", metadata: ["error": "\(error.message)"])
            try await waitBeforeRetry(backoff.nextDelay())
        }
    }

    private func requestHead() async throws(RPCError) {
        let head = try await feed.broker.ask(FeedHeadRequest(), deadline: Self.requestDeadline).result
        events.append(state.begin(at: head))
    }

    private func requestPage(after token: ChangeToken) async throws(RPCError) {
        do throws(RPCError) {
            let request = FeedSince(token: token, limit: Self.pageRecords, topics: Array(filter.topics))
            let page = try await feed.broker.ask(request, deadline: Self.requestDeadline).result
            var records: [ChangeRecord] = []
            records.reserveCapacity(page.records.count)
            for json in page.records { records.append(try Self.record(json)) }
            events.append(contentsOf: state.handlePage(.init(records: records, token: page.token, head: page.head)))
        } catch  where error.errorCode == .tokenExpired {
            let (head, oldest) = try await restartPosition(after: error)
            events.append(state.handleExpired(head: head, oldest: oldest))
        }
    }

    private static func record(_ json: JSON) throws(RPCError) -> ChangeRecord {
        do throws(JSONProblem) {
            return try ChangeRecord(json: json)
        } catch {
            throw ErrorCode.internalError.error("a change record cannot be decoded: \(error)")
        }
    }

    /// Returns the position at which to continue after an expired token: from the error's data, else from the broker.
    private func restartPosition(
        after error: RPCError
    ) async throws(RPCError) -> (head: ChangeToken, oldest: ChangeToken) {
        if let head = error.data["head"]?.stringValue.flatMap({ ChangeToken($0) }),
            let oldest = error.data["oldest"]?.stringValue.flatMap({ ChangeToken($0) })
        {
            return (head, oldest)
        }
        let head = try await feed.broker.ask(FeedHeadRequest(), deadline: Self.requestDeadline).result
        return (head.token, ChangeToken(library: head.library, sequence: head.oldest))
    }
}

extension SubscriberMessages {
    /// Silence is detected after one to two of these intervals, so after five seconds at most. A head is published
    /// every second, so silence means that the feed does not reach this client, and changes are requested from the
    /// broker. A client with limited access, whose subscription the broker refuses, receives all changes in this way.
    private static let silenceInterval = Duration.milliseconds(2500)

    /// Ends calls of ``nextArrival()`` after five seconds of silence at most, until the task is cancelled.
    func watchSilence() -> Task<Void, Never> { watchSilence(every: Self.silenceInterval) }
}
