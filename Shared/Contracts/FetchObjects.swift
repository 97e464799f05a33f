public import JSONValue
public import PhotoModel

/// `fetch.objects`: the assets at given indexes of a result (S-26: `objectsAtIndexes:`).
public struct FetchObjects: Request, ProjectedRequest {
    public static let method = "fetch.objects"
    /// The fetch.
    public var fetch: FetchDescription
    /// Token of its result; nil for the newest.
    public var token: ChangeToken?
    /// Indexes; range_error if one is beyond the end.
    public var at: [Int]
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?
    /// The projection of the assets.
    public var projection = Projection()

    public init(fetch: FetchDescription, token: ChangeToken? = nil, at: [Int], atLeast: ChangeToken? = nil) {
        self.fetch = fetch
        self.token = token
        self.at = at
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Returns the assets at indexes of a result, each once, in ascending order of the index.",
        blank: FetchObjects(fetch: FetchDescription(.assets), at: []),
        [
            .required("fetch", \.fetch, .fetch(), "The fetch."),
            .optional("token", \.token, .token, "Token of its result; absent: the newest."),
            .required(
                "at",
                \.at,
                .list(of: .count(0...Int.max), limit: FetchAssets.maxPage),
                "Indexes; range_error if one is beyond the end."
            ),
            .atLeast(\.atLeast),
        ] + JSONField.projection(Asset.table.fields.map(\.name))
    )

    public typealias Result = AssetPage
}
