public import JSONValue
public import PhotoModel

/// `cache.status`: the progress of a caching manager.
public struct CacheStatus: Request {
    public static let method = "cache.status"
    /// Id of the caching manager.
    public var cache: String
    public init(cache: String) { self.cache = cache }
    public static let table = parameters(
        "The progress of a caching manager.",
        blank: CacheStatus(cache: ""),
        [.cache(\.cache)]
    )

    /// The numbers of images on the list of a caching manager.
    public struct Result: JSONTabled {
        /// Images on the list whose preparation has not begun.
        public var waiting = 0
        /// Images in preparation.
        public var preparing = 0
        /// Images cached.
        public var prepared = 0
        /// Images that could not be rendered.
        public var failed = 0
        /// Assets with images that could not be rendered, at most ``maxFailedAssets``.
        public var failedAssets: [ObjectID] = []

        /// Maximum number of ``failedAssets``.
        public static let maxFailedAssets = 100

        public init() {}

        public static let table = JSONTable(
            "CacheCounts",
            "Numbers of images on the list.",
            unknown: .ignored,
            blank: Result(),
            [
                .required("waiting", \.waiting, .count(0...Int.max), "Images not begun."),
                .required("preparing", \.preparing, .count(0...Int.max), "Images in preparation."),
                .required("prepared", \.prepared, .count(0...Int.max), "Images cached."),
                .required("failed", \.failed, .count(0...Int.max), "Images that could not be rendered."),
                .defaulted(
                    "failedAssets",
                    \.failedAssets,
                    .list(of: .id(.asset), limit: maxFailedAssets),
                    "Assets with images that could not be rendered; `image.request` says why.",
                    default: []
                ),
            ]
        )
    }
}
