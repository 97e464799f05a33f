import Contracts
import ImageFormats
import Imaging
import JSONValue
import PhotoModel
import Storage

/// A rendition to render: its source and every option that can change a pixel.
///
/// Requests for the same pixels have equal plans, because options without effect are normalized.
struct RenditionPlan: Sendable, Hashable {
    /// SHA-256 of the resource. An edit has another digest, so a plan never finds the rendition of an earlier edit.
    var digest: String
    var targetSize: TargetSize
    var contentMode: ImageContentMode
    var resizeMode: ImageResizeMode
    /// The part of the displayed image; nil for all of it.
    var crop: UnitRect?
    var format: DeliveredFormat
    /// 1...100; 0 for lossless formats.
    var quality: Int
    /// The frame of a video; nil for a photo.
    var frame: VideoFrameChoice?
    /// The headroom for which high dynamic range is rendered, if the source has it; 0 for all of its headroom. Nil for
    /// standard range.
    var headroom: Double?
    /// Not compared.
    var requester = RenditionRequester()

    /// - Parameter limitedClient: the client if it does not see the whole library, else nil
    /// - Throws: `invalid_options` for options that contradict each other, `missing_resource` for an asset without an
    ///   image
    init(_ request: ImageRequest, of asset: AssetSummary, for limitedClient: String? = nil) throws(RPCError) {
        try Self.check(request)
        requester.limitedClient = limitedClient
        let resource = try Self.resource(of: asset, version: request.version)
        self.digest = resource.digest
        self.format = request.format
        self.quality = request.format == .png ? 0 : request.quality
        frame = try VideoFrameChoice(request.frameTime, of: resource)
        headroom = Self.headroom(request, of: resource)
        if request.targetSize == .maximum || request.resizeMode == .none {
            targetSize = .maximum
            contentMode = .aspectFit
            resizeMode = .none
        } else {
            targetSize = request.targetSize
            contentMode = request.contentMode
            resizeMode = request.resizeMode
            crop = request.normalizedCropRect == .full ? nil : request.normalizedCropRect
            normalizeResizeMode(of: resource)
        }
    }

    /// Chooses one resize mode where several give the same pixels, so that they share one cached image. A whole
    /// image that is scaled down to fit is the same in the modes `fast` and `exact`. An image that fits without scaling
    /// keeps all of its pixels in the mode `fast`.
    private mutating func normalizeResizeMode(of source: AssetResource) {
        // The frames of a video may have another size than its resource declares.
        guard case .size(let width, let height) = targetSize, contentMode == .aspectFit, crop == nil, !source.isVideo,
            source.pixelWidth > 0, source.pixelHeight > 0
        else { return }
        let scale = min(Double(width) / Double(source.pixelWidth), Double(height) / Double(source.pixelHeight))
        if scale < 1 {
            resizeMode = .fast
        } else if resizeMode == .fast {
            targetSize = .maximum
            resizeMode = .none
        }
    }

    /// Returns the headroom that can change the image: only an AVIF depends on that of the display.
    private static func headroom(_ request: ImageRequest, of resource: AssetResource) -> Double? {
        guard request.prefersHDR, !resource.isVideo else { return nil }
        switch request.format {
        case .avif: return request.targetHDRHeadroom < 1 ? 0 : request.targetHDRHeadroom
        case .jpeg: return 0
        case .png, .webp: return nil
        }
    }

    /// Checks the options that do not depend on the asset.
    static func check(_ request: ImageRequest) throws(RPCError) {
        if case .size(let width, let height) = request.targetSize, width < 1 || height < 1 {
            throw .emptyTargetSize(width: width, height: height)
        }
        guard let crop = request.normalizedCropRect else { return }
        guard request.resizeMode == .exact, request.targetSize != .maximum else {
            throw .cropNeedsExactSize
        }
        guard crop.isValid else {
            throw .invalidCrop
        }
    }

    /// Returns the resource that a version is rendered from (S-49): of a pair, the current version is the original that
    /// `asset.revert` chose (T-26), the unadjusted one the compressed file, and the original the RAW file.
    static func resource(of asset: AssetSummary, version: ImageVersion) throws(RPCError) -> AssetResource {
        let photo = asset.resource(.photo)
        let alternate = asset.resource(.alternatePhoto)
        let pair = [photo, alternate].compactMap { $0 }
        let video = asset.resource(.video)
        let chosen: AssetResource? =
            switch version {
            case .current: asset.resource(.fullSizePhoto) ?? photo ?? asset.resource(.fullSizeVideo) ?? video
            case .unadjusted: pair.first { !$0.isRaw } ?? photo ?? video
            case .original: pair.first(where: \.isRaw) ?? photo ?? video
            }
        guard let chosen else {
            throw .noImage(asset)
        }
        return chosen
    }
}

/// The requester of a rendition. All requesters are equal, so that they share the renditions of equal plans.
struct RenditionRequester: Sendable, Hashable {
    /// The identity if it does not see the whole library, else nil. Such an identity may use only a part of the queue,
    /// and does not learn which renditions are cached for others.
    var limitedClient: String?

    static func == (left: Self, right: Self) -> Bool { true }

    func hash(into hasher: inout Hasher) {}
}

extension RenditionPlan {
    /// The plan's options for `Imaging`.
    var options: RenditionOptions {
        get throws(ImagingError) {
            guard let format = ImageFormat(rawValue: format.rawValue) else {
                throw .invalidOptions("\(format.rawValue) cannot be encoded")
            }
            var options = RenditionOptions(
                target: targetSize,
                contentMode: contentMode,
                resizeMode: resizeMode,
                crop: crop,
                format: format,
                quality: max(1, quality)
            )
            options.dynamicRange = headroom.map { .init(headroom: $0 < 1 ? nil : $0) }
            return options
        }
    }
}

// MARK: - As JSON, and its key

extension RenditionPlan: JSONTabled {
    /// The encoding of a plan for workers. Its order of members is that of the canonical form, which ``RenditionKey``
    /// hashes.
    static let table = JSONTable(
        "RenditionPlan",
        "One image to render.",
        unknown: .refused,
        blank: RenditionPlan(),
        [
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the source."),
            .required("targetSize", \.targetSize, .targetSize, "Requested size in pixels."),
            .required("contentMode", \.contentMode, .name(ImageContentMode.self), "Fit or fill."),
            .required("resizeMode", \.resizeMode, .name(ImageResizeMode.self), "How exactly the size is met."),
            .optional("crop", \.crop, .object(UnitRect.self), "Part of the displayed image."),
            .required("format", \.format, .name(DeliveredFormat.self), "Format of the bytes."),
            .required("quality", \.quality, .count(0...100), "Quality of lossy formats."),
            .optional("frame", \.frame, .object(VideoFrameChoice.self), "Of a video: which frame."),
            .optional("headroom", \.headroom, .number(0...65_536), "For high dynamic range; 0 for all of it."),
        ]
    )

    private init() {
        digest = ""
        targetSize = .maximum
        contentMode = .aspectFit
        resizeMode = .none
        format = .jpeg
        quality = 0
    }
}

/// The cache key of a rendition: SHA-256 over the canonical JSON of everything that can change a pixel.
struct RenditionKey: Sendable, Hashable, CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    let text: String
    /// The hashed text; nil for a key read from a file name.
    let canonical: String?

    static let length = 64

    /// - Parameters:
    ///   - plan: the source and options of the rendition
    ///   - rendererVersion: the version of the rendering code; a new version never finds renditions of an older one
    init(_ plan: RenditionPlan, rendererVersion: String) {
        var object = plan.json.objectValue ?? [:]
        object["renderer"] = .string(rendererVersion)
        self.init(canonical: JSON.object(object).text)
    }

    /// Computes the key of the text in a cache file's header, to check that the file has the right name.
    init(canonical: String) {
        self.canonical = canonical
        self.text = ResourceDigest(of: Array(canonical.utf8)).text
    }

    /// Parses a key from a file name.
    init?(_ text: String) {
        guard text.utf8.count == Self.length,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        self.text = text
        self.canonical = nil
    }

    static func == (first: RenditionKey, second: RenditionKey) -> Bool { first.text == second.text }

    func hash(into hasher: inout Hasher) { hasher.combine(text) }

    var description: String { text }
}

// MARK: - Several plans

/// Images to render from one file.
struct RenditionBatch: Sendable, JSONTabled {
    var plans: [RenditionPlan]

    static let table = JSONTable(
        "RenditionPlans",
        "Images to render from one file.",
        unknown: .refused,
        blank: RenditionBatch(plans: []),
        [
            .required(
                "plans",
                \.plans,
                .list(of: .object(RenditionPlan.self), limit: RenditionProvider.batchSize),
                "One plan for each image."
            )
        ]
    )
}

extension AssetResource {
    /// True for a video.
    var isVideo: Bool { type == .video || type == .fullSizeVideo }
    /// True for camera raw data, whose type identifiers all end this way.
    var isRaw: Bool { contentType.hasSuffix("raw-image") }
}
