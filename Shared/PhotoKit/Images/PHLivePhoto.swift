public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoModel

public let PHLivePhotoInfoErrorKey = PHImageErrorKey
public let PHLivePhotoInfoIsDegradedKey = PHImageResultIsDegradedKey
public let PHLivePhotoInfoCancelledKey = PHImageCancelledKey

/// A Live Photo: a still and a video (T-47).
public final class PHLivePhoto: Sendable {
    /// The still.
    public let image: UIImage
    /// The video; nil while the Live Photo is degraded.
    public let film: AVAsset?

    init(_ image: UIImage, _ video: AVAsset?) {
        self.image = image
        film = video
    }

    /// The size of the still in pixels.
    public var size: CGSize { image.size }
}

extension PHImageManager {
    /// Requests a Live Photo. A degraded one has only a still.
    @discardableResult
    public func requestLivePhoto(
        for asset: PHAsset,
        targetSize: CGSize,
        contentMode: PHImageContentMode,
        options: PHLivePhotoRequestOptions?,
        resultHandler: @escaping @Sendable (PHLivePhoto?, [AnyHashable: Any]?) -> Void
    ) -> PHImageRequestID {
        let connection = asset.connection
        let id = connection.makeRequestID()
        var request = LivePhotoRequest(
            asset: asset.id,
            targetSize: targetSize == .zero ? .maximum : TargetSize(targetSize),
            contentMode: ImageContentMode(number: contentMode.rawValue) ?? .aspectFit,
            deliveryMode: ImageDeliveryMode(number: options?.deliveryMode.rawValue ?? 0) ?? .opportunistic,
            version: ImageVersion(number: options?.version.rawValue ?? 0) ?? .current
        )
        let access = NetworkAccess(options?.isNetworkAccessAllowed, options?.progressHandler, id)
        request.isNetworkAccessAllowed = access.isAllowed
        run(id, connection) { [request] in
            var final: ImageResult<PHLivePhoto>
            do throws(RPCError) {
                let loaded = try await connection.join(request, access) {
                    $0.still.size
                } degraded: { (still: ImageRequest.Result, bytes: Bytes) in
                    var degraded = ImageResult(PHLivePhoto(PHImage(still, bytes), nil), id)
                    (degraded.isDegraded, degraded.isFinal) = (true, false)
                    connection.callbacks.async { [degraded] in resultHandler(degraded.value, degraded.info) }
                }
                let video = AVAsset(loaded.result.video, connection, access)
                final = ImageResult(PHLivePhoto(PHImage(loaded.result.still, loaded.bytes), video), id)
                final.isDegraded = loaded.result.isDegraded
            } catch {
                final = ImageResult(error, isCancelled: Task.isCancelled, id)
            }
            connection.callbacks.async { [final] in resultHandler(final.value, final.info) }
        }
        return id
    }
}
