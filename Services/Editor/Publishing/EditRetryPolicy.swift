import JSONValue
import Contracts

/// The retry policy of published edits: try again, or end the edit. Pure; the caller keeps the time.
///
/// Temporary conditions (an unreachable service or object store, a full disk, an upload that a restart of the catalog
/// removed) are retried without limit, because the edit was accepted. Faults of the edit or its image are retried a few
/// times at most, so that the edit does not delay others.
struct EditRetryPolicy: Sendable {
    enum Step: Sendable, Equatable {
        /// Try again after a pause.
        case again(Duration)
        case fails
    }

    /// A timeout may be due to a busy machine, so it is retried once. A worker that crashed has been tried twice
    /// already.
    static let timeouts = 2
    /// Conflicts because other clients changed the pixels meanwhile.
    static let conflicts = 20
    /// Internal errors of a service.
    static let faults = 3

    /// The problems of an object store that are not temporary.
    private static let lostObjects: Set = ["object_damaged", "no_object"]
    /// The longest pause between two attempts.
    static let longestPause = Duration.seconds(2)

    private var timeouts = 0
    private var conflicts = 0
    private var faults = 0
    private var pause = Duration.milliseconds(20)

    /// Returns the pause before a request that is repeated until it succeeds.
    mutating func retryDelay(after error: RPCError) -> Duration {
        guard case .again(let pause) = next(after: error, isConditional: false) else { return Self.longestPause }
        return pause
    }

    /// - Parameter isConditional: true if the edit names the revision it applies to, so that a conflict ends it
    mutating func next(after error: RPCError, isConditional: Bool) -> Step {
        switch error.errorCode {
        case .networkError where Self.lostObjects.contains(error.data["problem"]?.stringValue ?? ""): return .fails
        // The owner of the library declined the edit, or did not decide in time: another attempt would ask again.
        case .userCancelled where error.data["question"] != nil: return .fails
        case .busy, .connectionLost, .unavailable, .deadlineExceeded, .behind, .interrupted, .userCancelled,
            .notEnoughSpace, .libraryOffline, .libraryRelinquished, .librarySwitching, .libraryReadOnly, .networkError,
            .handleExpired:
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
