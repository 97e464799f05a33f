import Contracts
import DequeModule
import JSONValue
public import Logging
public import Messaging
public import PhotoModel

/// The changes of a library, each once, in order, without a gap: through lost messages, restarts of the broker and long
/// pauses of the reader.
///
/// Each iteration is a reader of its own. A reader that pauses costs nobody anything: what its bounded inbox cannot
/// hold it reads from history later.
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

    /// A feed outside a ``PhotoLibrary``.
    ///
    /// - Parameters:
    ///   - broker: who answers for history
    ///   - feed: where the live messages come from
    ///   - token: the last token seen; nil: from now on
    ///   - topics: as ``FeedTopic`` names them, at most 1,000; none, or `changes` among them: all changes
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

    /// The same feed, which also says about once a second that everything up to a token has been told: every event up
    /// to it was taken by the reader. Silence means that nothing is known about what happened since.
    public func confirming(_ confirmed: @escaping @Sendable (ChangeToken) -> Void) -> ChangeFeed {
        var feed = self
        feed.confirmed = confirmed
        return feed
    }

    public func makeAsyncIterator() -> Iterator { Iterator(reader: FeedReader(self)) }

    public struct Iterator: AsyncIteratorProtocol {
        let reader: FeedReader

        /// The next event, waiting for it; nil when the task is cancelled or the library closed.
        ///
        /// - Throws: what waiting cannot cure: a refusal of the broker, or no socket left
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> FeedEvent? {
            try await reader.next()
        }

        public mutating func next() async throws(RPCError) -> FeedEvent? { try await reader.next() }
    }
}

/// Carries out what a ``FeedStateMachine`` decides, one step at a time.
final class FeedReader {
    private let feed: ChangeFeed
    private let filter: FeedTopicFilter
    private var machine: FeedStateMachine
    private var subscriber: Subscriber?
    private var messages: SubscriberMessages.Iterator?
    private var events: Deque<FeedEvent> = []
    private var backoff = Backoff()

    private static let pageRecords = 500
    private static let askDeadline = Duration.seconds(10)

    init(_ feed: ChangeFeed) {
        self.feed = feed
        self.filter = FeedTopicFilter(feed.topics)
        self.machine = FeedStateMachine(since: feed.token, topics: feed.topics)
    }

    func next() async throws(RPCError) -> FeedEvent? {
        do throws(RPCError) {
            // Subscribed before history is asked: what is published in between waits in the inbox.
            if subscriber == nil { try await subscribe() }
            while true {
                if let event = events.popFirst() { return event }
                switch machine.want {
                case .live:
                    guard let message = await messages?.next(isolation: #isolation) else { return nil }
                    take(message.topic, message.frames)
                case .head: try await attempt(askHead)
                case .page(let token): try await attempt { () throws(RPCError) in try await self.askPage(after: token) }
                }
            }
        } catch {
            if Task.isCancelled { return nil }
            throw error
        }
    }

    private func subscribe() async throws(RPCError) {
        if let refusal = FeedTopicFilter.refusal(of: feed.topics) { throw refusal }
        let subscriber: Subscriber
        do throws(MessagingError) {
            subscriber = try Subscriber(
                address: feed.feed,
                thread: feed.thread,
                limits: feed.limits,
                security: feed.security,
                logger: feed.logger
            )
        } catch {
            throw Refusal.unavailable.error("the feed cannot be subscribed to: \(error)")
        }
        let leftOut = await subscriber.subscribe(filter.isEverything ? [FeedTopic.changes] : Array(filter.topics))
        guard leftOut.isEmpty, await subscriber.subscribe([FeedTopic.head]).isEmpty else {
            throw Refusal.limitExceeded.error(
                "a feed takes at most \(feed.limits.topicsPerSubscriber) topics of at most \(FeedTopic.maxBytes) bytes",
                ["topics": JSON(Array(leftOut.prefix(10)))]
            )
        }
        self.subscriber = subscriber
        self.messages = subscriber.messages.makeAsyncIterator()
    }

    private func take(_ topic: String, _ frames: [Bytes]) {
        do throws(JSONProblem) {
            switch try LiveMessage(topic: topic, frames: frames) {
            case .head(let head):
                machine.head(head, now: MonotonicClock.system.nowMicroseconds())
                confirm(head)
            case .change(let change): if let event = machine.live(change) { events.append(event) }
            }
        } catch {
            feed.logger.warning(
                "a message of the feed cannot be read",
                metadata: ["topic": "\(topic)", "why": "\(error)"]
            )
            machine.unreadable()
        }
    }

    /// All events that were read before have been taken, because a message is only read when none is left.
    private func confirm(_ head: FeedHead) {
        guard let position = machine.position, position.library == head.library, position.sequence >= head.sequence,
            events.isEmpty, machine.want == .live
        else { return }
        feed.confirmed?(position)
    }

    /// Tries a question; where the broker is away, pauses and returns, so that the machine asks again.
    private func attempt(_ question: () async throws(RPCError) -> Void) async throws(RPCError) {
        do throws(RPCError) {
            try await question()
            backoff.reset()
        } catch  where error.isPassing {
            feed.logger.debug("the change-broker does not answer, asking again", metadata: ["why": "\(error.message)"])
            try await pause(backoff.pause(chance: .random(in: 0..<1)))
        }
    }

    private func askHead() async throws(RPCError) {
        let head = try await feed.broker.ask(FeedHeadRequest(), deadline: Self.askDeadline).result
        events.append(machine.begin(at: head))
    }

    private func askPage(after token: ChangeToken) async throws(RPCError) {
        do throws(RPCError) {
            let request = FeedSince(token: token, limit: Self.pageRecords, topics: Array(filter.topics))
            let page = try await feed.broker.ask(request, deadline: Self.askDeadline).result
            var records: [ChangeRecord] = []
            records.reserveCapacity(page.records.count)
            for json in page.records { records.append(try Self.record(json)) }
            events.append(contentsOf: machine.page(.init(records: records, token: page.token, head: page.head)))
        } catch  where error.refusal == .tokenExpired {
            let (head, oldest) = try await newStart(error)
            events.append(machine.expired(head: head, oldest: oldest))
        }
    }

    private static func record(_ json: JSON) throws(RPCError) -> ChangeRecord {
        do throws(JSONProblem) {
            return try ChangeRecord(json: json)
        } catch {
            throw Refusal.internalError.error("a record of the history cannot be read: \(error)")
        }
    }

    /// Where to go on after an expired token, as the error says or as the broker says now.
    private func newStart(_ error: RPCError) async throws(RPCError) -> (head: ChangeToken, oldest: ChangeToken) {
        if let head = error.data["head"]?.stringValue.flatMap({ ChangeToken($0) }),
            let oldest = error.data["oldest"]?.stringValue.flatMap({ ChangeToken($0) })
        {
            return (head, oldest)
        }
        let head = try await feed.broker.ask(FeedHeadRequest(), deadline: Self.askDeadline).result
        return (head.token, ChangeToken(library: head.library, sequence: head.oldest))
    }
}

/// Waits between two attempts.
///
/// - Throws: `user_cancelled` when the task is cancelled meanwhile
func pause(_ duration: Duration) async throws(RPCError) {
    await Waiting.beforeRetry(duration)
    guard !Task.isCancelled else { throw Refusal.userCancelled.error("the task that waited was cancelled") }
}
