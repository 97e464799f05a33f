public import JSONValue
import PhotoModel

/// `cache.configure`: changes the options of a caching manager (S-57).
public struct ConfigureCache: Request {
    public typealias Result = EmptyResult
    public static let method = "cache.configure"
    /// Id of the caching manager.
    public var cache: String
    /// As in cache.open.
    public var allowsHighQuality: Bool

    public init(cache: String, allowsHighQuality: Bool) {
        self.cache = cache
        self.allowsHighQuality = allowsHighQuality
    }

    public static let table = parameters(
        "Changes the options of a caching manager, for images that are prepared from now on.",
        blank: ConfigureCache(cache: "", allowsHighQuality: true),
        [
            .cache(\.cache),
            .required("allowsCachingHighQualityImages", \.allowsHighQuality, .flag, "As in cache.open."),
        ]
    )
}
