public import PhotoModel

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
    /// True if originals may be downloaded from remote storage to prepare their images.
    public var isNetworkAccessAllowed = false
    /// True for high dynamic range, as in `image.request`.
    public var prefersHDR = false
    public var targetHDRHeadroom = 0.0

    public static let maxAssets = 1000

    public init(assets: [ObjectID], targetSize: TargetSize) {
        self.assets = assets
        self.targetSize = targetSize
    }

    /// The images that are like the one of a request.
    public init(assets: [ObjectID], like request: ImageRequest) {
        self.init(assets: assets, targetSize: request.targetSize)
        contentMode = request.contentMode
        resizeMode = request.resizeMode
        normalizedCropRect = request.normalizedCropRect
        version = request.version
        format = request.format
        quality = request.quality
        isNetworkAccessAllowed = request.isNetworkAccessAllowed
        prefersHDR = request.prefersHDR
        targetHDRHeadroom = request.targetHDRHeadroom
    }

    /// Returns the image request that one of the images is prepared for.
    public func request(_ asset: ObjectID) -> ImageRequest {
        var request = ImageRequest(
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
        request.isNetworkAccessAllowed = isNetworkAccessAllowed
        request.prefersHDR = prefersHDR
        request.targetHDRHeadroom = targetHDRHeadroom
        return request
    }
}
