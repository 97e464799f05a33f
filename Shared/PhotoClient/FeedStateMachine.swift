import Contracts
import Messaging
import PhotoModel

/// A state machine that decides the next action of a feed subscriber, without sockets or a clock.
///
/// The live feed may lose messages, history does not. A live message that continues the position is delivered. One that
/// does not, or a head beyond the position, makes the subscriber request history; live messages meanwhile wait in its
/// bounded inbox, and those already received from history are dropped. Every change is thus delivered once, in order.
struct FeedStateMachine: Sendable {
    /// The next action.
    enum Action: Sendable, Hashable {
        /// Request the head of the feed, to begin there.
        case head
        /// Request the history after a token.
        case page(after: ChangeToken)
        /// Wait for the next live message.
        case live
    }

    /// A page of history.
    struct Page: Sendable {
        var records: [ChangeRecord]
        var token: ChangeToken
        var head: ChangeToken
    }

    /// Number of detected gaps in the live messages.
    private(set) var gaps = 0

    private let filter: FeedTopicFilter
    /// The history of the position; nil until the head is known, if the feed begins there.
    private var library: String?
    private var detector: GapDetector
    private var needsHistory = true
    private var instance: String?
    /// The last token delivered as caught up.
    private var caughtUp: ChangeToken?
    /// Earlier histories, of which messages may still arrive.
    private var past: Set<String> = []

    /// - Parameters:
    ///   - token: the last token seen; nil for new changes only
    ///   - topics: see ``FeedTopicFilter``; empty for all changes
    init(since token: ChangeToken?, topics: [String] = []) {
        let filter = FeedTopicFilter(topics)
        self.filter = filter
        self.library = token?.library
        self.detector = GapDetector(position: token?.sequence ?? 0, carriesEverything: filter.isEverything)
    }

    /// The token up to which every event was delivered; nil if the head is not known yet.
    var position: ChangeToken? { library.map { ChangeToken(library: $0, sequence: detector.position) } }

    var nextAction: Action {
        guard let position else { return .head }
        return needsHistory ? .page(after: position) : .live
    }

    // MARK: Live messages

    /// Handles a live change.
    mutating func handleLive(_ change: LiveChange) -> FeedEvent? {
        guard isOurs(change.token.library), change.sequence > detector.position else { return nil }
        // With several topics only history has the common order, and a large record is in history only.
        guard filter.topics.count <= 1, let record = change.record else {
            needsHistory = true
            return nil
        }
        switch detector.feed(previous: change.previous, sequence: change.sequence) {
        case .inOrder: return .change(record)
        case .duplicate: return nil
        case .gap:
            didMissMessages()
            return nil
        }
    }

    /// Handles a head message.
    ///
    /// - Parameter now: microseconds of a monotonic clock
    mutating func handleHead(_ head: FeedHead, now: Int64) {
        if let instance, instance != head.instance { detector.reconnected() }
        instance = head.instance
        guard isOurs(head.library), case .confirm = detector.head(newest: head.sequence, now: now) else { return }
        if detector.carriesEverything { didMissMessages() } else { needsHistory = true }
    }

    /// Handles a live message that could not be decoded.
    mutating func unreadable() { didMissMessages() }

    /// Handles a time without any message, though a head is published every second: the feed does not reach this client, which
    /// it does not for limited access.
    mutating func unheard() { needsHistory = true }

    /// Returns whether a message is of the present history. If not, a history request determines whether that has
    /// ended.
    private mutating func isOurs(_ other: String) -> Bool {
        guard let library, !past.contains(other) else { return false }
        if other != library { needsHistory = true }
        return other == library
    }

    private mutating func didMissMessages() {
        if !needsHistory { gaps += 1 }
        needsHistory = true
    }

    // MARK: History

    /// Handles the response to ``Action/head``.
    mutating func begin(at head: FeedHead) -> FeedEvent {
        instance = head.instance
        restart(at: head.token)
        return .caughtUp(head.token)
    }

    /// Handles the response to ``Action/page(after:)``.
    mutating func handlePage(_ page: Page) -> [FeedEvent] {
        needsHistory = false
        // The page is of another history; the next head message triggers a new request.
        guard let before = position, page.token.library == before.library else { return [] }
        var events: [FeedEvent] = []
        for record in page.records where record.sequence > detector.position {
            detector.confirm(upTo: record.sequence)
            let part = record.restricted(to: filter)
            if filter.isEverything || !part.isEmpty { events.append(.change(part)) }
        }
        detector.confirm(upTo: page.token.sequence)
        let reached = ChangeToken(library: before.library, sequence: detector.position)
        guard reached.sequence >= page.head.sequence else {
            needsHistory = reached != before
            return events
        }
        if caughtUp != reached { events.append(.caughtUp(reached)) }
        caughtUp = reached
        return events
    }

    /// Handles `token_expired`: the position is older than the retained history, or of another history.
    mutating func expired(head: ChangeToken, oldest: ChangeToken) -> FeedEvent {
        if let library, library != head.library { past.insert(library) }
        restart(at: head)
        return .expired(head: head, oldest: oldest)
    }

    private mutating func restart(at token: ChangeToken) {
        past.remove(token.library)
        library = token.library
        detector = GapDetector(position: token.sequence, carriesEverything: filter.isEverything)
        caughtUp = token
        needsHistory = false
    }
}
