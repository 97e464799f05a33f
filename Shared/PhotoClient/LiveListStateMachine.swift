import Contracts
import JSONValue
import PhotoModel

/// A state machine that decides the next action of an observed fetch, without sockets or a clock.
///
/// Its list is at any time exactly the result of the fetch at its token. A live message that continues it is applied.
/// After one that does not, or a head that stays ahead, the details in between are requested from the broker.
struct LiveListStateMachine: Sendable {
    /// The next action.
    enum Action: Sendable, Hashable {
        /// Fetch the whole list.
        case list
        /// Observe the fetch, starting from the current list.
        case observe(since: ChangeToken)
        /// Subscribe to the observation's topic.
        case subscribe(String)
        /// Request the changes of the list since a token.
        case details(observation: String, since: ChangeToken)
        /// Wait for the next live message.
        case live
    }

    /// A live message of an observed fetch.
    struct Message: Sendable {
        var token: ChangeToken
        var previous: Int64
        /// The changes; nil if the message was truncated.
        var details: ChangeDetails?

        init(token: ChangeToken, previous: Int64, details: ChangeDetails?) {
            self.token = token
            self.previous = previous
            self.details = details
        }

        init(json: JSON) throws(JSONProblem) {
            guard let sequence = json["sequence"]?.intValue, let library = json["library"]?.stringValue,
                let previous = json["previous"]?.intValue
            else { throw JSONProblem("a live message has sequence, library and previous") }
            self.init(token: ChangeToken(library: library, sequence: sequence), previous: previous, details: nil)
            if json["truncated"]?.boolValue != true, let details = json["details"] {
                self.details = try ChangeDetails(json: details)
            }
        }
    }

    private(set) var ids: [ObjectID] = []
    private(set) var token: ChangeToken?
    private(set) var topic: String?
    private var observation: String?
    private var instance: String?
    private var subscribed: String?
    private var needsDetails = false
    private var behindSince: Int64?

    /// The time, in microseconds, for which the list may stay behind the head before details are requested.
    static let confirmAfter: Int64 = 5_000_000

    var nextAction: Action {
        guard let token else { return .list }
        guard let observation, let topic else { return .observe(since: token) }
        if subscribed != topic { return .subscribe(topic) }
        return needsDetails ? .details(observation: observation, since: token) : .live
    }

    // MARK: Responses

    /// Handles the whole list at a token.
    mutating func setList(_ ids: [ObjectID], at token: ChangeToken) -> LiveListEvent {
        self.ids = ids
        self.token = token
        return .list(ids, token)
    }

    /// Handles the response to ``Action/observe(since:)``.
    mutating func didObserve(_ result: FetchObserve.Result) -> LiveListEvent? {
        (observation, topic, instance) = (result.details.observation, result.topic, result.instance)
        return handleDetails(result.details)
    }

    /// Handles the completed subscription; changes published between the observation and it are requested.
    mutating func didSubscribe(to topic: String) {
        subscribed = topic
        needsDetails = true
    }

    /// Handles the response to ``Action/details(observation:since:)``.
    mutating func handleDetails(_ result: FetchDetailsResult) -> LiveListEvent? {
        needsDetails = false
        behindSince = nil
        guard let details = result.details else {
            token = result.token
            return nil
        }
        if details.hasIncrementalChanges { return apply(details, result.token) }
        guard let ids = result.ids else {
            restart()
            return nil
        }
        return setList(ids, at: result.token)
    }

    /// Handles the error of the request of the current action.
    ///
    /// - Returns: true if the state machine continues; false if the caller must handle the error
    mutating func recover(from error: ErrorCode?) -> Bool {
        switch error {
        case .handleExpired: observation = nil
        case .tokenExpired: restart()
        default: return false
        }
        return true
    }

    // MARK: Live messages

    /// Handles a live message.
    mutating func handleLive(_ message: Message, topic: String) -> LiveListEvent? {
        guard let token, topic == self.topic, observation != nil, message.token.library == token.library,
            message.token.sequence > token.sequence
        else { return nil }
        guard message.previous <= token.sequence, let details = message.details else {
            needsDetails = true
            return nil
        }
        return apply(details, message.token)
    }

    /// Handles a head message.
    ///
    /// - Parameter now: microseconds of a monotonic clock
    mutating func handleHead(_ head: FeedHead, now: Int64) {
        guard let token else { return }
        if head.library != token.library {
            restart()
        } else if observation != nil, head.instance != instance {
            observation = nil
        } else if head.sequence <= token.sequence {
            behindSince = nil
        } else if let since = behindSince {
            if now - since >= Self.confirmAfter { needsDetails = true }
        } else {
            behindSince = now
        }
    }

    /// Handles a live message that could not be decoded, or a time without any message.
    mutating func handleMissedMessages() { needsDetails = true }

    private mutating func apply(_ details: ChangeDetails, _ newToken: ChangeToken) -> LiveListEvent? {
        do throws(ChangeDetailsMismatch) {
            ids = try details.apply(to: ids)
        } catch {
            // A bug in the broker or the client; fetching the list again is correct in any case.
            restart()
            return nil
        }
        token = newToken
        return .changed(details, ids, newToken)
    }

    private mutating func restart() {
        token = nil
        observation = nil
        behindSince = nil
    }
}
