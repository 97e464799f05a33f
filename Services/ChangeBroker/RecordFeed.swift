import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel

/// The state of the feed: receives records in order, publishes them, and answers requests for the newest of them.
///
/// It has no durable state: after a start it begins at the catalog's head, and earlier history comes from the catalog.
actor RecordFeed {
    /// A new value at each start, and whenever all observations are ended.
    private(set) var instance: String
    let configuration: ChangeBrokerConfiguration
    private nonisolated let publishers: [Publisher]
    let subscribedTopics: SubscribedTopics
    private let access: AccessTable?
    let logger: Logger
    /// Signals that a head message is due.
    private nonisolated let headSignal: AsyncStream<Void>
    private nonisolated let headSink: AsyncStream<Void>.Continuation

    /// Nil before the first contact with the catalog.
    private(set) var ring: RecordRing?
    /// The sequence after which the catalog's history is complete.
    private var oldest: Int64 = 0
    /// The reason why the catalog cannot be followed at present; nil if it is followed.
    private var problem: String?
    /// The newest status of the library; nil before the first contact with the catalog.
    var availability: LibraryStatus.Result?
    /// Results that are kept current, and those that are being loaded.
    var fetches: ObservedFetches
    var slowFetches = SlowFetches()
    /// The sequence of the last record that the observed results have been updated with.
    var updatedThrough: Int64 = 0
    /// A number that changes when work in progress for observed results becomes invalid.
    var fetchGeneration = 0
    /// The earliest time of the next wake-up of the callers that wait for observed results.
    var nextUpdateWake = ContinuousClock.now
    /// Signals that there are records with which the observed results have yet to be updated.
    nonisolated let recordSignal: AsyncStream<Void>
    private nonisolated let recordSink: AsyncStream<Void>.Continuation
    var loading: [String: Task<Void, any Error>] = [:]
    private var followers: [UInt64: Follower] = [:]
    private var lastFollower: UInt64 = 0
    /// The requests that wait for a record, with its sequence; `.min` for the first contact with the catalog.
    private var waiters: [UInt64: (sequence: Int64, promise: Promise<Void>)] = [:]
    private var lastWaiter: UInt64 = 0
    private var isStopping = false
    private var counts = (records: 0, messages: 0, bytes: 0, truncated: 0, heads: 0, restarts: 0, unreadable: 0)

    private struct Follower {
        let identity: String
        let signal: AsyncStream<Void>.Continuation
        var token: ChangeToken?
    }

    /// - Parameter access: the permissions, which the feed updates with changed grants; nil for none
    init(
        _ configuration: ChangeBrokerConfiguration,
        publishers: [Publisher],
        instance: String,
        access: AccessTable? = nil,
        logger: Logger
    ) {
        self.configuration = configuration
        self.access = access
        self.publishers = publishers
        self.instance = instance
        self.logger = logger
        self.fetches = ObservedFetches(
            maxBytes: configuration.maxFetchBytes,
            maxLogBytes: configuration.maxFetchLogBytes,
            maxEvaluationTime: configuration.maxEvaluationTime
        )
        // The limit of both publishers together.
        let subscribedTopics = SubscribedTopics(limit: 2 * (configuration.maxTopics + 1))
        self.subscribedTopics = subscribedTopics
        let (signal, sink) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.headSignal = signal
        self.headSink = sink
        (self.recordSignal, self.recordSink) = AsyncStream.makeStream(
            of: Void.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        self.problem = "the catalog has not answered yet"
        for (number, publisher) in publishers.enumerated() {
            publisher.setOnSubscribe { topic, isSubscribed in
                subscribedTopics.note(topic, isSubscribed: isSubscribed, at: number)
                // A new subscriber gets the feed's position at once.
                if isSubscribed, topic == FeedTopic.head || topic == FeedTopic.availability { sink.yield() }
            }
        }
    }

    // MARK: From the catalog

    /// The token of the last record received; nil before the first contact.
    var token: ChangeToken? { ring?.token }

    /// The newest change of a grant that requests take into account; nil if there is none.
    nonisolated var newestGrant: ChangeToken? { access?.newestChange }

    /// Handles the first contact with the catalog, or a new one. If the catalog has another history, or its head is
    /// below the feed's position, the feed restarts at the catalog's head.
    ///
    /// - Returns: the token after which records are needed
    func adopt(_ current: CurrentToken.Result) -> ChangeToken {
        problem = nil
        // Cached permissions may be older than the first record that arrives.
        access?.forget()
        access?.confirm()
        oldest = current.oldest.sequence
        if let ring, ring.library == current.token.library, ring.head <= current.token.sequence { return ring.token }
        return restart(at: current)
    }

    /// Restarts at the catalog's head; records before it are not in the ring.
    @discardableResult
    func restart(at current: CurrentToken.Result) -> ChangeToken {
        if let ring {
            counts.restarts += 1
            logger.warning(
                "the feed restarts at the catalog's head",
                metadata: ["was": "\(ring.token)", "now": "\(current.token)"]
            )
        }
        oldest = current.oldest.sequence
        endAllFetches()
        ring = RecordRing(
            after: current.token,
            maxCount: configuration.ringRecords,
            maxBytes: configuration.ringBytes
        )
        fetchGeneration += 1
        updatedThrough = current.token.sequence
        wake()
        resumeWaiters()
        return current.token
    }

    /// Records that the catalog cannot be followed at present, and the reason.
    func noteUnreachable(_ reason: String) {
        if problem == nil { logger.warning("the catalog cannot be followed", metadata: ["error": "\(reason)"]) }
        problem = reason
        access?.forget()
    }

    /// Compares the feed with an earlier head of the catalog. If the feed has not reached it, the change-broker that is
    /// followed lags.
    func noteSource(at token: ChangeToken) {
        let isLagging = ring.map { $0.library != token.library || $0.head < token.sequence } ?? true
        if isLagging {
            noteUnreachable(Self.lag)
        } else if problem == Self.lag {
            problem = nil
            access?.confirm()
        }
    }

    private static let lag = "the change-broker that is followed does not deliver what the catalog has committed"

    func note(oldest token: ChangeToken) {
        if token.library == ring?.library { oldest = max(oldest, token.sequence) }
    }

    /// Appends records in the order of their sequences, and publishes them.
    ///
    /// - Throws: the problem of an unreadable record; the records before it are applied
    func append(_ records: [BrokerRecord]) throws(JSONProblem) {
        guard ring != nil else { return }
        defer {
            wake()
            recordSink.yield()
            resumeWaiters()
        }
        for record in records { try publish(record) }
    }

    /// Waits until the feed has reached a token of its history, at most for a time. Returns at once if the catalog
    /// is not followed.
    func wait(for token: ChangeToken, atMost duration: Duration) async {
        guard let ring, ring.library == token.library, token.sequence > ring.head, problem == nil else { return }
        await wait(for: token.sequence, atMost: duration)
    }

    /// Waits for the first contact with the catalog, at most for a time: a service has none in the first few
    /// milliseconds after its start.
    func waitForContact(atMost duration: Duration) async {
        guard ring == nil else { return }
        await wait(for: .min, atMost: duration)
    }

    private func wait(for sequence: Int64, atMost duration: Duration) async {
        guard waiters.count < configuration.maxFollowers else { return }
        lastWaiter += 1
        let (number, promise) = (lastWaiter, Promise<Void>())
        waiters[number] = (sequence, promise)
        await TaskDelay.withTimeout(duration) { await promise.value(ifCancelled: ()) }
        waiters[number] = nil
    }

    private func resumeWaiters() {
        let head = ring?.head ?? .min
        for waiter in waiters.values where waiter.sequence <= head { waiter.promise.fulfill(()) }
    }

    /// Waits while subscribers have long queues. Records can wait, because the catalog stores them.
    nonisolated func waitForSubscribers() async { for publisher in publishers { await publisher.waitForCapacity() } }

    /// Counts a record of the catalog that could not be parsed.
    func noteUnreadable() { counts.unreadable += 1 }

    private func publish(_ record: BrokerRecord) throws(JSONProblem) {
        guard let head = ring?.head, let library = ring?.library else { return }
        guard record.library == library else {
            counts.unreadable += 1
            throw JSONProblem("belongs to the history \(record.library), not \(library)")
        }
        guard record.sequence > head else { return }
        let limit = configuration.liveMessageBytes
        let parts = record.parts
        counts.records += 1
        if record.bytes.count > limit { counts.truncated += 1 }
        send(FeedTopic.changes, LiveFrames.changes(record, previous: head, limit: limit))
        for part in subscribedTopics.filter(parts) {
            let previous = ring?.previous(part.topic) ?? 0
            send(part.topic, LiveFrames.part(part, of: record, previous: previous, limit: limit))
        }
        if let access, let grant = record.grant {
            let token = record.token
            Task { await access.note(grant, at: token) }
        }
        ring?.append(record, topics: parts.map(\.topic))
        if fetches.isEmpty { updatedThrough = record.sequence }
    }

    func send(_ topic: String, _ frame: [UInt8]) {
        for publisher in publishers { publisher.publish(topic, [frame]) }
        counts.messages += 1
        counts.bytes += frame.count
    }

    // MARK: Head

    /// The feed's position; nil before the first contact with the catalog.
    var head: FeedHead? {
        ring.map { FeedHead(sequence: $0.head, oldest: oldest, library: $0.library, instance: instance) }
    }

    /// Publishes `head` once a second and after new records, but never more often than the spacing allows, until
    /// cancelled.
    nonisolated func publishHeads() async {
        let (interval, spacing) = (configuration.headInterval, configuration.headSpacing)
        await withTaskGroup { group in
            group.addTask { [headSink] in
                for await _ in TaskDelay.ticks(every: interval) { headSink.yield() }
            }
            for await _ in headSignal {
                await publishHead()
                await TaskDelay.debounce(spacing)
            }
            group.cancelAll()
        }
    }

    private func publishHead() {
        // Wakes waiting followers, which report progress even if no record matched their filter.
        for follower in followers.values { follower.signal.yield() }
        publishAvailability()
        guard var head else { return }
        // The head is published after all messages up to its sequence, including those of observed fetches.
        if !fetches.isEmpty, updatedThrough < head.sequence {
            head = FeedHead(
                sequence: updatedThrough,
                oldest: head.oldest,
                library: head.library,
                instance: head.instance
            )
        }
        let frame = LiveFrames.head(head)
        for publisher in publishers { publisher.publish(FeedTopic.head, [frame]) }
        counts.heads += 1
    }

    /// Changes the instance because all observations have ended: clients detect that and observe again.
    func renewInstance() {
        instance = PhotoLibrary.uniqueTransaction()
        headSink.yield()
    }

    func wake() {
        for follower in followers.values { follower.signal.yield() }
        headSink.yield()
    }

    /// Returns true if the result of an observation, or the feed if there is none, has not yet reached a token.
    ///
    /// - Throws: `token_expired` for a token of another history
    func isBehind(_ token: ChangeToken, _ observation: String, _ fetch: Fetch?) throws(RPCError) -> Bool {
        guard let ring else { throw .brokerNotReady }
        guard token.library == ring.library else {
            throw .foreignToken(
                head: ring.token,
                oldest: ChangeToken(library: ring.library, sequence: oldest)
            )
        }
        return position(of: observation, fetch) ?? ring.head < token.sequence
    }

    // MARK: History

    /// Returns the records after a token that the ring has; nil if the catalog has to be asked.
    ///
    /// - Parameter token: nil for the beginning of the history
    func page(after token: ChangeToken?, limit: Int, filter: FeedTopicFilter, maxBytes: Int) -> EncodedChangePage? {
        guard let ring, problem != Self.lag, token?.library ?? ring.library == ring.library,
            let page = ring.page(
                after: token?.sequence ?? oldest,
                limit: limit,
                filter: filter,
                maxBytes: maxBytes
            )
        else { return nil }
        return EncodedChangePage(
            records: page.records,
            token: ChangeToken(library: ring.library, sequence: page.sequence),
            oldest: ChangeToken(library: ring.library, sequence: oldest),
            head: ring.token
        )
    }

    /// Returns the position after skipping the records that concern neither a list of assets, nor grants, nor edits.
    ///
    /// - Returns: the token before the first record that does, and true if there is such a record; nil if the catalog
    ///   has to be asked
    func skippingIrrelevantRecords(
        after token: ChangeToken,
        for assets: Set<ObjectID>
    ) -> (token: ChangeToken, foundRelevant: Bool)? {
        guard let ring, token.library == ring.library else { return nil }
        let found = ring.skippingIrrelevantRecords(after: token.sequence) { topics in
            topics.contains { topic in
                topic == FeedTopic.grants || topic.hasPrefix(FeedTopic.edit(""))
                    || FeedTopic.asset(of: topic).map(assets.contains) ?? false
            }
        }
        return found.map { (ChangeToken(library: ring.library, sequence: $0.sequence), $0.foundRelevant) }
    }

    // MARK: Followers

    /// Registers a follower. Its stream yields whenever there may be new records, and once a second.
    ///
    /// - Parameter token: the start position of a reader of the history; nil for a request that waits for the feed
    /// - Throws: `limit_exceeded` if there are too many readers, in all or of the identity
    func addFollower(
        _ identity: String,
        at token: ChangeToken? = nil
    ) throws(RPCError) -> (id: UInt64, signal: AsyncStream<Void>) {
        guard !isStopping else { throw .brokerIsStopping }
        // Requests that wait for the feed are bounded by the limits of open requests.
        if token != nil {
            let (limit, readers) = (configuration.maxFollowers, followers.values.filter { $0.token != nil })
            guard readers.count < limit else { throw .tooManyFollowers(limit: limit) }
            let limitPerIdentity = max(1, limit / 2)
            guard readers.count(where: { $0.identity == identity }) < limitPerIdentity else {
                throw .tooManyFollowers(of: identity, limit: limitPerIdentity)
            }
        }
        lastFollower += 1
        let (signal, sink) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        followers[lastFollower] = Follower(identity: identity, signal: sink, token: token)
        sink.yield()
        return (lastFollower, signal)
    }

    func setPosition(of follower: UInt64, to token: ChangeToken) { followers[follower]?.token = token }

    func removeFollower(_ id: UInt64) { followers[id] = nil }

    /// Ends every follower, and refuses new ones.
    func endFollowers() {
        isStopping = true
        for follower in followers.values { follower.signal.finish() }
    }

    // MARK: Health and metrics

    /// The reasons why the feed is not current; empty if it is.
    var problems: [String] { problem.map { ["the catalog cannot be followed: \($0)"] } ?? [] }

    /// The maximum number of followers that the metrics list.
    private static let maxListedFollowers = 100

    func metrics() -> JSONObject {
        let head = ring?.head ?? 0
        let lags = followers.sorted { $0.key < $1.key }.prefix(Self.maxListedFollowers).map { id, follower -> JSON in
            let lag = follower.token.map { max(0, head - $0.sequence) } ?? 0
            var metrics: JSONObject = [
                "id": JSON(Int(clamping: id)), "identity": .string(follower.identity), "lag": .int(lag),
            ]
            // The bytes of a follower that is behind the ring are not known.
            let bytes = follower.token.map { ring?.bytes(after: $0.sequence) } ?? 0
            if let bytes { metrics["lagBytes"] = JSON(bytes) }
            return .object(metrics)
        }
        return [
            "head": .int(head), "oldest": .int(oldest), "library": .string(ring?.library ?? ""),
            "instance": .string(instance), "isCatalogFollowed": .bool(problem == nil),
            "restarts": JSON(counts.restarts),
            "ring": [
                "floor": .int(ring?.oldestComplete ?? 0), "records": JSON(ring?.count ?? 0),
                "bytes": JSON(ring?.bytes ?? 0),
                "maxRecords": JSON(configuration.ringRecords), "maxBytes": JSON(configuration.ringBytes),
            ],
            "live": [
                "records": JSON(counts.records), "messages": JSON(counts.messages), "bytes": JSON(counts.bytes),
                "truncated": JSON(counts.truncated), "heads": JSON(counts.heads),
                "topics": JSON(subscribedTopics.count),
            ],
            "fetches": .object(fetches.metrics(behind: !fetches.isEmpty ? max(0, head - updatedThrough) : 0)),
            "unreadableRecords": JSON(counts.unreadable),
            "followers": [
                "count": JSON(followers.count), "limit": JSON(configuration.maxFollowers), "lags": .array(lags),
            ],
        ]
    }
}
