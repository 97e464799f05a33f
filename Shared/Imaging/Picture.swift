import PictureFormats

/// Bounds on pictures from strangers, checked before a decoder sees a byte.
public struct PixelLimits: Sendable, Hashable {
    /// Pixels of a JPEG, which can be decoded at a fraction of its size.
    ///
    /// Default 250 million.
    public var jpegPixels = 250_000_000
    /// Pixels of any other format.
    ///
    /// Default 100 million.
    public var pixels = 100_000_000
    /// Pixels of a raster that is really held in memory, eight bytes each.
    ///
    /// Default 120 million.
    public var decodedPixels = 120_000_000
    /// The longest side.
    ///
    /// Default 65,500, what a JPEG can hold.
    public var side = 65_500
    /// Frames of an animation.
    ///
    /// Default 1,000.
    public var frames = 1000
    /// Processor time of what is made of the picture, in seconds, as it is estimated.
    ///
    /// Default without a bound.
    public var seconds = Double.infinity

    public init() {}

    /// The pixels that a picture of this format may have.
    public func maximumPixels(_ format: ImageFormat) -> Int { format == .jpeg ? jpegPixels : pixels }

    func check(_ header: PictureHeader) throws(ImagingError) {
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

/// What a picture is, without decoding it.
public struct PictureInfo: Sendable, Hashable {
    public let format: ImageFormat
    /// Pixels across as displayed, orientation applied.
    public let pixelWidth: Int
    /// Pixels down as displayed, orientation applied.
    public let pixelHeight: Int
    /// EXIF 1...8 as stored, 1 where there is none.
    ///
    /// For HEIC and AVIF decoders turn the pixels by the file's own transformations instead and this number is only
    /// told.
    public let orientation: Int
    public let frameCount: Int
    public let hasAlpha: Bool
    /// Whether the file reaches its own end mark.
    ///
    /// An incomplete picture is not rendered.
    public let isComplete: Bool
    /// Whether whoever shows the pixels has to turn them by `orientation`; false where decoders do so by themselves.
    public let obeysOrientation: Bool
}

/// Looks at pictures.
public enum Picture {
    /// Reads the structure of a picture and checks it against the limits; decodes nothing.
    public static func info(
        of bytes: [UInt8],
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> PictureInfo {
        let header = try header(of: bytes, limits: limits)
        return PictureInfo(
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

    static func header(of bytes: [UInt8], limits: PixelLimits) throws(ImagingError) -> PictureHeader {
        if RawDecoder.isCandidate(bytes), let header = RawDecoder.header(bytes) {
            try limits.check(header)
            return header
        }
        do {
            let header = try PictureHeader.read(bytes)
            try limits.check(header)
            return header
        } catch let failure as PictureHeader.Failure {
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
