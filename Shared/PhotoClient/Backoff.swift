import Basics
import Contracts
public import JSONValue

/// Delays between attempts: exponential with jitter, so that clients of a restarted service do not all retry at the
/// same time.
struct Backoff: Sendable {
    static let first = Duration.milliseconds(50)
    static let longest = Duration.seconds(2)

    private var next = first

    /// Returns the delay before the next attempt, and doubles the one after it.
    ///
    /// - Parameter chance: random number in 0..<1; the share of the last quarter of the delay that is subtracted
    mutating func pause(chance: Double) -> Duration {
        let pause = next
        next = min(next * 2, Self.longest)
        return pause - pause / 4 * chance
    }

    mutating func reset() { next = Self.first }
}

/// Waits between two attempts.
///
/// - Throws: `user_cancelled` if the task is cancelled
func pause(_ duration: Duration) async throws(RPCError) {
    await TaskDelay.retryDelay(duration)
    guard !Task.isCancelled else { throw ErrorCode.userCancelled.error("the waiting task was cancelled") }
}

extension RPCError {
    /// True if the error is transient: the same request may succeed if it is retried.
    ///
    /// A write may have been committed nevertheless, so it must be retried with its transaction id.
    public var isTransient: Bool {
        switch errorCode {
        case .busy, .connectionLost, .unavailable, .deadlineExceeded, .behind, .interrupted: true
        // Cancelled by the service because it is stopping, unless the owner of the library did not consent, or a later
        // edit replaced this one.
        case .userCancelled: data["question"] == nil && data["isReplaced"] == nil && !Task.isCancelled
        default: false
        }
    }
}
