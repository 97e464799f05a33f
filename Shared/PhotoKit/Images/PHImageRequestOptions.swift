public import Foundation
import PhotoModel

/// The identifier of an image request, with which it can be cancelled.
public typealias PHImageRequestID = Int32

/// An identifier that no request has.
public let PHInvalidImageRequestID: PHImageRequestID = 0

/// The size that requests an image with all its pixels; `resizeMode` is then ignored (S-42).
public let PHImageManagerMaximumSize = CGSize(width: -1, height: -1)

/// True if no image was delivered, because the original is in remote storage and `networkAccessAllowed` is false.
public let PHImageResultIsInCloudKey = "PHImageResultIsInCloudKey"
/// True if the image is of lower quality than requested.
public let PHImageResultIsDegradedKey = "PHImageResultIsDegradedKey"
/// The identifier of the request.
public let PHImageResultRequestIDKey = "PHImageResultRequestIDKey"
/// True if the request was cancelled; there is no image then.
public let PHImageCancelledKey = "PHImageCancelledKey"
/// The error if no image was delivered.
public let PHImageErrorKey = "PHImageErrorKey"
/// True if no further call follows. PhotoKit has no such key (P-09).
public let PHImageResultIsFinalKey = "PHImageResultIsFinalKey"
/// True if the image was prepared or cached. PhotoKit has no such key (P-11).
public let PHImageResultIsCacheHitKey = "PHImageResultIsCacheHitKey"

/// Called while an original is downloaded from remote storage: progress 0...1, an error, and a flag to stop it.
public typealias PHAssetImageProgressHandler =
    @Sendable (
        _ progress: Double, _ error: (any Error)?, _ stop: UnsafeMutablePointer<ObjCBool>, _ info: [AnyHashable: Any]?
    ) -> Void

public enum PHImageContentMode: Int, Sendable, CaseIterable {
    case aspectFit = 0
    case aspectFill = 1

    public static let `default` = PHImageContentMode.aspectFit
}

public enum PHImageRequestOptionsVersion: Int, Sendable, CaseIterable {
    case current = 0
    case unadjusted = 1
    case original = 2
}

public enum PHImageRequestOptionsDeliveryMode: Int, Sendable, CaseIterable {
    case opportunistic = 0
    case highQualityFormat = 1
    case fastFormat = 2
}

public enum PHImageRequestOptionsResizeMode: Int, Sendable, CaseIterable {
    case none = 0
    case fast = 1
    case exact = 2
}

/// The options of a request for an image: `PHImageRequestOptions` (S-43 to S-49). A request reads the options once.
public final class PHImageRequestOptions {
    public var version = PHImageRequestOptionsVersion.current
    public var deliveryMode = PHImageRequestOptionsDeliveryMode.opportunistic
    public var resizeMode = PHImageRequestOptionsResizeMode.fast
    /// A part of the image as displayed, as fractions of its sides; `.zero` for the whole image. Needs `resizeMode`
    /// exact.
    public var normalizedCropRect = CGRect.zero
    /// True to allow originals to be downloaded from the object store.
    public var isNetworkAccessAllowed = false
    /// True to block the caller until the result handler was called, once, on the caller's thread. `deliveryMode` is
    /// ignored (D5).
    public var isSynchronous = false
    /// True to allow a second degraded image, larger than the first (T-44).
    public var allowSecondaryDegradedImage = false
    /// True to request high dynamic range if the asset has it: with the `format` avif as the image itself, with jpeg as
    /// a gain map in the same file (T-45).
    public var preferHDR = false
    /// The ratio of the display's brightest white to white in standard range; 0 if unknown. Values below 1 count as 0.
    public var targetHDRHeadroom = 0.0
    /// Called on a serial queue while the original is downloaded; never for one on the library's machine.
    public var progressHandler: PHAssetImageProgressHandler?
    /// The format of the delivered bytes: `jpeg`, `png`, `webp` or `avif`. PhotoKit delivers decoded images only
    /// (P-14).
    public var format = Format.jpeg
    /// The quality of lossy formats, 1...100.
    public var quality = 85

    public enum Format: String, Sendable, CaseIterable {
        case jpeg, webp, png, avif
    }

    public init() {}
}

public enum PHVideoRequestOptionsVersion: Int, Sendable, CaseIterable {
    case current = 0
    case original = 1
}

public enum PHVideoRequestOptionsDeliveryMode: Int, Sendable, CaseIterable {
    case automatic = 0
    case highQualityFormat = 1
    case mediumQualityFormat = 2
    case fastFormat = 3
}

/// The options of a request for a video: `PHVideoRequestOptions` (S-62).
public final class PHVideoRequestOptions {
    public var isNetworkAccessAllowed = false
    public var version = PHVideoRequestOptionsVersion.current
    public var deliveryMode = PHVideoRequestOptionsDeliveryMode.automatic
    /// Called on a serial queue while the original is downloaded; never for one on the library's machine.
    public var progressHandler: PHAssetImageProgressHandler?

    public init() {}
}

/// The options of a request for a Live Photo: `PHLivePhotoRequestOptions` (T-47).
public final class PHLivePhotoRequestOptions {
    public var version = PHImageRequestOptionsVersion.current
    public var deliveryMode = PHImageRequestOptionsDeliveryMode.opportunistic
    public var isNetworkAccessAllowed = false
    /// Called on a serial queue while the original is downloaded; never for one on the library's machine.
    public var progressHandler: PHAssetImageProgressHandler?

    public init() {}
}
