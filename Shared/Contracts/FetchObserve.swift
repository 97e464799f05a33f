public import JSONValue
public import PhotoModel

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
    /// False to get only whether the result has changed, and the objects after the change.
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

    /// An observed fetch result.
    public struct Result: JSONTabled {
        /// The changes of the result since the token of the request.
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

extension FetchObserve.Result: DetailsCarrying {
    var carried: FetchDetailsResult {
        get { details }
        set { details = newValue }
    }
}

/// `fetch.unobserve`: ends an observation of the connection (S-64).
public struct FetchUnobserve: Request {
    public typealias Result = EmptyResult
    public static let method = "fetch.unobserve"
    /// Id from fetch.observe.
    public var observation: String

    public init(observation: String) { self.observation = observation }

    public static let table = parameters(
        "Ends an observation of this connection. Its topic has no more messages once its last observer has ended it.",
        blank: FetchUnobserve(observation: ""),
        [.required("observation", \.observation, .text(maxBytes: 64), "Id from fetch.observe.")]
    )
}
