import CMagickWand
import ImageFormats

/// Draws the images before and after an edit next to each other at the same height, with or without labels.
public enum ComparisonImage {
    /// The gap between the two images in pixels.
    static let gap = 8
    /// The height of the labels below the images in pixels.
    static let labelHeight = 24

    /// Draws two images.
    ///
    /// - Parameters:
    ///   - maximumSide: the maximum side of each image in pixels
    ///   - isLabelled: true to write "before" and "after" below them
    /// - Returns: a JPEG in sRGB, without metadata
    /// - Throws: `ImagingError`
    public static func render(
        _ before: [UInt8],
        _ after: [UInt8],
        maximumSide: Int,
        isLabelled: Bool = false,
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> RenderedImage {
        // The job is attributed to the bytes of the second image, so a crash by the first one must not be attributed
        // to them.
        ImagingLibrary.enter(.working)
        let first = try ImageProbe.header(of: before, limits: limits)
        ImagingLibrary.enter(.reading)
        let headers = (first, try ImageProbe.header(of: after, limits: limits))
        let fitting = [headers.0, headers.1].map {
            RenditionGeometry.fitted(($0.pixelWidth, $0.pixelHeight), maximumSide, maximumSide)
        }
        let height = min(fitting[0].height, fitting[1].height)
        ImagingLibrary.enter(.working)
        let left = try reduced(before, headers.0, height: height, maxWidth: maximumSide, limits: limits, isOther: true)
        ImagingLibrary.enter(.reading)
        let right = try reduced(after, headers.1, height: height, maxWidth: maximumSide, limits: limits, isOther: false)
        ImagingLibrary.enter(.working)
        let (width, rightX) = (left.width + gap + right.width, left.width + gap)
        try Decoder.setBackground(left, "white")
        let total = height + (isLabelled ? labelHeight : 0)
        try left.attempt("extending", MagickExtentImage(left.pointer, width, total, 0, 0))
        try left.attempt("joining", MagickCompositeImage(left.pointer, right.pointer, OverCompositeOp, rightX, 0))
        if isLabelled {
            try drawLabel("before", at: 0, on: left)
            try drawLabel("after", at: rightX, on: left)
        }
        let bytes = try Encoder.encode(left, format: .jpeg, quality: 85)
        return RenderedImage(bytes: bytes, format: .jpeg, pixelWidth: width, pixelHeight: total, isUpscaled: false)
    }

    private static func drawLabel(_ word: String, at x: Int, on wand: borrowing Wand) throws(ImagingError) {
        guard let line = try TextRenderer.draw(word, size: 16) else { return }
        let mark = AdjustmentOverlay.Mark(line, colour: 0x303030)
        try AdjustmentOverlay.draw(mark, x: x + 2, y: wand.height - 8 - line.top, over: wand)
    }

    /// Returns an image in sRGB, scaled down to a height.
    private static func reduced(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        height: Int,
        maxWidth: Int,
        limits: PixelLimits,
        isOther: Bool
    ) throws(ImagingError) -> Wand {
        let ratio = Double(header.pixelHeight) / Double(height)
        let eighths = header.kind == .jpeg ? DecodeScale.eighthsOfPreview(ratio: max(1, ratio)) : DecodeScale.full
        let wand = try Decoder.decode(bytes, header, eighths: eighths, scale: min(1, 2 / ratio), limits: limits)
        let width = min(maxWidth, max(1, Int((Double(header.pixelWidth) / ratio).rounded())))
        try wand.resize(width, height)
        try ColourProfile.convertToSRGB(wand, isOfRequest: isOther)
        try wand.attempt("preparing", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
        return wand
    }
}
