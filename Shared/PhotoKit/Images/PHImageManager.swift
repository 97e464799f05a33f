public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoModel
import Synchronization

/// Delivers images and videos of assets: `PHImageManager` (S-40 to S-52).
///
/// Result handlers are called on the callback queue of the library's configuration; with `isSynchronous` on the
/// caller's thread. A request ends with exactly one final call, also if it fails or is cancelled (D3).
public class PHImageManager: @unchecked Sendable {
    private static let shared = PHImageManager()
    private let tasks = Mutex<[PHImageRequestID: Task<Void, Never>]>([:])

    init() {}

    public class func `default`() -> PHImageManager { shared }

    /// Requests an image. Sizes are in pixels.
    ///
    /// - Parameter resultHandler: called with degraded images first if `deliveryMode` is opportunistic, then with the
    ///   image; or with nil and the reason in the dictionary
    /// - Returns: the identifier with which the request can be cancelled
    @discardableResult
    public func requestImage(
        for asset: PHAsset,
        targetSize: CGSize,
        contentMode: PHImageContentMode,
        options: PHImageRequestOptions?,
        resultHandler: @escaping @Sendable (UIImage?, [AnyHashable: Any]?) -> Void
    ) -> PHImageRequestID {
        let connection = asset.connection
        let id = connection.makeRequestID()
        let request = ImageRequest(asset, targetSize, contentMode, options)
        let access = NetworkAccess(options?.isNetworkAccessAllowed, options?.progressHandler, id)
        if options?.isSynchronous == true {
            let result = try? connection.wait { () async throws(RPCError) in
                await self.deliver(request, id, connection, access) { _ in }
            }
            resultHandler(result?.value, result?.info)
            return id
        }
        run(id, connection) {
            let final = await self.deliver(request, id, connection, access) { degraded in
                connection.callbacks.async { resultHandler(degraded.value, degraded.info) }
            }
            connection.callbacks.async { resultHandler(final.value, final.info) }
        }
        return id
    }

    /// Cancels a request: its result handler is called with `PHImageCancelledKey`. It has no effect after the final
    /// call.
    public func cancelImageRequest(_ requestID: PHImageRequestID) {
        tasks.withLock { $0[requestID] }?.cancel()
    }

    /// Requests the bytes of the largest representation: the file as it was imported, or the render of the last edit
    /// (S-52).
    @discardableResult
    public func requestImageDataAndOrientation(
        for asset: PHAsset,
        options: PHImageRequestOptions?,
        resultHandler: @escaping @Sendable (Data?, String?, CGImagePropertyOrientation, [AnyHashable: Any]?) -> Void
    ) -> PHImageRequestID {
        let connection = asset.connection
        let id = connection.makeRequestID()
        let version = ImageVersion(number: options?.version.rawValue ?? 0) ?? .current
        var request = ImageData(asset: asset.id, version: version)
        let access = NetworkAccess(options?.isNetworkAccessAllowed, options?.progressHandler, id)
        request.isNetworkAccessAllowed = access.isAllowed
        let load: @Sendable () async -> ImageResult<LoadedFile> = { [request] in
            do throws(RPCError) {
                let (result, bytes) = try await connection.join(request, access) { $0.size }
                return ImageResult(LoadedFile(result, bytes), id)
            } catch {
                return ImageResult(error, isCancelled: Task.isCancelled, id)
            }
        }
        let callHandler: @Sendable (ImageResult<LoadedFile>) -> Void = { result in
            resultHandler(
                result.value?.data,
                result.value?.contentType,
                result.value?.orientation ?? .up,
                result.info
            )
        }
        if options?.isSynchronous == true {
            if let result = try? connection.wait({ () async throws(RPCError) in await load() }) { callHandler(result) }
            return id
        }
        run(id, connection) {
            let result = await load()
            connection.callbacks.async { callHandler(result) }
        }
        return id
    }

    private struct LoadedFile: Sendable {
        let data: Data
        let contentType: String
        let orientation: CGImagePropertyOrientation

        init(_ result: ImageData.Result, _ bytes: Bytes) {
            data = Data(bytes)
            contentType = result.contentType
            orientation = CGImagePropertyOrientation(rawValue: UInt32(result.orientation)) ?? .up
        }
    }

    // MARK: Asynchronous forms

    /// Returns the image, without degraded ones before it. Cancelling the task cancels the request.
    ///
    /// - Throws: a ``PHPhotosError``
    public func image(
        for asset: PHAsset,
        targetSize: CGSize,
        contentMode: PHImageContentMode = .default,
        options: PHImageRequestOptions? = nil
    ) async throws -> UIImage {
        var request = ImageRequest(asset, targetSize, contentMode, options)
        request.isSynchronous = true
        let connection = asset.connection
        let id = connection.makeRequestID()
        let access = NetworkAccess(options?.isNetworkAccessAllowed, options?.progressHandler, id)
        let result = await deliver(request, id, connection, access) { _ in }
        guard let image = result.value else {
            throw result.error ?? PHPhotosError(.userCancelled, "the request was cancelled")
        }
        return image
    }

    /// Returns the bytes of the largest representation, as
    /// ``requestImageDataAndOrientation(for:options:resultHandler:)`` does, and their type.
    public func imageData(
        for asset: PHAsset,
        options: PHImageRequestOptions? = nil
    ) async throws -> (data: Data, contentType: String, orientation: CGImagePropertyOrientation) {
        let version = ImageVersion(number: options?.version.rawValue ?? 0) ?? .current
        do throws(RPCError) {
            var request = ImageData(asset: asset.id, version: version)
            let id = asset.connection.makeRequestID()
            let access = NetworkAccess(options?.isNetworkAccessAllowed, options?.progressHandler, id)
            request.isNetworkAccessAllowed = access.isAllowed
            let (result, bytes) = try await asset.connection.join(request, access) { $0.size }
            let file = LoadedFile(result, bytes)
            return (file.data, file.contentType, file.orientation)
        } catch {
            throw PHPhotosError(error)
        }
    }

    // MARK: Requests

    /// Runs a request that can be cancelled by its identifier.
    func run(_ id: PHImageRequestID, _ connection: LibraryConnection, _ work: @escaping @Sendable () async -> Void) {
        tasks.withLock { tasks in
            tasks[id] = connection.start {
                await work()
                _ = self.tasks.withLock { $0.removeValue(forKey: id) }
            }
        }
    }

    /// Returns the request to send. The caching manager adds its cache.
    func prepared(_ request: ImageRequest, _ connection: LibraryConnection) async -> ImageRequest { request }

    /// Removes a cache that the thumbnailer does not know.
    func forget(_ cache: String) {}

    /// Loads an image.
    ///
    /// - Parameter degraded: called with each degraded image
    private func deliver(
        _ request: ImageRequest,
        _ id: PHImageRequestID,
        _ connection: LibraryConnection,
        _ access: NetworkAccess,
        degraded: @escaping @Sendable (ImageResult<UIImage>) -> Void
    ) async -> ImageResult<UIImage> {
        var request = await prepared(request, connection)
        while true {
            do throws(RPCError) {
                let final = try await connection.join(request, access) {
                    $0.size
                } degraded: { (result: ImageRequest.Result, bytes: Bytes) in
                    degraded(ImageResult(result, bytes, id))
                }
                return ImageResult(final.result, final.bytes, id)
            } catch {
                guard error.errorCode == .handleExpired, let cache = request.cache else {
                    return ImageResult(error, isCancelled: Task.isCancelled, id)
                }
                // The thumbnailer was restarted, or it is another instance. The image does not depend on the cache.
                forget(cache)
                request.cache = nil
            }
        }
    }
}

extension ImageResult where Value == UIImage {
    init(_ result: ImageRequest.Result, _ bytes: Bytes, _ id: PHImageRequestID) {
        self.init(result.isInCloud ? nil : PHImage(result, bytes), id)
        isDegraded = result.isDegraded
        isFinal = result.isFinal
        isInCloud = result.isInCloud
        isCacheHit = result.isCacheHit
    }
}

extension ImageRequest {
    init(
        _ asset: PHAsset,
        _ size: CGSize,
        _ contentMode: PHImageContentMode,
        _ options: PHImageRequestOptions?
    ) {
        let options = options ?? PHImageRequestOptions()
        self.init(
            asset: asset.id,
            targetSize: TargetSize(size),
            contentMode: ImageContentMode(number: contentMode.rawValue) ?? .aspectFit,
            resizeMode: ImageResizeMode(number: options.resizeMode.rawValue) ?? .fast,
            deliveryMode: ImageDeliveryMode(number: options.deliveryMode.rawValue) ?? .opportunistic,
            normalizedCropRect: UnitRect(options.normalizedCropRect),
            version: ImageVersion(number: options.version.rawValue) ?? .current,
            format: DeliveredFormat(rawValue: options.format.rawValue) ?? .jpeg,
            quality: min(max(options.quality, 1), 100)
        )
        isSynchronous = options.isSynchronous
        isNetworkAccessAllowed = options.isNetworkAccessAllowed
        allowsSecondaryDegradedImage = options.allowSecondaryDegradedImage
        prefersHDR = options.preferHDR
        targetHDRHeadroom = options.targetHDRHeadroom
    }
}

extension TargetSize {
    init(_ size: CGSize) {
        self =
            size == PHImageManagerMaximumSize
            ? .maximum : .size(width: Int(clamping: size.width), height: Int(clamping: size.height))
    }
}

extension UnitRect {
    /// Creates the part of an image; nil for the whole image.
    init?(_ rect: CGRect) {
        guard rect != .zero else { return nil }
        self.init(x: rect.origin.x, y: rect.origin.y, width: rect.size.width, height: rect.size.height)
    }
}

extension Int {
    /// Rounds a side up to whole pixels, within the valid sizes of a request; -1, which is refused, for a side that is
    /// not a number.
    init(clamping side: CGFloat) {
        self = side.isNaN ? -1 : Int(Swift.min(Swift.max(side.rounded(.up), -1), CGFloat(TargetSize.maxSide)))
    }
}
