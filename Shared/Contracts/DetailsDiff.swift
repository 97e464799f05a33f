public import JSONValue
public import PhotoModel

/// `details.diff`: the difference between two results, PhotoKit's
/// `changeDetailsFromFetchResult:toFetchResult:changedObjects:`.
///
/// The results may be of different fetches of one class, for instance of two transient collections, and either may be
/// the older one.
public struct DetailsDiff: Request {
    public typealias Result = ChangesDetails.Result
    public static let method = "details.diff"
    /// The result before the change.
    public var from: ResultReference
    /// The result after the change.
    public var to: ResultReference
    /// The objects that count as changed; nil: those that differ between the tokens of the results.
    public var changedIds: [ObjectID]?
    /// Form of the details.
    public var form: DetailsForm
    /// False to get only whether the results differ.
    public var wantsIncrementalChangeDetails: Bool

    /// The maximum number of `changedIds`.
    public static let maxChanged = 10_000

    public init(
        from: ResultReference,
        to: ResultReference,
        changedIds: [ObjectID]? = nil,
        form: DetailsForm = .details,
        wantsIncrementalChangeDetails: Bool = true
    ) {
        self.from = from
        self.to = to
        self.changedIds = changedIds
        self.form = form
        self.wantsIncrementalChangeDetails = wantsIncrementalChangeDetails
    }

    public static let table = parameters(
        "The difference between two results, also of different fetches.",
        blank: DetailsDiff(
            from: ResultReference(fetch: FetchDescription(.assets)),
            to: ResultReference(fetch: FetchDescription(.assets))
        ),
        [
            .required("from", \.from, .object(ResultReference.self), "The result before the change."),
            .required("to", \.to, .object(ResultReference.self), "The result after the change; of the same class."),
            .optional(
                "changedIds",
                \.changedIds,
                .list(of: .id(), limit: maxChanged),
                "The objects that count as changed; absent: those that differ between the two tokens."
            ),
            .form(\.form),
            .defaulted(
                "wantsIncrementalChangeDetails",
                \.wantsIncrementalChangeDetails,
                .flag,
                "If false, only whether the results differ.",
                default: true
            ),
        ]
    )
}
