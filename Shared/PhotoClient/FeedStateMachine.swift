import Basics
import Contracts
import JSONValue
import PhotoModel

/// A state machine that decides the next action of a feed subscriber, without sockets or a clock.
///
/// The live feed may lose messages, history does not. A live message that continues the position is delivered. One that
/// does not, or a head beyond the position, makes the subscriber request history; live messages meanwhile wait in its
/// bounded inbox, and those already received from history are dropped. Every change is thus delivered once, in order.
///
/// Its messages are values of ``LiveMessage`` and ``LiveChange``; ``GapDetector`` finds the gaps of one topic.
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
    private var pastHistories: Set<String> = []

    /// - Parameters:
    ///   - token: the last token that was processed; nil for new changes only
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
        guard checkHistory(change.token.library), change.sequence > detector.position else { return nil }
        // With several topics only history has the common order, and a large record is in history only.
        guard filter.topics.count <= 1, let record = change.record else {
            needsHistory = true
            return nil
        }
        switch detector.check(previous: change.previous, sequence: change.sequence) {
        case .inOrder: return .change(record)
        case .duplicate: return nil
        case .gap:
            handleMissedMessages()
            return nil
        }
    }

    /// Handles a head message.
    ///
    /// - Parameter now: microseconds of a monotonic clock
    mutating func handleHead(_ head: FeedHead, now: Int64) {
        if let instance, instance != head.instance { detector.recordReconnection() }
        instance = head.instance
        guard checkHistory(head.library),
            case .readHistory = detector.checkHead(newest: head.sequence, now: now)
        else { return }
        if detector.carriesEverything { handleMissedMessages() } else { needsHistory = true }
    }

    /// Handles a live message that could not be decoded.
    mutating func handleUndecodable() { handleMissedMessages() }

    /// Handles a time without any message. A head is published every second, so the feed does not reach this client;
    /// with limited access it never does.
    mutating func handleSilence() { needsHistory = true }

    /// Returns true if a message is of the current history. Otherwise requests history: the response shows if the
    /// current history has ended.
    private mutating func checkHistory(_ other: String) -> Bool {
        guard let library, !pastHistories.contains(other) else { return false }
        if other != library { needsHistory = true }
        return other == library
    }

    private mutating func handleMissedMessages() {
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
    mutating func handleExpired(head: ChangeToken, oldest: ChangeToken) -> FeedEvent {
        if let library, library != head.library { pastHistories.insert(library) }
        restart(at: head)
        return .expired(head: head, oldest: oldest)
    }

    private mutating func restart(at token: ChangeToken) {
        pastHistories.remove(token.library)
        library = token.library
        detector = GapDetector(position: token.sequence, carriesEverything: filter.isEverything)
        caughtUp = token
        needsHistory = false
    }
}

// MARK: - Messages

/// A message of the live feed.
enum LiveMessage: Sendable {
    case head(FeedHead)
    case change(LiveChange)

    /// Decodes the frames after the topic.
    ///
    /// - Throws: the problem; the subscriber then requests history instead
    init(topic: String, frames: [Bytes]) throws(JSONProblem) {
        guard let frame = frames.first else { throw JSONProblem("a live message has a topic and a JSON frame") }
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: frame)
        } catch {
            throw JSONProblem("not JSON: \(error)")
        }
        self =
            topic == FeedTopic.head
            ? .head(try FeedHead(json: json)) : .change(try LiveChange(topic: topic, json: json))
    }
}

/// A change in a message of the live feed.
struct LiveChange: Sendable, Hashable {
    let token: ChangeToken
    /// The topic has no message after this sequence and before this message.
    let previous: Int64
    /// The part of the record that the topic carries; nil if the message was truncated and history must be requested.
    let record: ChangeRecord?

    var sequence: Int64 { token.sequence }

    init(token: ChangeToken, previous: Int64, record: ChangeRecord?) {
        self.token = token
        self.previous = previous
        self.record = record
    }

    init(topic: String, json: JSON) throws(JSONProblem) {
        guard let sequence = json["sequence"]?.intValue, sequence > 0, let library = json["library"]?.stringValue,
            let previous = json["previous"]?.intValue, previous >= 0, previous < sequence
        else { throw JSONProblem("a live message has sequence, library and a smaller previous") }
        self.token = ChangeToken(library: library, sequence: sequence)
        self.previous = previous
        guard json["truncated"]?.boolValue != true else {
            self.record = nil
            return
        }
        guard topic != FeedTopic.changes else {
            self.record = try ChangeRecord(json: json)
            return
        }
        // The message of an entity's topic is decoded as a record with that entity alone.
        guard let family = topic.split(separator: ".", maxSplits: 1).first, let change = json["change"],
            let date = json["date"], let origin = json["origin"]
        else { throw JSONProblem("a message about one entity has date, origin and change") }
        let member =
            switch family {
            case "asset": "assets"
            case "collection": "collections"
            case "list": "lists"
            case "edit": "edits"
            case "grants": change["state"] == nil ? "grants" : "questions"
            default: throw JSONProblem("no such topic: \(topic.prefix(FeedTopic.maxBytes))")
            }
        self.record = try ChangeRecord(json: [
            "sequence": .int(sequence), "library": .string(library), "date": date, "origin": origin,
            member: .array([change]),
        ])
    }
}

// MARK: - Gaps

/// Detects messages that a lossy subscription missed on one topic.
///
/// Each message has its `sequence` and `previous` = p, which guarantees that the topic carried nothing after p and
/// before this message. A reader whose position is below p has a gap. The `head` message, which is sent after
/// everything at or below it, reveals a missing last message. The detector has no clock: the time is a parameter.
struct GapDetector: Sendable, Equatable {
    /// The result for one message.
    enum Verdict: Sendable, Equatable {
        /// The next message: use it. The position has advanced to it.
        case inOrder
        /// Messages between the position and this one were lost: read the changes after `after` again.
        case gap(after: Int64)
        /// A message at or below the position.
        case duplicate
    }

    /// The result for a `head` message.
    enum HeadVerdict: Sendable, Equatable {
        /// The subscriber has every message up to `head`.
        case upToDate
        /// Behind, possibly only because this topic had no messages: wait.
        case behind
        /// Request the changes after `after` once; the response advances the position even if it is empty.
        case readHistory(after: Int64)
    }

    /// All messages on this topic with at most this sequence were received.
    private(set) var position: Int64
    /// True if the topic carries every sequence; if so, being behind `head` is a gap at once.
    let carriesEverything: Bool
    /// The time, in microseconds, for which a filtered reader may stay behind `head` before it requests the missing
    /// changes.
    let waitMicroseconds: Int64
    private var behindSince: Int64?
    private var mustConfirm = false

    /// - Parameters:
    ///   - position: the sequence up to which everything is known, from a token
    ///   - carriesEverything: true for the topic `changes`, false for filtered ones
    ///   - waitMicroseconds: see ``waitMicroseconds``; five seconds by default
    init(position: Int64, carriesEverything: Bool = false, waitMicroseconds: Int64 = 5_000_000) {
        self.position = position
        self.carriesEverything = carriesEverything
        self.waitMicroseconds = waitMicroseconds
    }

    /// Checks one message and advances the position if it is the next one.
    ///
    /// After a gap the position is unchanged; read the missing changes and call ``confirm(upTo:)``.
    mutating func check(previous: Int64, sequence: Int64) -> Verdict {
        guard sequence > position else { return .duplicate }
        guard previous <= position else { return .gap(after: position) }
        position = sequence
        behindSince = nil
        return .inOrder
    }

    /// Checks a `head` message.
    ///
    /// - Parameters:
    ///   - newest: the sequence of the head
    ///   - now: microseconds of a monotonic clock
    mutating func checkHead(newest: Int64, now: Int64) -> HeadVerdict {
        guard newest > position else {
            behindSince = nil
            // Messages may have been lost before a new connection was made, but `head` shows that there were none.
            mustConfirm = false
            return .upToDate
        }
        if mustConfirm || carriesEverything { return .readHistory(after: position) }
        let since = behindSince ?? now
        behindSince = since
        return now.addingClamped(-since) >= waitMicroseconds ? .readHistory(after: position) : .behind
    }

    /// Records a new connection: the next `head` above the position returns `readHistory` at once.
    mutating func recordReconnection() { mustConfirm = true }

    /// Records that everything up to the sequence has been read. The position never decreases.
    mutating func confirm(upTo sequence: Int64) {
        position = max(position, sequence)
        behindSince = nil
        mustConfirm = false
    }
}
