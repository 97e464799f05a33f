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

    public static let maxAssets = 1000

    public init(assets: [ObjectID], targetSize: TargetSize) {
        self.assets = assets
        self.targetSize = targetSize
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
        return request
    }
}
