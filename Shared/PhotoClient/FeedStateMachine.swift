import Contracts
import Messaging
import PhotoModel

/// What a reader of the feed does next, decided from what arrived: values only, no sockets, no clock.
///
/// The live path may lose messages, history does not. A live message that continues the reader's position is passed on;
/// one that does not, or a head that is further on, sends the reader to history. Live messages wait in the subscriber's
/// bounded inbox meanwhile, and those that history brought already are dropped. So every change is told once, in order.
struct FeedStateMachine: Sendable {
    /// What to do next.
    enum Want: Sendable, Hashable {
        /// Ask where the feed stands, to begin there.
        case head
        /// Ask for the history after a token.
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

    /// How often live messages were missing.
    private(set) var gaps = 0

    private let filter: FeedTopicFilter
    /// Nil: the reader begins at the feed's head, which is not known yet.
    private var library: String?
    private var detector: GapDetector
    private var isAsking = true
    private var instance: String?
    /// The last token told as caught up.
    private var caughtUp: ChangeToken?
    /// Histories that ended, with messages perhaps still on the way.
    private var past: Set<String> = []

    /// - Parameters:
    ///   - token: the last token seen; nil: from now on
    ///   - topics: as ``FeedTopicFilter`` reads them; none: all changes
    init(since token: ChangeToken?, topics: [String] = []) {
        let filter = FeedTopicFilter(topics)
        self.filter = filter
        self.library = token?.library
        self.detector = GapDetector(position: token?.sequence ?? 0, carriesEverything: filter.isEverything)
    }

    /// Everything up to here was told.
    var position: ChangeToken? { library.map { ChangeToken(library: $0, sequence: detector.position) } }

    var want: Want {
        guard let position else { return .head }
        return isAsking ? .page(after: position) : .live
    }

    // MARK: The live path

    /// A live change arrived.
    mutating func live(_ change: LiveChange) -> FeedEvent? {
        guard isOurs(change.token.library), change.sequence > detector.position else { return nil }
        // Of several topics only history knows the common order; a large record is in history only.
        guard filter.topics.count <= 1, let record = change.record else {
            isAsking = true
            return nil
        }
        switch detector.feed(previous: change.previous, sequence: change.sequence) {
        case .inOrder: return .change(record)
        case .duplicate: return nil
        case .gap:
            miss()
            return nil
        }
    }

    /// A head message arrived.
    ///
    /// - Parameter now: microseconds on a clock that is not set back
    mutating func head(_ head: FeedHead, now: Int64) {
        if let instance, instance != head.instance { detector.reconnected() }
        instance = head.instance
        guard isOurs(head.library), case .confirm = detector.head(newest: head.sequence, now: now) else { return }
        if detector.carriesEverything { miss() } else { isAsking = true }
    }

    /// A live message could not be read.
    mutating func unreadable() { miss() }

    /// Whether a message is of the reader's history. Where it is of another one, history has to say whether that is the
    /// end of ours.
    private mutating func isOurs(_ other: String) -> Bool {
        guard let library, !past.contains(other) else { return false }
        if other != library { isAsking = true }
        return other == library
    }

    private mutating func miss() {
        if !isAsking { gaps += 1 }
        isAsking = true
    }

    // MARK: History

    /// The feed stands here, in answer to ``Want/head``.
    mutating func begin(at head: FeedHead) -> FeedEvent {
        instance = head.instance
        restart(at: head.token)
        return .caughtUp(head.token)
    }

    /// A page of history arrived, in answer to ``Want/page(after:)``.
    mutating func page(_ page: Page) -> [FeedEvent] {
        isAsking = false
        // Of another history, or leading nowhere: the next head message asks again.
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
            isAsking = reached != before
            return events
        }
        if caughtUp != reached { events.append(.caughtUp(reached)) }
        caughtUp = reached
        return events
    }

    /// History does not reach back to the position, or is another one.
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
        isAsking = false
    }
}
