public import PhotoModel

/// Images for a caching manager to prepare. A request finds a prepared image only if all of its values are equal.
public struct CachedImages: Sendable, Hashable {
    /// The assets, the most urgent first; at most ``maxAssets``.
    public var assets: [ObjectID]
    /// Size in pixels, or the maximum.
    public var targetSize: TargetSize
    /// As in ``ImageRequest``.
    public var contentMode: ImageContentMode = .aspectFit
    /// As in ``ImageRequest``.
    public var resizeMode: ImageResizeMode = .fast
    /// As in ``ImageRequest``; nil for the whole image.
    public var normalizedCropRect: UnitRect?
    /// As in ``ImageRequest``.
    public var version: ImageVersion = .current
    /// As in ``ImageRequest``.
    public var format: DeliveredFormat = .jpeg
    /// As in ``ImageRequest``, 1...100.
    public var quality = 85
    /// True if originals may be downloaded from remote storage to prepare their images.
    public var isNetworkAccessAllowed = false
    /// As in ``ImageRequest``.
    public var prefersHDR = false
    /// As in ``ImageRequest``.
    public var targetHDRHeadroom = 0.0

    /// The maximum number of assets in one request.
    public static let maxAssets = 1000

    public init(assets: [ObjectID], targetSize: TargetSize) {
        self.assets = assets
        self.targetSize = targetSize
    }

    /// Creates the images of assets with the values of a request.
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

    /// Returns the request for which the image of an asset is prepared.
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
