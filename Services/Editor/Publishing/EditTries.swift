import Contracts
import Messaging

/// What becomes of a published edit that did not succeed: tried again, or ended. A value; the clock is its caller's.
///
/// What may pass (nobody answers, the disk is full) is waited for as long as it takes, because the edit was accepted. What
/// lies in the edit or its picture is tried a few times at most, so that it does not hold up the others.
struct EditTries: Sendable {
    enum Step: Sendable, Equatable {
        /// After a pause.
        case again(Duration)
        case fails
    }

    /// A worker that takes too long may have had a busy machine: once more. One that dies has been tried twice already.
    static let timeouts = 2
    /// Somebody else changed the pixels meanwhile, every time.
    static let conflicts = 20
    /// Faults of a service.
    static let faults = 3

    private static let longestPause = Duration.seconds(2)

    private var timeouts = 0
    private var conflicts = 0
    private var faults = 0
    private var pause = Duration.milliseconds(20)

    /// - Parameter isConditional: the edit names the revision that it is made for, so a conflict is its end
    mutating func next(after error: RPCError, isConditional: Bool) -> Step {
        switch error.refusal {
        case .busy, .connectionLost, .unavailable, .deadlineExceeded, .behind, .interrupted, .userCancelled,
            .notEnoughSpace, .libraryOffline:
            defer { pause = min(pause * 2, Self.longestPause) }
            return .again(pause)
        case .workerTimeout:
            timeouts += 1
            return timeouts < Self.timeouts ? .again(.zero) : .fails
        case .conflict where !isConditional:
            conflicts += 1
            return conflicts < Self.conflicts ? .again(.zero) : .fails
        case .internalError, nil:
            faults += 1
            defer { pause = min(pause * 2, Self.longestPause) }
            return faults < Self.faults ? .again(pause) : .fails
        default: return .fails
        }
    }
}
