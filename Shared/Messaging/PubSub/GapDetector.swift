import Basics

/// Detects messages that a lossy subscription missed on one topic.
///
/// Each message has its `sequence` and `previous` = p, which guarantees that the topic carried nothing after p and
/// before this message. A reader whose position is below p has a gap. The `head` message, which is sent after
/// everything at or below it, reveals a missing last message. Pure: the time is a parameter.
public struct GapDetector: Sendable, Equatable {
    /// The result for one message.
    public enum Verdict: Sendable, Equatable {
        /// The next message: use it. The position has advanced to it.
        case inOrder
        /// Messages between the position and this one were lost: read the changes after `after` again.
        case gap(after: Int64)
        /// A message at or below the position.
        case duplicate
    }

    /// The result for a `head` message.
    public enum HeadVerdict: Sendable, Equatable {
        /// Nothing was missed up to `head`.
        case upToDate
        /// Behind, possibly only because this topic had no messages: wait.
        case behind
        /// Request the changes after `after` once; the response advances the position even if it is empty.
        case confirm(after: Int64)
    }

    /// All messages on this topic with at most this sequence have been seen.
    public private(set) var position: Int64
    /// True if the topic carries every sequence; if so, being behind `head` is a gap at once.
    public let carriesEverything: Bool
    /// How long a filtered reader may stay behind `head` before it asks for the missing changes, in microseconds.
    public let waitMicroseconds: Int64
    private var behindSince: Int64?
    private var mustConfirm = false

    /// - Parameters:
    ///   - position: the sequence up to which everything is known, from a token.
    ///   - carriesEverything: `true` for the topic `changes`, `false` for filtered ones.
    ///   - waitMicroseconds: see ``waitMicroseconds``; five seconds by default.
    public init(position: Int64, carriesEverything: Bool = false, waitMicroseconds: Int64 = 5_000_000) {
        self.position = position
        self.carriesEverything = carriesEverything
        self.waitMicroseconds = waitMicroseconds
    }

    /// Checks one message and advances the position if it is the next one.
    ///
    /// After a gap the position is unchanged; read the missing changes and call ``confirm(upTo:)``.
    public mutating func feed(previous: Int64, sequence: Int64) -> Verdict {
        guard sequence > position else { return .duplicate }
        guard previous <= position else { return .gap(after: position) }
        position = sequence
        behindSince = nil
        return .inOrder
    }

    /// Checks a `head` message; `now` is in microseconds of a monotonic clock.
    public mutating func head(newest: Int64, now: Int64) -> HeadVerdict {
        guard newest > position else {
            behindSince = nil
            // Messages may have been lost before a new connection was made, but `head` shows that there were none.
            mustConfirm = false
            return .upToDate
        }
        if mustConfirm || carriesEverything { return .confirm(after: position) }
        let since = behindSince ?? now
        behindSince = since
        return now.addingClamped(-since) >= waitMicroseconds ? .confirm(after: position) : .behind
    }

    /// Records a new connection: the next `head` above the position returns `confirm` at once.
    public mutating func reconnected() { mustConfirm = true }

    /// Records that everything up to the sequence has been read. The position never decreases.
    public mutating func confirm(upTo sequence: Int64) {
        position = max(position, sequence)
        behindSince = nil
        mustConfirm = false
    }
}
