public import ImageFormats
public import PhotoModel

/// The options of an image request (S-40 to S-44).
public struct RenditionOptions: Sendable, Hashable {
    public var target: TargetSize
    public var contentMode: ImageContentMode
    public var resizeMode: ImageResizeMode
    /// The region to crop to first, as fractions of the displayed image; requires the exact mode (D12).
    public var crop: UnitRect?
    /// The format of the result.
    public var format: ImageFormat
    /// 1...100, for JPEG, WebP and AVIF.
    public var quality: Int
    /// High dynamic range, if the image has a gain map and the format supports it: the gain is applied to an AVIF, and
    /// a JPEG contains the map. Nil for standard range.
    public var dynamicRange: DynamicRange?

    /// The displays for which an image in high dynamic range is rendered.
    public struct DynamicRange: Sendable, Hashable {
        /// The ratio of the maximum luminance to that of white in standard range, at least 1; nil for the full gain.
        public var headroom: Double?

        public init(headroom: Double? = nil) { self.headroom = headroom }
    }

    public init(
        target: TargetSize = .maximum,
        contentMode: ImageContentMode = .aspectFit,
        resizeMode: ImageResizeMode = .fast,
        crop: UnitRect? = nil,
        format: ImageFormat = .jpeg,
        quality: Int = 85
    ) {
        self.target = target
        self.contentMode = contentMode
        self.resizeMode = resizeMode
        self.crop = crop
        self.format = format
        self.quality = quality
    }

    /// The maximum area of a requested image, in pixels.
    static let maxArea = 100_000_000

    func validate() throws(ImagingError) {
        guard format.canEncode else {
            throw .invalidOptions(
                "\(format.rawValue) cannot be encoded; use one of \(ImageFormat.encodableNames.joined(separator: ", "))"
            )
        }
        guard (1...100).contains(quality) else { throw .invalidOptions("quality is \(quality); give 1...100") }
        if case .size(let width, let height) = target {
            guard width > 0, height > 0 else {
                throw .invalidOptions("the target size is \(width) by \(height); both sides must be at least 1")
            }
            guard width <= 65_500, height <= 65_500 else {
                throw .invalidOptions("the target size is \(width) by \(height); a side may have at most 65500 pixels")
            }
        }
        if let crop {
            guard crop.isValid else {
                throw .invalidOptions("the crop rectangle must have an area and lie within 0...1 in both directions")
            }
            guard resizeMode == .exact else {
                throw .invalidOptions("a crop rectangle needs resizeMode \"exact\"")
            }
        }
    }
}

/// An encoded image and its size.
public struct RenderedImage: Sendable, Hashable {
    /// The encoded file.
    public let bytes: [UInt8]
    public let format: ImageFormat
    /// Pixels as displayed; the orientation is already applied.
    public let pixelWidth: Int
    public let pixelHeight: Int
    /// True if it has more pixels than the source has for this region.
    public let isUpscaled: Bool
    /// The headroom for which it was rendered in high dynamic range, above 1; nil for standard range.
    public var headroom: Double?

    public init(bytes: [UInt8], format: ImageFormat, pixelWidth: Int, pixelHeight: Int, isUpscaled: Bool) {
        self.bytes = bytes
        self.format = format
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
        self.isUpscaled = isUpscaled
    }
}
