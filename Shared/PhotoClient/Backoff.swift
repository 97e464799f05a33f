import Contracts
public import Messaging

/// The pauses between attempts: each twice the one before, with a little chance in it so that many clients of a service
/// that comes back do not all ask in the same moment.
struct Backoff: Sendable {
    static let first = Duration.milliseconds(50)
    static let longest = Duration.seconds(2)

    private var next = first

    /// The pause before the next attempt.
    ///
    /// - Parameter chance: 0..<1, how much of the last quarter of the pause is left out
    mutating func pause(chance: Double) -> Duration {
        let pause = next
        next = min(next * 2, Self.longest)
        return pause - pause / 4 * chance
    }

    mutating func reset() { next = Self.first }
}

extension RPCError {
    /// Whether the same request may well succeed a little later, and nothing is known to be wrong with it.
    ///
    /// A write may have been carried out all the same: it is repeated under its transaction id.
    public var isPassing: Bool {
        switch refusal {
        case .busy, .connectionLost, .unavailable, .deadlineExceeded, .behind, .interrupted: true
        // Taken back, and not by this side: the service is stopping.
        case .userCancelled: !Task.isCancelled
        default: false
        }
    }
}
