import CMagickWand
import ImageFormats

/// Draws two images of equal height next to each other, for example before and after an edit.
public enum ComparisonImage {
    /// The gap between the two images in pixels.
    static let gap = 8

    /// Draws two images.
    ///
    /// - Parameters:
    ///   - maximumSide: the longest side of each image in pixels
    /// - Returns: a JPEG in sRGB, without metadata
    /// - Throws: `ImagingError`
    public static func render(
        _ before: [UInt8],
        _ after: [UInt8],
        maximumSide: Int,
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> RenderedImage {
        // A job is over the bytes of the second picture: what the first one does must not be blamed on them.
        ImagingLibrary.enter(.working)
        let first = try ImageProbe.header(of: before, limits: limits)
        ImagingLibrary.enter(.reading)
        let headers = (first, try ImageProbe.header(of: after, limits: limits))
        let fitting = [headers.0, headers.1].map {
            RenditionGeometry.fitted(($0.pixelWidth, $0.pixelHeight), maximumSide, maximumSide)
        }
        let height = min(fitting[0].height, fitting[1].height)
        ImagingLibrary.enter(.working)
        let left = try small(before, headers.0, height: height, most: maximumSide, limits: limits, isOther: true)
        ImagingLibrary.enter(.reading)
        let right = try small(after, headers.1, height: height, most: maximumSide, limits: limits, isOther: false)
        ImagingLibrary.enter(.working)
        let (width, place) = (left.width + gap + right.width, left.width + gap)
        try Decoder.setBackground(left, "white")
        try left.attempt("extending", MagickExtentImage(left.pointer, width, height, 0, 0))
        try left.attempt("joining", MagickCompositeImage(left.pointer, right.pointer, OverCompositeOp, place, 0))
        let bytes = try Encoder.encode(left, format: .jpeg, quality: 85)
        return RenderedImage(bytes: bytes, format: .jpeg, pixelWidth: width, pixelHeight: height, isUpscaled: false)
    }

    private static func small(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        height: Int,
        most: Int,
        limits: PixelLimits,
        isOther: Bool
    ) throws(ImagingError) -> Wand {
        let ratio = Double(header.pixelHeight) / Double(height)
        let eighths = header.kind == .jpeg ? DecodeScale.eighthsOfPreview(ratio: max(1, ratio)) : DecodeScale.full
        let wand = try Decoder.decode(bytes, header, eighths: eighths, scale: min(1, 2 / ratio), limits: limits)
        let width = min(most, max(1, Int((Double(header.pixelWidth) / ratio).rounded())))
        try wand.resize(width, height)
        try ColourProfile.convertToSRGB(wand, isOfRequest: isOther)
        try wand.attempt("preparing", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
        return wand
    }
}
