import ImageFormats

/// Limits on untrusted images, checked before a decoder reads any bytes.
public struct PixelLimits: Sendable, Hashable {
    /// Maximum number of pixels of a JPEG, which can be decoded at a fraction of its size. Default 250 million.
    public var jpegPixels = 250_000_000
    /// Maximum number of pixels of any other format. Default 100 million.
    public var pixels = 100_000_000
    /// Maximum number of pixels that are decoded into memory, at eight bytes each. Default 120 million.
    public var decodedPixels = 120_000_000
    /// The longest side in pixels. Default 65,500, the maximum of JPEG.
    public var side = 65_500
    /// Maximum number of frames of an animation. Default 1,000.
    public var frames = 1000
    /// Processor time of what is made of the picture, in seconds, as it is estimated.
    ///
    /// Default without a bound.
    public var seconds = Double.infinity

    public init() {}

    /// Returns the maximum number of pixels for a format.
    public func maximumPixels(_ format: ImageFormat) -> Int { format == .jpeg ? jpegPixels : pixels }

    func check(_ header: ImageHeader) throws(ImagingError) {
        let (width, height) = (header.pixelWidth, header.pixelHeight)
        guard width <= side, height <= side else { throw .tooLarge(width: width, height: height, limit: side) }
        let most = maximumPixels(ImageFormat(header.kind))
        let (count, overflowed) = width.multipliedReportingOverflow(by: height)
        guard !overflowed, count <= most else { throw .tooLarge(width: width, height: height, limit: most) }
        guard header.frameCount <= frames else {
            throw .undecodable(reason: "\(header.frameCount) frames, at most \(frames) are opened")
        }
    }
}

/// The properties of an image that can be determined without decoding it.
public struct ImageInfo: Sendable, Hashable {
    public let format: ImageFormat
    /// The width in pixels as displayed, with orientation applied.
    public let pixelWidth: Int
    /// The height in pixels as displayed, with orientation applied.
    public let pixelHeight: Int
    /// The EXIF orientation 1...8 as stored; 1 if there is none.
    ///
    /// Informational for HEIC, AVIF and JPEG XL, whose decoders apply the file's own orientation.
    public let orientation: Int
    /// The number of frames; at least 1.
    public let frameCount: Int
    /// True if the file may contain transparency.
    public let hasAlpha: Bool
    /// True if the file contains its end marker. An incomplete image is not rendered.
    public let isComplete: Bool
    /// True if `orientation` has to be applied to the decoded pixels; false if decoders apply it.
    public let obeysOrientation: Bool
}

/// Examines images without decoding them.
public enum ImageProbe {
    /// Reads the structure of an image and checks it against the limits. Decodes nothing.
    public static func info(
        of bytes: [UInt8],
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> ImageInfo {
        let header = try header(of: bytes, limits: limits)
        return ImageInfo(
            format: ImageFormat(header.kind),
            pixelWidth: header.pixelWidth,
            pixelHeight: header.pixelHeight,
            orientation: header.orientation,
            frameCount: header.frameCount,
            hasAlpha: header.hasAlpha,
            isComplete: header.isComplete,
            obeysOrientation: header.obeysOrientation
        )
    }

    static func header(of bytes: [UInt8], limits: PixelLimits) throws(ImagingError) -> ImageHeader {
        if RawDecoder.isCandidate(bytes), let header = RawDecoder.header(bytes) {
            try limits.check(header)
            return header
        }
        do {
            let header = try ImageHeader.read(bytes)
            try limits.check(header)
            return header
        } catch let failure as ImageHeader.Failure {
            switch failure {
            case .unsupported(let found): throw .unsupportedFormat(found: found, supported: ImageFormat.readableNames)
            case .truncated: throw .truncated
            case .invalid(let reason): throw .undecodable(reason: reason)
            }
        } catch let error as ImagingError {
            throw error
        } catch {
            throw .undecodable(reason: "unknown")
        }
    }
}
