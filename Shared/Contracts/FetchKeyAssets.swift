public import JSONValue
public import PhotoModel

/// `fetch.keyAssets`: the cover assets of a collection, which are not all of its members (T-02, P-32).
public struct FetchKeyAssets: Request {
    public static let method = "fetch.keyAssets"
    /// The collection.
    public var collection: ObjectID
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?
    /// The form in which the dates of the assets are written.
    public var dates = DateForm.microseconds

    /// The maximum number of covers of a collection.
    public static let maxCount = 3

    public init(collection: ObjectID, atLeast: ChangeToken? = nil) {
        self.collection = collection
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "Returns at most three cover assets of a collection: the one the user chose, then the first members.",
        blank: FetchKeyAssets(collection: .none),
        [
            .required("collection", \.collection, .id(.assetCollection), "The collection."),
            .atLeast(\.atLeast),
            .dates(\.dates),
        ]
    )

    /// The cover assets of a collection.
    public struct Result: JSONTabled {
        /// Token at which they were read.
        public var token: ChangeToken
        /// Always `cover`, as a reminder that the assets are not all members.
        public var purpose: String
        /// At most three covers.
        public var assets: [Asset]

        public init(token: ChangeToken, assets: [Asset]) {
            self.token = token
            self.purpose = "cover"
            self.assets = assets
        }

        public static let table = JSONTable(
            "KeyAssets",
            "Cover assets of a collection.",
            unknown: .ignored,
            blank: Result(token: .none, assets: []),
            [
                .required("token", \.token, .token, "Token at which they were read."),
                .required("purpose", \.purpose, .text(maxBytes: 16), "Always cover; fetch.counts counts members."),
                .required("assets", \.assets, .list(of: .object(Asset.self), limit: maxCount), "At most three covers."),
            ]
        )
    }
}
