public import JSONValue
public import PhotoModel

/// `fetch.details`: the changes of an observed result since a token, and the token up to which they are complete.
public struct FetchDetails: Request {
    public typealias Result = FetchDetailsResult
    public static let method = "fetch.details"
    /// Id from fetch.observe.
    public var observation: String
    /// Token of the client's list.
    public var token: ChangeToken
    /// False to get only whether the result has changed, and the objects after the change.
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
