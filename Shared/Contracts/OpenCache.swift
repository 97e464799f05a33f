public import JSONValue
import PhotoModel

/// `cache.open`: opens a caching manager (S-53).
///
/// It belongs to the identity that opened it and is leased for ten minutes, renewed by every request that names it.
public struct OpenCache: Request {
    public static let method = "cache.open"
    /// True if images are prepared from the full original; if false, only from fast sources (S-57, D13).
    public var allowsHighQuality: Bool

    public init(allowsHighQuality: Bool = true) { self.allowsHighQuality = allowsHighQuality }

    public static let table = parameters(
        "Opens a caching manager; its lease is ten minutes, renewed by use.",
        blank: OpenCache(),
        [
            .defaulted(
                "allowsCachingHighQualityImages",
                \.allowsHighQuality,
                .flag,
                "If false, only fast sources are used: embedded previews and decoding at a fraction of the size.",
                default: true
            )
        ]
    )

    /// A caching manager.
    public struct Result: JSONTabled {
        /// Id of the caching manager.
        public var cache: String
        /// Maximum number of images on its list; above it the oldest are dropped.
        public var limit: Int

        public init(cache: String, limit: Int) {
            self.cache = cache
            self.limit = limit
        }

        public static let table = JSONTable(
            "Cache",
            "A caching manager.",
            unknown: .ignored,
            blank: Result(cache: "", limit: 0),
            [
                .required("cache", \.cache, .text(maxBytes: 64), "Id of the caching manager."),
                .required("limit", \.limit, .count(0...Int.max), "Maximum number of images on its list."),
            ]
        )
    }
}
