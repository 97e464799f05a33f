public import ImageFormats

/// Limits on untrusted images, checked before a decoder reads any bytes.
public struct PixelLimits: Sendable, Hashable {
    /// Maximum number of pixels of a JPEG, which can be decoded at a fraction of its size. Default 250 million.
    public var jpegPixels = ImageBounds.jpegPixels
    /// Maximum number of pixels of any other format. Default 100 million.
    public var pixels = ImageBounds.pixels
    /// Maximum number of pixels that are decoded into memory, at eight bytes each. Default 120 million.
    public var decodedPixels = 120_000_000
    /// Maximum length of a side in pixels. Default 65,500, the maximum of JPEG.
    public var side = ImageBounds.side
    /// Maximum number of frames of an animation. Default 1,000.
    public var frames = ImageBounds.frames
    /// Maximum estimated processor time of the work after decoding, in seconds. Default no limit.
    public var seconds = Double.infinity

    public init() {}

    /// Returns the maximum number of pixels for a format.
    public func maximumPixels(_ format: ImageFormat) -> Int { format == .jpeg ? jpegPixels : pixels }

    func check(_ header: ImageHeader) throws(ImagingError) {
        let (width, height) = (header.pixelWidth, header.pixelHeight)
        guard width <= side, height <= side else { throw .tooLarge(width: width, height: height, limit: side) }
        let limit = maximumPixels(header.kind)
        let (count, overflowed) = width.multipliedReportingOverflow(by: height)
        guard !overflowed, count <= limit else { throw .tooLarge(width: width, height: height, limit: limit) }
        guard header.frameCount <= frames else {
            throw .tooMuchWork("the image has \(header.frameCount) frames, and at most \(frames) are opened")
        }
    }
}
