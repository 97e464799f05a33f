public import JSONValue
public import PhotoModel

/// `cache.open`: a caching manager of one's own (spec S-53).
///
/// It is leased: ten minutes, renewed by every request that names it. It belongs to who opened it.
public struct OpenCache: Request {
    public static let method = "cache.open"
    /// Whether whole pictures are decoded ahead; otherwise only the fast source is prepared (spec S-57, D13).
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
                "false: only what is quick is prepared: embedded previews and fractions of the size.",
                default: true
            )
        ]
    )

    public struct Result: JSONTabled {
        public var cache: String
        /// Images that it keeps on its list; the oldest are dropped beyond.
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
                .required("cache", \.cache, .text(maxBytes: 64), "Its name."),
                .required("limit", \.limit, .count(0...Int.max), "Images that it keeps on its list."),
            ]
        )
    }
}

/// `cache.configure` (spec S-57).
public struct ConfigureCache: Request {
    public typealias Result = Done
    public static let method = "cache.configure"
    public var cache: String
    public var allowsHighQuality: Bool

    public init(cache: String, allowsHighQuality: Bool) {
        self.cache = cache
        self.allowsHighQuality = allowsHighQuality
    }

    public static let table = parameters(
        "Changes a caching manager; what it prepares from now on follows.",
        blank: ConfigureCache(cache: "", allowsHighQuality: true),
        [
            .cache(\.cache),
            .required("allowsCachingHighQualityImages", \.allowsHighQuality, .flag, "As in cache.open."),
        ]
    )
}

/// How the images that a caching manager prepares will be asked for: every value must be the same then.
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

    /// The request that one of the images will be asked for by.
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

/// A request that names images of a caching manager.
public protocol CachingRequest: Request where Result == Done {
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
                "The assets, what is wanted first at the front."
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

/// `cache.start`: prepares images, after those of requests from people (spec S-54).
public struct StartCaching: CachingRequest {
    public typealias Result = Done
    public static let method = "cache.start"
    public var cache: String
    public var images: CachedImages

    public init(cache: String, images: CachedImages) {
        self.cache = cache
        self.images = images
    }

    public static let table = parameters(
        "Prepares images of assets; answers when they are on the list.",
        blank: StartCaching(cache: "", images: CachedImages(assets: [], targetSize: .maximum)),
        fields
    )
}

/// `cache.stop`: takes images off the list, with the very values that they were started with (spec S-55).
public struct StopCaching: CachingRequest {
    public typealias Result = Done
    public static let method = "cache.stop"
    public var cache: String
    public var images: CachedImages

    public init(cache: String, images: CachedImages) {
        self.cache = cache
        self.images = images
    }

    public static let table = parameters(
        "Takes images off the list of a caching manager; needs the values they were started with.",
        blank: StopCaching(cache: "", images: CachedImages(assets: [], targetSize: .maximum)),
        fields
    )
}

/// `cache.stopAll`: empties the list and ends what is under way for it (spec S-56).
public struct StopAllCaching: Request {
    public typealias Result = Done
    public static let method = "cache.stopAll"
    public var cache: String
    public init(cache: String) { self.cache = cache }
    public static let table = parameters(
        "Empties the list of a caching manager.",
        blank: StopAllCaching(cache: ""),
        [.cache(\.cache)]
    )
}

/// `cache.close`: empties the list and forgets the caching manager.
public struct CloseCache: Request {
    public typealias Result = Done
    public static let method = "cache.close"
    public var cache: String
    public init(cache: String) { self.cache = cache }
    public static let table = parameters(
        "Ends a caching manager.",
        blank: CloseCache(cache: ""),
        [.cache(\.cache)]
    )
}

/// `cache.status`: how far a caching manager has come.
public struct CacheStatus: Request {
    public static let method = "cache.status"
    public var cache: String
    public init(cache: String) { self.cache = cache }
    public static let table = parameters(
        "How far a caching manager has come.",
        blank: CacheStatus(cache: ""),
        [.cache(\.cache)]
    )

    public struct Result: JSONTabled {
        /// Images on the list that nobody has begun yet.
        public var waiting = 0
        public var preparing = 0
        public var prepared = 0
        /// Images that cannot be made.
        public var failed = 0

        public init() {}

        public static let table = JSONTable(
            "CacheCounts",
            "Images on the list.",
            unknown: .ignored,
            blank: Result(),
            [
                .required("waiting", \.waiting, .count(0...Int.max), "Not begun."),
                .required("preparing", \.preparing, .count(0...Int.max), "Under way."),
                .required("prepared", \.prepared, .count(0...Int.max), "At hand."),
                .required("failed", \.failed, .count(0...Int.max), "Could not be made."),
            ]
        )
    }
}
