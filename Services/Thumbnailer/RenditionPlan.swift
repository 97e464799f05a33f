import Contracts
import JSONValue
import Messaging
import PhotoModel

/// One picture to be made: the bytes it is made from and every option that can change a pixel (spec 8.2 and 8.4).
///
/// Two requests that must look the same have equal plans: options without effect are brought to one form.
struct RenditionPlan: Sendable, Hashable {
    /// SHA-256 of the resource. New pixels are new bytes, so a plan never leads to the picture of an older edit.
    var digest: String
    var targetSize: TargetSize
    var contentMode: ImageContentMode
    var resizeMode: ImageResizeMode
    /// Part of the displayed picture; nil for all of it.
    var crop: UnitRect?
    var format: DeliveredFormat
    /// 1...100; 0 for formats without loss.
    var quality: Int

    /// - Throws: `invalid_options` for options that contradict each other, `missing_resource` for an asset without a
    ///   picture.
    init(_ request: ImageRequest, of asset: AssetFacts) throws(RPCError) {
        try Self.check(request)
        let resource = try Self.resource(of: asset, version: request.version)
        self.digest = resource.digest
        self.format = request.format
        self.quality = request.format == .png ? 0 : request.quality
        if request.targetSize == .maximum || request.resizeMode == .none {
            targetSize = .maximum
            contentMode = .aspectFit
            resizeMode = .none
        } else {
            targetSize = request.targetSize
            contentMode = request.contentMode
            resizeMode = request.resizeMode
            crop = request.normalizedCropRect == .full ? nil : request.normalizedCropRect
        }
    }

    /// Options that can be judged before the asset is known.
    static func check(_ request: ImageRequest) throws(RPCError) {
        if case .size(let width, let height) = request.targetSize, width < 1 || height < 1 {
            throw Refusal.invalidOptions.error(
                "targetSize is \(width) x \(height), and each side has at least one pixel; \"max\" is all there are",
                ["parameter": "targetSize"]
            )
        }
        guard let crop = request.normalizedCropRect else { return }
        guard request.resizeMode == .exact, request.targetSize != .maximum else {
            throw Refusal.invalidOptions.error(
                "normalizedCropRect needs resizeMode \"exact\" and a targetSize in pixels",
                ["parameter": "normalizedCropRect"]
            )
        }
        guard crop.isValid else {
            throw Refusal.invalidOptions.error(
                "normalizedCropRect must have an area and lie within the picture: x + width and y + height at most 1",
                ["parameter": "normalizedCropRect"]
            )
        }
    }

    /// The bytes that a version is made from (spec S-49).
    static func resource(of asset: AssetFacts, version: ImageVersion) throws(RPCError) -> AssetResource {
        let photo = asset.resource(.photo)
        let alternate = asset.resource(.alternatePhoto)
        let pair = [photo, alternate].compactMap { $0 }
        let chosen: AssetResource? =
            switch version {
            case .current: asset.resource(.fullSizePhoto) ?? pair.first { !$0.isRaw } ?? photo
            case .unadjusted: pair.first { !$0.isRaw } ?? photo
            case .original: pair.first(where: \.isRaw) ?? photo
            }
        guard let chosen else {
            throw Refusal.missingResource.error(
                "\(asset.id) is of the kind \(asset.mediaType.rawValue) and has no picture",
                ["asset": .string(asset.id.text), "mediaType": .string(asset.mediaType.rawValue)]
            )
        }
        return chosen
    }
}

extension AssetResource {
    /// A camera's raw data: every such type identifier says so by its ending.
    var isRaw: Bool { contentType.hasSuffix("raw-image") }
}
