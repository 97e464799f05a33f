import JSONValue
import Contracts

/// The retry policy of published edits: try again, or end the edit. It has no clock: the caller waits.
///
/// Temporary conditions (an unreachable service or object store, a full disk, an upload that a restart of the catalog
/// removed) are retried without limit, because the edit was accepted. Faults of the edit or its image are retried a few
/// times at most, so that the edit does not delay others.
struct EditRetryPolicy: Sendable {
    enum Step: Sendable, Equatable {
        /// Try again after a delay.
        case again(Duration)
        case fails
    }

    /// The number of timeouts that ends an edit: a timeout may be due to a busy machine, so it is retried once. The job
    /// of a crashed worker has been tried twice already.
    static let maxTimeouts = 2
    /// The number of conflicts that ends an edit: other clients have changed the pixels meanwhile.
    static let maxConflicts = 20
    /// The number of internal errors of a service that ends an edit.
    static let maxFaults = 3

    /// The problems of an object store that are not temporary.
    private static let lostObjects: Set = ["object_damaged", "no_object"]
    /// The longest delay between two attempts.
    static let maxDelay = Duration.seconds(2)

    private var timeouts = 0
    private var conflicts = 0
    private var faults = 0
    private var delay = Duration.milliseconds(20)

    /// Returns the delay before a request that is repeated until it succeeds.
    mutating func retryDelay(after error: RPCError) -> Duration {
        guard case .again(let delay) = next(after: error, isConditional: false) else { return Self.maxDelay }
        return delay
    }

    /// Returns the next step after an error.
    ///
    /// - Parameter isConditional: true if the edit names the revision it applies to, so that a conflict ends it
    mutating func next(after error: RPCError, isConditional: Bool) -> Step {
        switch error.errorCode {
        case .networkError where Self.lostObjects.contains(error.data["problem"]?.stringValue ?? ""): return .fails
        // The owner of the library declined the edit, or did not decide in time: another attempt would ask again.
        case .userCancelled where error.data["question"] != nil: return .fails
        case .busy, .connectionLost, .unavailable, .deadlineExceeded, .behind, .interrupted, .userCancelled,
            .notEnoughSpace, .libraryOffline, .libraryRelinquished, .librarySwitching, .libraryReadOnly, .networkError,
            .handleExpired:
            defer { delay = min(delay * 2, Self.maxDelay) }
            return .again(delay)
        case .workerTimeout:
            timeouts += 1
            return timeouts < Self.maxTimeouts ? .again(.zero) : .fails
        case .conflict where !isConditional:
            conflicts += 1
            return conflicts < Self.maxConflicts ? .again(.zero) : .fails
        case .internalError, nil:
            faults += 1
            defer { delay = min(delay * 2, Self.maxDelay) }
            return faults < Self.maxFaults ? .again(delay) : .fails
        default: return .fails
        }
    }
}
