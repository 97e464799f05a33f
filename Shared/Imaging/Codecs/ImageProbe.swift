public import ImageFormats

/// The properties of an image that can be determined without decoding it.
public struct ImageInfo: Sendable, Hashable {
    public let format: ImageFormat
    /// The width in pixels as displayed, with orientation applied.
    public let pixelWidth: Int
    /// The height in pixels as displayed, with orientation applied.
    public let pixelHeight: Int
    /// The EXIF orientation 1...8 as stored; 1 if there is none.
    ///
    /// It is only informational for HEIC, AVIF and JPEG XL, whose decoders apply the file's own orientation.
    public let orientation: Int
    /// The number of frames; at least 1.
    public let frameCount: Int
    /// True if the file may contain transparency.
    public let hasAlpha: Bool
    /// True if the file contains its end marker. An incomplete image is not rendered.
    public let isComplete: Bool
    /// True if `orientation` has to be applied to the decoded pixels; false if decoders apply it.
    public let needsOrientation: Bool
}

/// Examines images without decoding them.
public enum ImageProbe {
    /// Reads the structure of an image and checks it against the limits, without decoding it.
    public static func info(
        of bytes: [UInt8],
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> ImageInfo {
        let header = try header(of: bytes, limits: limits)
        return ImageInfo(
            format: header.kind,
            pixelWidth: header.pixelWidth,
            pixelHeight: header.pixelHeight,
            orientation: header.orientation,
            frameCount: header.frameCount,
            hasAlpha: header.hasAlpha,
            isComplete: header.isComplete,
            needsOrientation: header.needsOrientation
        )
    }

    static func header(of bytes: [UInt8], limits: PixelLimits) throws(ImagingError) -> ImageHeader {
        if RawDecoder.isCandidate(bytes), let header = RawDecoder.header(bytes) {
            try limits.check(header)
            return header
        }
        let header: ImageHeader
        do throws(ImageHeader.Failure) { header = try ImageHeader.read(bytes) } catch { throw ImagingError(error) }
        try limits.check(header)
        return header
    }
}
