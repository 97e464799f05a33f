/// Finds what a lossy subscription lost on one topic.
///
/// Each message has its `sequence` and `previous` = p, which promises that the topic carried nothing after p and before
/// this message. A reader whose position is below p has a gap. The `head` message, which comes after everything at or
/// below it, finds a lost last message. Pure: time comes in.
public struct GapDetector: Sendable, Equatable {
    /// What to do with a message.
    public enum Verdict: Sendable, Equatable {
        /// The next one: use it; the position is at it now.
        case inOrder
        /// Something between the position and this message is lost: read again what came after `after`.
        case gap(after: Int64)
        /// Seen already.
        case duplicate
    }

    /// What a `head` message says about this reader.
    public enum HeadVerdict: Sendable, Equatable {
        case upToDate
        /// Behind, but perhaps only because nothing on this topic happened: wait.
        case behind
        /// Ask once for what came after `after`; the answer moves the position even when it is empty.
        case confirm(after: Int64)
    }

    /// Everything on this topic at or below it has been seen.
    public private(set) var position: Int64
    /// Whether the topic carries every sequence: then being behind head is a gap at once.
    public let carriesEverything: Bool
    /// How long a filtered reader may stay behind head before it asks, in microseconds.
    public let patienceMicroseconds: Int64
    private var behindSince: Int64?
    private var mustConfirm = false

    /// - Parameters:
    ///   - position: the sequence up to which everything is known, from a token.
    ///   - carriesEverything: `true` for the topic `changes`, `false` for filtered ones.
    ///   - patienceMicroseconds: five seconds (DESIGN 3.3).
    public init(position: Int64, carriesEverything: Bool = false, patienceMicroseconds: Int64 = 5_000_000) {
        self.position = position
        self.carriesEverything = carriesEverything
        self.patienceMicroseconds = patienceMicroseconds
    }

    /// Takes one message.
    ///
    /// At a gap the position stays; read again and call ``confirm(upTo:)``.
    public mutating func feed(previous: Int64, sequence: Int64) -> Verdict {
        guard sequence > position else { return .duplicate }
        guard previous <= position else { return .gap(after: position) }
        position = sequence
        behindSince = nil
        return .inOrder
    }

    /// Takes a `head` message; `now` is in microseconds on a monotonic clock.
    public mutating func head(newest: Int64, now: Int64) -> HeadVerdict {
        guard newest > position else {
            behindSince = nil
            // A new connection may have missed what came before it, but head says there was nothing.
            mustConfirm = false
            return .upToDate
        }
        if mustConfirm || carriesEverything { return .confirm(after: position) }
        let since = behindSince ?? now
        behindSince = since
        return now.addingClamped(-since) >= patienceMicroseconds ? .confirm(after: position) : .behind
    }

    /// The connection is a new one: the next `head` that is ahead asks at once.
    public mutating func reconnected() { mustConfirm = true }

    /// Everything up to the sequence has been read again.
    ///
    /// Never goes back.
    public mutating func confirm(upTo sequence: Int64) {
        position = max(position, sequence)
        behindSince = nil
        mustConfirm = false
    }
}
