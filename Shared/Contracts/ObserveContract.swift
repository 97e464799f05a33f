public import JSONValue
public import PhotoModel

/// How the details of a result are told.
public enum DetailsForm: String, Sendable, CaseIterable {
    /// Removed, inserted, moved, changed: the size follows the change (DESIGN 3.4).
    case details
    /// PhotoKit's index sets and the move script besides (spec S-68).
    case rice
}

/// What became of the result of a fetch between two moments (spec S-65 to S-70).
public struct FetchDetailsResult: JSONTabled {
    public var observation: String
    /// The moment of the before list; nil where none was named.
    public var from: ChangeToken?
    /// The moment of the after list: the next details begin here.
    public var token: ChangeToken
    /// Objects of the after list, after offset and limit.
    public var count: Int
    /// Nil: the lists are the same, and nothing in them changed (spec S-65).
    public var details: ChangeDetails?
    /// PhotoKit's index sets, where they were asked for and there are details.
    public var rice: RICE?
    /// The whole after list, where the details are not incremental and it is no longer than ``maxIDs``.
    public var ids: [ObjectID]?

    public static let maxIDs = 10_000

    public init(observation: String, token: ChangeToken, count: Int) {
        self.observation = observation
        self.token = token
        self.count = count
    }

    static func fields<Root: CarriesDetails>(_: Root.Type) -> [JSONField<Root>] {
        [
            .required("observation", \Root.carried.observation, .text(maxBytes: 64), "Names the live result."),
            .optional("from", \Root.carried.from, .token, "The moment of the before list."),
            .required("token", \Root.carried.token, .token, "The moment of the after list."),
            .required("count", \Root.carried.count, .count(0...Int.max), "Objects of the after list."),
            .optional("details", \Root.carried.details, .object(ChangeDetails.self), "Absent: nothing changed."),
            .optional("rice", \Root.carried.rice, .object(RICE.self), "PhotoKit's index sets, where asked for."),
            .optional(
                "ids",
                \Root.carried.ids,
                .list(of: .id(), limit: maxIDs),
                "The whole after list where the details are not incremental, unless it is longer than 10,000."
            ),
        ]
    }

    public static let table = JSONTable(
        "FetchDetails",
        "What became of a result between two moments.",
        unknown: .ignored,
        blank: FetchDetailsResult(observation: "", token: .none, count: 0),
        fields(FetchDetailsResult.self)
    )
}

/// A result whose members are those of ``FetchDetailsResult``, and others perhaps.
protocol CarriesDetails {
    var carried: FetchDetailsResult { get set }
}

extension FetchDetailsResult: CarriesDetails {
    var carried: FetchDetailsResult {
        get { self }
        set { self = newValue }
    }
}

extension FetchObserve.Result: CarriesDetails {
    var carried: FetchDetailsResult {
        get { details }
        set { details = newValue }
    }
}

/// `fetch.observe`: keeps the result of a fetch current and tells what changes in it (DESIGN 3.4; spec S-63).
///
/// Client order: fetch, observe, subscribe to `topic`, `fetch.details` from the fetch's token, live. When `instance`
/// of the feed's head is another, observe again.
public struct FetchObserve: Request {
    public static let method = "fetch.observe"
    public var fetch: FetchDescription
    /// The moment of the result that the client has; nil: it has none.
    public var token: ChangeToken?
    public var isIncremental: Bool
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
        "Keeps the result of a fetch current: its changes are published on a topic of its own.",
        blank: FetchObserve(fetch: FetchDescription(.assets)),
        [
            .fetch(\.fetch, "Which entities in which order.", of: .assets),
            .optional("token", \.token, .token, "The moment of the result at hand; its details are answered."),
            .incremental(\.isIncremental),
            .form(\.form),
        ]
    )

    public struct Result: JSONTabled {
        public var details: FetchDetailsResult
        public var topic: String
        /// The broker's instance that observes; another one knows nothing of it.
        public var instance: String

        public init(details: FetchDetailsResult, topic: String, instance: String) {
            self.details = details
            self.topic = topic
            self.instance = instance
        }

        public static let table = JSONTable(
            "Observation",
            "A live result, and what became of it since the token named.",
            unknown: .ignored,
            blank: Result(
                details: FetchDetailsResult(observation: "", token: .none, count: 0),
                topic: "",
                instance: ""
            ),
            FetchDetailsResult.fields(Result.self) + [
                .required("topic", \.topic, .text(maxBytes: FeedTopic.maxBytes), "Where its changes are published."),
                .required("instance", \.instance, .text(maxBytes: 32), "As in head; observe again when it is new."),
            ]
        )
    }
}

/// `fetch.unobserve`: the caller no longer needs the observation (spec S-64).
public struct FetchUnobserve: Request {
    public typealias Result = Done
    public static let method = "fetch.unobserve"
    public var observation: String

    public init(observation: String) { self.observation = observation }

    public static let table = parameters(
        "Gives an observation up; it ends when nobody else holds it.",
        blank: FetchUnobserve(observation: ""),
        [.required("observation", \.observation, .text(maxBytes: 64), "As fetch.observe answered it.")]
    )
}

/// `fetch.details`: what became of an observed result since a token, and the moment up to which that is true.
public struct FetchDetails: Request {
    public typealias Result = FetchDetailsResult
    public static let method = "fetch.details"
    public var observation: String
    public var token: ChangeToken
    public var isIncremental: Bool
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
        "What became of an observed result since a token.",
        blank: FetchDetails(observation: "", token: .none),
        [
            .required("observation", \.observation, .text(maxBytes: 64), "As fetch.observe answered it."),
            .required("token", \.token, .token, "The moment of the list at hand."),
            .incremental(\.isIncremental),
            .form(\.form),
        ]
    )
}

/// `fetch.keys` of the catalog: a whole result as keys in their order, all of one moment.
///
/// Notifications `fetch.keys {}` carry them as attachments: each key is four bytes of length, the highest first, and
/// its bytes, as `ResultKey` of PhotoModel makes them. Offset and limit are not looked at.
public struct FetchKeys: Request {
    public static let method = "fetch.keys"
    public static let notification = "fetch.keys"
    public var fetch: FetchDescription
    /// More keys than these are refused, `limit_exceeded`.
    public var maxCount: Int

    public init(fetch: FetchDescription, maxCount: Int) {
        self.fetch = fetch
        self.maxCount = maxCount
    }

    public static let table = parameters(
        "A whole result as keys in their order, for who keeps it current. Open it with credit.",
        blank: FetchKeys(fetch: FetchDescription(.assets), maxCount: Int(Int32.max)),
        [
            .fetch(\.fetch, "Which entities in which order.", of: .assets),
            .defaulted(
                "maxCount",
                \.maxCount,
                .count(0...Int(Int32.max)),
                "More keys are refused.",
                default: Int(Int32.max)
            ),
        ]
    )

    public struct Result: JSONTabled {
        public var token: ChangeToken
        public var count: Int

        public init(token: ChangeToken, count: Int) {
            self.token = token
            self.count = count
        }

        public static let table = JSONTable(
            "FetchKeysEnd",
            "The moment of the keys, and how many there were.",
            unknown: .ignored,
            blank: Result(token: .none, count: 0),
            [
                .required("token", \.token, .token, "The moment of the keys."),
                .required("count", \.count, .count(0...Int.max), "How many there were."),
            ]
        )
    }
}
