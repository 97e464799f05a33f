public import JSONValue
public import PhotoModel

/// The form in which the change details of a result are returned.
public enum DetailsForm: String, Sendable, CaseIterable {
    /// Removed, inserted, moved and changed objects; the size is proportional to the change.
    case details
    /// Also PhotoKit's index sets and one-by-one moves (S-68).
    case rice
}

/// The changes of a fetch result between two tokens (S-65 to S-70).
public struct FetchDetailsResult: JSONTabled {
    public var observation: String
    /// The token of the before list; nil if the request named none.
    public var from: ChangeToken?
    /// The token of the after list, from which the next details are requested.
    public var token: ChangeToken
    /// Number of objects in the after list, after offset and limit.
    public var count: Int
    /// The details; nil if the lists are equal and none of their objects changed (S-65).
    public var details: ChangeDetails?
    /// PhotoKit's index sets; nil unless they were requested and there are details.
    public var rice: RICE?
    /// The whole after list if the details are not incremental; nil otherwise, or above ``maxIDs`` objects.
    public var ids: [ObjectID]?

    public static let maxIDs = 10_000

    public init(observation: String, token: ChangeToken, count: Int) {
        self.observation = observation
        self.token = token
        self.count = count
    }

    static func fields<Root: DetailsCarrying>(_: Root.Type) -> [JSONField<Root>] {
        [
            .required("observation", \Root.carried.observation, .text(maxBytes: 64), "Id of the observation."),
            .optional("from", \Root.carried.from, .token, "Token of the before list."),
            .required("token", \Root.carried.token, .token, "Token of the after list."),
            .required("count", \Root.carried.count, .count(0...Int.max), "Number of objects in the after list."),
            .optional("details", \Root.carried.details, .object(ChangeDetails.self), "Absent if nothing changed."),
            .optional("rice", \Root.carried.rice, .object(RICE.self), "PhotoKit's index sets, if requested."),
            .optional(
                "ids",
                \Root.carried.ids,
                .list(of: .id(), limit: maxIDs),
                "The whole after list if the details are not incremental; absent above 10,000 objects."
            ),
        ]
    }

    public static let table = JSONTable(
        "FetchDetails",
        "Changes of a fetch result between two tokens.",
        unknown: .ignored,
        blank: FetchDetailsResult(observation: "", token: .none, count: 0),
        fields(FetchDetailsResult.self)
    )
}

/// A result that contains the members of ``FetchDetailsResult``.
protocol DetailsCarrying {
    var carried: FetchDetailsResult { get set }
}

extension FetchDetailsResult: DetailsCarrying {
    var carried: FetchDetailsResult {
        get { self }
        set { self = newValue }
    }
}

extension FetchObserve.Result: DetailsCarrying {
    var carried: FetchDetailsResult {
        get { details }
        set { details = newValue }
    }
}

/// `fetch.observe`: maintains a fetch result and publishes its changes (S-63).
///
/// A client fetches, observes, subscribes to `topic`, calls `fetch.details` with the token of its result, and then
/// applies the published changes. It observes again if `instance` of the feed's head changes.
public struct FetchObserve: Request {
    public static let method = "fetch.observe"
    /// The entities to fetch and their order.
    public var fetch: FetchDescription
    /// The token of the client's result; nil if it has none.
    public var token: ChangeToken?
    /// If false, only whether the result changed, and the after list.
    public var isIncremental: Bool
    /// Form of the change details.
    public var form: DetailsForm

    public init(
        fetch: FetchDescription,
        token: ChangeToken? = nil,
        isIncremental: Bool = true,
        form: DetailsForm = .details
    ) {
        self.fetch = fetch
        self.token = token
        self.isIncremental = isIncremental
        self.form = form
    }

    public static let table = parameters(
        "Maintains a fetch result and publishes its changes on a topic of its own.",
        blank: FetchObserve(fetch: FetchDescription(.assets)),
        [
            .fetch(\.fetch, "The entities to fetch and their order.", of: .assets),
            .optional("token", \.token, .token, "Token of the client's result; the response has the changes since."),
            .incremental(\.isIncremental),
            .form(\.form),
        ]
    )

    public struct Result: JSONTabled {
        public var details: FetchDetailsResult
        /// Topic of its changes.
        public var topic: String
        /// The instance of the broker that maintains the observation; it is unknown to any other instance.
        public var instance: String

        public init(details: FetchDetailsResult, topic: String, instance: String) {
            self.details = details
            self.topic = topic
            self.instance = instance
        }

        public static let table = JSONTable(
            "Observation",
            "An observed fetch result, and its changes since the given token.",
            unknown: .ignored,
            blank: Result(
                details: FetchDetailsResult(observation: "", token: .none, count: 0),
                topic: "",
                instance: ""
            ),
            FetchDetailsResult.fields(Result.self) + [
                .required("topic", \.topic, .text(maxBytes: FeedTopic.maxBytes), "Topic of its changes."),
                .required("instance", \.instance, .text(maxBytes: 32), "As in head; observe again if it changes."),
            ]
        )
    }
}

/// `fetch.unobserve`: releases an observation (S-64).
public struct FetchUnobserve: Request {
    public typealias Result = EmptyResult
    public static let method = "fetch.unobserve"
    /// Id from fetch.observe.
    public var observation: String

    public init(observation: String) { self.observation = observation }

    public static let table = parameters(
        "Releases an observation; it ends when no client uses it.",
        blank: FetchUnobserve(observation: ""),
        [.required("observation", \.observation, .text(maxBytes: 64), "Id from fetch.observe.")]
    )
}

/// `fetch.details`: the changes of an observed result since a token, and the token up to which they are complete.
public struct FetchDetails: Request {
    public typealias Result = FetchDetailsResult
    public static let method = "fetch.details"
    /// Id from fetch.observe.
    public var observation: String
    /// Token of the client's list.
    public var token: ChangeToken
    /// If false, only whether the result changed, and the after list.
    public var isIncremental: Bool
    /// Form of the change details.
    public var form: DetailsForm

    public init(
        observation: String,
        token: ChangeToken,
        isIncremental: Bool = true,
        form: DetailsForm = .details
    ) {
        self.observation = observation
        self.token = token
        self.isIncremental = isIncremental
        self.form = form
    }

    public static let table = parameters(
        "The changes of an observed result since a token.",
        blank: FetchDetails(observation: "", token: .none),
        [
            .required("observation", \.observation, .text(maxBytes: 64), "Id from fetch.observe."),
            .required("token", \.token, .token, "Token of the client's list."),
            .incremental(\.isIncremental),
            .form(\.form),
        ]
    )
}

/// `fetch.keys` of the catalog: the sort keys of a whole result, in order and all at one token.
///
/// `fetch.keys {}` notifications carry them as attachments. Each key is a length of four bytes in big-endian order,
/// followed by the bytes that `ResultKey` of PhotoModel encodes. Offset and limit of the fetch are ignored.
public struct FetchKeys: Request {
    public static let method = "fetch.keys"
    public static let notification = "fetch.keys"
    /// The entities to fetch and their order.
    public var fetch: FetchDescription
    /// The maximum number of keys; a larger result is refused with `limit_exceeded`.
    public var maxCount: Int

    public init(fetch: FetchDescription, maxCount: Int) {
        self.fetch = fetch
        self.maxCount = maxCount
    }

    public static let table = parameters(
        "The sort keys of a whole result, for programs that maintain it. Send it with credit.",
        blank: FetchKeys(fetch: FetchDescription(.assets), maxCount: Int(Int32.max)),
        [
            .fetch(\.fetch, "The entities to fetch and their order.", of: .assets),
            .defaulted(
                "maxCount",
                \.maxCount,
                .count(0...Int(Int32.max)),
                "A result with more keys is refused with limit_exceeded.",
                default: Int(Int32.max)
            ),
        ]
    )

    public struct Result: JSONTabled {
        /// Token of the keys.
        public var token: ChangeToken
        /// Number of keys.
        public var count: Int

        public init(token: ChangeToken, count: Int) {
            self.token = token
            self.count = count
        }

        public static let table = JSONTable(
            "FetchKeysEnd",
            "Token and number of the keys that were sent.",
            unknown: .ignored,
            blank: Result(token: .none, count: 0),
            [
                .required("token", \.token, .token, "Token of the keys."),
                .required("count", \.count, .count(0...Int.max), "Number of keys."),
            ]
        )
    }
}
