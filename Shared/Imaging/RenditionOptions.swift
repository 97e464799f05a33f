public import PhotoModel

/// What an image request asks for.
///
/// Source: rows S-40..S-44 and table 8.2.
public struct RenditionOptions: Sendable, Hashable {
    public enum Target: Sendable, Hashable {
        /// All pixels; the resize mode is ignored.
        case maximum
        /// Pixels.
        case size(width: Int, height: Int)
    }

    public enum ContentMode: String, Sendable, Hashable, CaseIterable {
        case aspectFit, aspectFill
    }

    public enum ResizeMode: String, Sendable, Hashable, CaseIterable {
        /// Full size, whatever the target.
        case none
        /// At least the target where the source has it, up to twice as large, whichever is cheapest. A JPEG is
        /// decoded at the smallest fraction that reaches the target. Never enlarged.
        case fast
        /// The target to the pixel; enlarged if need be.
        case exact
    }

    public var target: Target
    public var contentMode: ContentMode
    public var resizeMode: ResizeMode
    /// Cut out first, in units of the picture as displayed; needs the exact mode (D12).
    public var crop: UnitRect?
    public var format: ImageFormat
    /// 1...100, for JPEG and WebP.
    public var quality: Int

    public init(
        target: Target = .maximum,
        contentMode: ContentMode = .aspectFit,
        resizeMode: ResizeMode = .fast,
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

    /// The largest area that may be asked for.
    static let largestArea = 100_000_000

    func validate() throws(ImagingError) {
        guard format.canEncode else {
            throw .invalidOptions(
                "\(format.rawValue) cannot be written; ask for \(ImageFormat.encodableNames.joined(separator: ", "))"
            )
        }
        guard (1...100).contains(quality) else { throw .invalidOptions("quality is \(quality); give 1...100") }
        if case .size(let width, let height) = target {
            guard width > 0, height > 0 else {
                throw .invalidOptions("the target size is \(width) by \(height); both sides must be at least 1")
            }
            guard width <= 65_500, height <= 65_500 else {
                throw .invalidOptions("the target size is \(width) by \(height); a side may have 65500 pixels")
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

/// An encoded picture and its size.
public struct RenderedImage: Sendable, Hashable {
    public let bytes: [UInt8]
    public let format: ImageFormat
    public let pixelWidth: Int
    public let pixelHeight: Int
    /// Whether it has more pixels than the source had for this region.
    public let isUpscaled: Bool

    public init(bytes: [UInt8], format: ImageFormat, pixelWidth: Int, pixelHeight: Int, isUpscaled: Bool) {
        self.bytes = bytes
        self.format = format
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
        self.isUpscaled = isUpscaled
    }
}
