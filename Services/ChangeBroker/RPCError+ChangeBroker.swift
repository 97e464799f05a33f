import Contracts
import JSONValue
import PhotoModel

/// The errors of the change-broker, with their codes and texts. Errors of the catalog are passed on unchanged.
extension RPCError {
    // MARK: State of the broker

    /// The broker has not reached the catalog since it started.
    static let brokerNotReady = ErrorCode.unavailable.error("the broker has not reached the catalog yet; try again")
    static let brokerIsStopping = ErrorCode.unavailable.error("the change-broker is stopping; try again")

    /// The catalog, which has data that is not in the broker's memory, cannot be reached.
    ///
    /// - Parameter content: for example "older history"
    static func catalogUnreachable(has content: String) -> RPCError {
        ErrorCode.unavailable.error("the catalog, which has the \(content), is unreachable; try again")
    }

    /// The feed does not reach the token within the request's time.
    static func feedBehind(_ token: ChangeToken, head: ChangeToken) -> RPCError {
        ErrorCode.behind.error(
            "the feed has not reached \(token.sequence) yet; try again",
            ["head": .string(head.description)]
        )
    }

    static func foreignToken(head: ChangeToken, oldest: ChangeToken) -> RPCError {
        ErrorCode.tokenExpired.error(
            "the token belongs to another history; fetch again",
            ["head": .string(head.description), "oldest": .string(oldest.description)]
        )
    }

    // MARK: Messages of the catalog

    /// - Parameter problem: a ``JSONProblem``
    static func unreadableRecord(_ problem: some Error) -> RPCError {
        ErrorCode.internalError.error("a record of the catalog cannot be read: \(problem)")
    }

    static let malformedKeys = ErrorCode.internalError.error(
        "the catalog's keys are malformed or not in order; catalog and change-broker must have the same version"
    )
    static let incompleteKeys = ErrorCode.internalError.error(
        "the catalog sent an incomplete list of keys; catalog and change-broker must have the same version"
    )

    // MARK: Streams of records

    /// `feed.follow` on a socket that cannot receive notifications, or without credit.
    static let followNeedsCredit = ErrorCode.invalidParams.error(
        "feed.follow sends notifications: use a DEALER socket and send credit, the number of bytes that may be in "
            + "flight; on a REQ socket use feed.since",
        ["parameter": "credit"]
    )

    static func tooManyFollowers(limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the feed already has \(limit) followers; subscribe to the live feed",
            ["limit": JSON(limit)]
        )
    }

    static func tooManyFollowers(of identity: String, limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "\(identity) already has \(limit) readers of the feed; end some, or subscribe to the live feed",
            ["limit": JSON(limit)]
        )
    }

    // MARK: Observed fetches

    /// - Parameter reason: ``PhotoModel/Fetch/notObservableReason``
    static func notObservable(_ reason: String) -> RPCError { ErrorCode.notObservable.error(reason) }

    /// Changes arrive faster than the result can be read.
    static let libraryChangesTooFast = ErrorCode.unavailable.error(
        "the library changes too fast to load this result; try again"
    )
    static let observationEnded = ErrorCode.unavailable.error(
        "the observation ended while its result was loaded; try again"
    )
    static let detailsCancelled = ErrorCode.userCancelled.error(
        "the request was cancelled while its details were collected"
    )

    static func unknownObservation(_ observation: String) -> RPCError {
        ErrorCode.handleExpired.error("there is no observation \(observation.prefix(64)); fetch and observe again")
    }

    /// The connection does not observe the fetch whose observation it ends.
    static func notObserved(_ observation: String) -> RPCError {
        ErrorCode.handleExpired.error(
            "this connection does not observe \(observation.prefix(64)); there is nothing to end"
        )
    }

    static func tooManyFetches(of identity: String, limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "\(identity) already observes \(limit) fetches; unobserve some",
            ["limit": JSON(limit)]
        )
    }

    static func tooManyFetches(limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error("\(limit) fetches are already observed; try again later", ["limit": JSON(limit)])
    }

    static func resultsTooLarge(limit: Int) -> RPCError {
        ErrorCode.limitExceeded.error(
            "the observed results would take more than \(limit) bytes; unobserve some, or observe less",
            ["limit": JSON(limit)]
        )
    }

    static let resultsTooLarge = ErrorCode.limitExceeded.error(
        "all observed results together, or all of yours, are too large; unobserve some"
    )

    /// A fetch whose observation was ended because its evaluation with a change took too long.
    static let fetchTooSlow = ErrorCode.limitExceeded.error(
        "the predicate takes too long to be evaluated with each change; use fewer tests of texts, fetch when something "
            + "has changed, or observe the fetch again after \(SlowFetches.time.components.seconds) seconds",
        ["seconds": .int(SlowFetches.time.components.seconds)]
    )

    /// - Parameter mismatch: a ``ChangeDetailsMismatch``
    static func detailsTooLarge(_ mismatch: some Error) -> RPCError { ErrorCode.limitExceeded.error("\(mismatch)") }
}
