public import JSONValue
public import PhotoModel

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

/// Images for a caching manager to prepare. A request finds a prepared image only if all of its values are equal.
public struct CachedImages: Sendable, Hashable {
    public var assets: [ObjectID]
    public var targetSize: TargetSize
    public var contentMode: ImageContentMode = .aspectFit
    public var resizeMode: ImageResizeMode = .fast
    public var normalizedCropRect: UnitRect?
    public var version: ImageVersion = .current
    public var format: DeliveredFormat = .jpeg
    public var quality = 85

    public static let maxAssets = 1000

    public init(assets: [ObjectID], targetSize: TargetSize) {
        self.assets = assets
        self.targetSize = targetSize
    }

    /// Returns the image request that one of the images is prepared for.
    public func request(_ asset: ObjectID) -> ImageRequest {
        ImageRequest(
            asset: asset,
            targetSize: targetSize,
            contentMode: contentMode,
            resizeMode: resizeMode,
            deliveryMode: .highQualityFormat,
            normalizedCropRect: normalizedCropRect,
            version: version,
            format: format,
            quality: quality
        )
    }
}

/// A request about images of a caching manager.
public protocol CachingRequest: Request where Result == EmptyResult {
    var cache: String { get set }
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

    public struct Result: JSONTabled {
        /// Images on the list whose preparation has not begun.
        public var waiting = 0
        /// Images in preparation.
        public var preparing = 0
        /// Images cached.
        public var prepared = 0
        /// Images that could not be rendered.
        public var failed = 0

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
            ]
        )
    }
}
