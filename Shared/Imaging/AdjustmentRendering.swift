import CMagickWand
import CPixels
import Foundation
public import PhotoModel
import PictureFormats

/// Renders an adjustment list from the original bytes.
///
/// Sources: rows S-85..S-92, DESIGN.md section 5.
///
/// Geometry is composed into one resampling (none at all for crops, quarter turns and flips), colour into one pass on
/// 16-bit pixels. Colour operations act on each pixel alone, so they may come last, where pixels are fewest.
public enum AdjustmentRendering {
    /// Renders the list.
    ///
    /// The result is upright and holds no metadata; `MetadataWriter.transfer` in the room Metadata adds what is to be
    /// kept. Without colour operations the pixels stay in the picture's own colour space and its profile is embedded;
    /// with them the result is sRGB.
    ///
    /// - Parameters:
    ///   - bytes: The original.
    ///   - list: What to do. A neutral list gives the original pixels encoded again.
    ///   - format: A format that can be written.
    ///   - quality: 1...100 for JPEG and WebP.
    ///   - maximumSide: For a preview: neither side gets longer than this many pixels, and no more is decoded than
    ///     it needs.
    ///   - limits: Bounds on the original.
    /// - Returns: The encoded picture.
    /// - Throws: `ImagingError`.
    public static func render(
        _ bytes: [UInt8],
        _ list: AdjustmentList,
        format: ImageFormat = .jpeg,
        quality: Int = 92,
        maximumSide: Int? = nil,
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> RenderedImage {
        let side = maximumSide ?? format.longestSide
        try RenditionOptions(target: .size(width: side, height: side), format: format, quality: quality).validate()
        let header = try Picture.header(of: bytes, limits: limits)
        let geometry = AdjustmentGeometry(list.operations, width: header.pixelWidth, height: header.pixelHeight)
        let colour = AdjustmentColour(list.operations)

        let full = (width: geometry.width, height: geometry.height)
        let longest = min(side, format.longestSide)
        let output = max(full.width, full.height) > longest ? RenditionPlan.fitted(full, longest, longest) : full
        let scale = max(Double(output.width) / Double(full.width), Double(output.height) / Double(full.height))
        let isSmaller = output != full
        let eighths = isSmaller && header.kind == .jpeg ? DecodeScale.eighths(ratio: 1 / scale) : DecodeScale.full
        var wand = try Decoder.decode(
            bytes,
            header,
            eighths: eighths,
            scale: isSmaller ? 2 * scale : 1,
            limits: limits
        )
        let isCMYK = MagickGetImageColorspace(wand.pointer) == CMYKColorspace
        if isCMYK { try ColourProfile.convertToSRGB(wand) }
        if !geometry.isStraightened {
            try moveWithoutLoss(wand, geometry, header)
            try wand.resize(output.width, output.height)
        } else {
            let across = max(1, Int((Double(header.pixelWidth) * scale).rounded()))
            let down = max(1, Int((Double(header.pixelHeight) * scale).rounded()))
            if isSmaller { try wand.resize(across, down) }
            wand = try resampled(wand, geometry, header, output)
        }
        if !colour.steps.isEmpty {
            try ColourProfile.convertToSRGB(wand)
            try wand.attempt("preparing", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
            try colour.apply(to: wand)
        }
        let data = try Encoder.encode(
            wand,
            format: format,
            quality: quality,
            keepsProfile: colour.steps.isEmpty,
            keepsDepth: true
        )
        return RenderedImage(
            bytes: data,
            format: format,
            pixelWidth: wand.width,
            pixelHeight: wand.height,
            isUpscaled: false
        )
    }

    /// Crops, turns and flips by whole pixels.
    private static func moveWithoutLoss(
        _ wand: borrowing Wand,
        _ geometry: AdjustmentGeometry,
        _ header: PictureHeader
    ) throws(ImagingError) {
        let shown = geometry.shown
        let (fullWidth, fullHeight) = (Double(header.pixelWidth), Double(header.pixelHeight))
        let unit = UnitRect(
            x: Double(shown.x) / fullWidth,
            y: Double(shown.y) / fullHeight,
            width: Double(shown.width) / fullWidth,
            height: Double(shown.height) / fullHeight
        )
        try wand.crop(RenditionPlan.pixels(of: unit, width: wand.width, height: wand.height))
        try wand.obey(orientation: geometry.orientation)
    }

    /// A new picture of the output's size, each pixel taken from the source by the map.
    private static func resampled(
        _ source: borrowing Wand,
        _ geometry: AdjustmentGeometry,
        _ header: PictureHeader,
        _ output: (width: Int, height: Int)
    ) throws(ImagingError) -> Wand {
        let map = geometry.scaled(
            source: (
                Double(source.width) / Double(header.pixelWidth), Double(source.height) / Double(header.pixelHeight)
            ),
            result: (Double(output.width) / Double(geometry.width), Double(output.height) / Double(geometry.height))
        )
        let result = try source.copy()
        try result.attempt("extending", MagickExtentImage(result.pointer, output.width, output.height, 0, 0))
        MagickResetImagePage(result.pointer, "")
        let (width, height) = (source.width, source.height)
        let hasAlpha: Int32 = source.hasAlpha ? 1 : 0
        var failure: ImagingError?
        try source.withPixels { from, _ in
            do throws(ImagingError) {
                try result.withPixels { to, _ in
                    safelight_resample(
                        from,
                        width,
                        height,
                        to,
                        output.width,
                        output.height,
                        map,
                        hasAlpha,
                        lanczos
                    )
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return result
    }

    /// The taps of a three-lobed Lanczos filter for each phase, each row summing to 1.
    private static let lanczos: [Float] = (0...Int(SAFELIGHT_LANCZOS_PHASES)).flatMap { phase in
        let taps = (0..<Int(SAFELIGHT_LANCZOS_TAPS)).map { tap in
            let x = Double(phase) / Double(SAFELIGHT_LANCZOS_PHASES) + 2 - Double(tap)
            if abs(x) < 1e-9 { return 1.0 }
            return abs(x) >= 3 ? 0 : 3 * sin(.pi * x) * sin(.pi * x / 3) / (.pi * .pi * x * x)
        }
        let sum = taps.reduce(0, +)
        return taps.map { Float($0 / sum) }
    }
}
