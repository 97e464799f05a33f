public import JSONValue
import PhotoModel

/// A request about images of a caching manager.
public protocol CachingRequest: Request where Result == EmptyResult {
    /// Id of the caching manager.
    var cache: String { get set }
    /// The images.
    var images: CachedImages { get set }
}

extension CachingRequest {
    static var fields: [JSONField<Self>] {
        [
            .cache(\.cache),
            .required(
                "assets",
                \.images.assets,
                .list(of: .id(.asset), limit: CachedImages.maxAssets),
                "The assets, the most urgent first."
            ),
            .required("targetSize", \.images.targetSize, .targetSize, "As in image.request."),
            .defaulted(
                "contentMode",
                \.images.contentMode,
                .name(ImageContentMode.self),
                "As in image.request.",
                default: .aspectFit
            ),
            .defaulted(
                "resizeMode",
                \.images.resizeMode,
                .name(ImageResizeMode.self),
                "As in image.request.",
                default: .fast
            ),
            .optional(
                "normalizedCropRect",
                \.images.normalizedCropRect,
                .object(UnitRect.self),
                "As in image.request."
            ),
            .defaulted(
                "version",
                \.images.version,
                .name(ImageVersion.self),
                "As in image.request.",
                default: .current
            ),
            .defaulted(
                "format",
                \.images.format,
                .name(DeliveredFormat.self),
                "As in image.request.",
                default: .jpeg
            ),
            .defaulted("quality", \.images.quality, .count(1...100), "As in image.request.", default: 85),
            .networkAccess(\.images.isNetworkAccessAllowed),
            .defaulted("preferHDR", \.images.prefersHDR, .flag, "As in image.request.", default: false),
            .defaulted(
                "targetHDRHeadroom",
                \.images.targetHDRHeadroom,
                .number(ImageRequest.headrooms),
                "As in image.request.",
                default: 0
            ),
        ]
    }
}

/// `cache.start`: prepares images, with lower priority than interactive requests (S-54).
public struct StartCaching: CachingRequest {
    public typealias Result = EmptyResult
    public static let method = "cache.start"
    public var cache: String
    public var images: CachedImages

    public init(cache: String, images: CachedImages) {
        self.cache = cache
        self.images = images
    }

    public static let table = parameters(
        "Prepares images of assets; responds when they are on the list.",
        blank: StartCaching(cache: "", images: CachedImages(assets: [], targetSize: .maximum)),
        fields
    )
}

/// `cache.stop`: removes images from the list; all values must equal those of `cache.start` (S-55).
public struct StopCaching: CachingRequest {
    public typealias Result = EmptyResult
    public static let method = "cache.stop"
    public var cache: String
    public var images: CachedImages

    public init(cache: String, images: CachedImages) {
        self.cache = cache
        self.images = images
    }

    public static let table = parameters(
        "Removes images from the list of a caching manager; all values must equal those of cache.start.",
        blank: StopCaching(cache: "", images: CachedImages(assets: [], targetSize: .maximum)),
        fields
    )
}

/// `cache.stopAll`: empties the list and cancels the preparations in progress (S-56).
public struct StopAllCaching: Request {
    public typealias Result = EmptyResult
    public static let method = "cache.stopAll"
    /// Id of the caching manager.
    public var cache: String
    public init(cache: String) { self.cache = cache }
    public static let table = parameters(
        "Empties the list of a caching manager.",
        blank: StopAllCaching(cache: ""),
        [.cache(\.cache)]
    )
}

/// `cache.close`: empties the list and closes the caching manager.
public struct CloseCache: Request {
    public typealias Result = EmptyResult
    public static let method = "cache.close"
    /// Id of the caching manager.
    public var cache: String
    public init(cache: String) { self.cache = cache }
    public static let table = parameters(
        "Closes a caching manager.",
        blank: CloseCache(cache: ""),
        [.cache(\.cache)]
    )
}
