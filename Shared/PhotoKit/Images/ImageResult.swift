import Contracts
import Foundation
import JSONValue
import PhotoModel

/// The outcome of an image request before it becomes the arguments of a result handler.
struct ImageResult<Value: Sendable>: Sendable {
    var value: Value?
    var requestID: PHImageRequestID
    var isDegraded = false
    var isFinal = true
    var isInCloud = false
    var isCacheHit = false
    var isCancelled = false
    var error: PHPhotosError?

    init(_ value: Value?, _ requestID: PHImageRequestID) {
        self.value = value
        self.requestID = requestID
    }

    /// Creates the result of a request that failed or was cancelled.
    init(_ error: RPCError, isCancelled: Bool, _ requestID: PHImageRequestID) {
        self.requestID = requestID
        // A progress handler can also cancel the request.
        self.isCancelled = isCancelled || error.errorCode == .userCancelled
        self.error = self.isCancelled ? nil : PHPhotosError(error)
        isInCloud = error.errorCode == .networkAccessRequired
    }

    /// PhotoKit's dictionary, without keys for values that do not apply.
    var info: [AnyHashable: Any] {
        var info: [AnyHashable: Any] = [
            PHImageResultRequestIDKey: requestID, PHImageResultIsFinalKey: isFinal,
            PHImageResultIsCacheHitKey: isCacheHit,
        ]
        if value != nil { info[PHImageResultIsDegradedKey] = isDegraded }
        if isInCloud { info[PHImageResultIsInCloudKey] = true }
        if isCancelled { info[PHImageCancelledKey] = true }
        if let error { info[PHImageErrorKey] = error }
        return info
    }
}

extension PHImage {
    init(_ result: ImageRequest.Result, _ bytes: [UInt8]) {
        self.init(
            data: Data(bytes),
            contentType: result.mimeType == "image/webp"
                ? "org.webmproject.webp" : "public.\(result.mimeType.split(separator: "/").last ?? "image")",
            width: result.pixelWidth,
            height: result.pixelHeight
        )
    }
}
