import CMagickWand
import CPixels
import Foundation
import PhotoModel
import ImageFormats

/// Draws watermarks: text in the built-in font, or an image that is embedded in the list, so that a render needs no
/// other files.
enum AdjustmentOverlay {
    static func apply(_ operation: Adjustment, to wand: borrowing Wand) throws(ImagingError) {
        let size = (width: wand.width, height: wand.height)
        guard let (mark, x, y) = try mark(operation, in: size) else { return }
        try wand.withPixels { pixels, _ in
            safelight_overlay(
                pixels,
                size.width,
                size.height,
                mark.pixels,
                mark.width,
                mark.height,
                x,
                y,
                Float(operation.number("opacity"))
            )
        }
    }

    /// Returns the watermark of an operation and its place; nil if there is nothing to draw.
    static func mark(
        _ operation: Adjustment,
        in size: (width: Int, height: Int)
    ) throws(ImagingError) -> (mark: Mark, x: Int, y: Int)? {
        let width = max(1, Int((operation.number("size") * Double(size.width)).rounded()))
        let mark =
            operation.kind == .textWatermark
            ? text(operation, width: width) : try image(operation.text("picture"), width: width)
        guard mark.width > 0, mark.height > 0 else { return nil }
        let margin = Int((operation.number("margin") * Double(min(size.width, size.height))).rounded())
        let (x, y) = place(operation.text("position"), mark, in: size, margin: margin)
        return (mark, x, y)
    }

    /// A watermark in ImageMagick's channel order: blue, green, red and opacity.
    struct Mark {
        var width: Int
        var height: Int
        var pixels: [UInt16]
    }

    static func place(
        _ position: String,
        _ mark: Mark,
        in size: (width: Int, height: Int),
        margin: Int
    ) -> (x: Int, y: Int) {
        let name = position.lowercased()
        let x =
            name.hasSuffix("left")
            ? margin : name.hasSuffix("right") ? size.width - mark.width - margin : (size.width - mark.width) / 2
        let y =
            name.hasPrefix("top")
            ? margin
            : name.hasPrefix("bottom") ? size.height - mark.height - margin : (size.height - mark.height) / 2
        return (x, y)
    }

    /// Renders text. The opacity of a pixel is its coverage by points of the font.
    private static func text(_ operation: Adjustment, width: Int) -> Mark {
        let points = BitmapFont.points(operation.text("text"))
        guard let right = points.map(\.x).max(), let left = points.map(\.x).min() else {
            return Mark(width: 0, height: 0, pixels: [])
        }
        let columns = right - left + 1
        var isSet = [Bool](repeating: false, count: columns * BitmapFont.height)
        for (x, y) in points { isSet[y * columns + x - left] = true }
        let size = Double(columns) / Double(width)
        let height = max(1, Int((Double(BitmapFont.height) / size).rounded(.up)))
        let colour = operation.text("colour").dropFirst()
        let number = UInt32(colour, radix: 16) ?? 0xFFFFFF
        let channels = [0, 8, 16].map { UInt16((number >> UInt32($0)) & 255) * 257 }
        var pixels = [UInt16](repeating: 65_535, count: 4 * width * height)
        // Four by four samples per pixel.
        let parts = 4
        for y in 0..<height {
            for x in 0..<width {
                var covered = 0
                for part in 0..<parts * parts {
                    let across = (Double(x) + (Double(part % parts) + 0.5) / Double(parts)) * size
                    let down = (Double(y) + (Double(part / parts) + 0.5) / Double(parts)) * size
                    let (column, row) = (Int(across), Int(down))
                    if column < columns, row < BitmapFont.height, isSet[row * columns + column] { covered += 1 }
                }
                let at = 4 * (y * width + x)
                for channel in 0..<3 { pixels[at + channel] = channels[channel] }
                pixels[at + 3] = UInt16(65_535 - 65_535 * covered / (parts * parts))
            }
        }
        return Mark(width: width, height: height, pixels: pixels)
    }

    private static func image(_ base64: String, width: Int) throws(ImagingError) -> Mark {
        guard let data = Data(base64Encoded: base64) else {
            throw .invalidOptions("the image of the watermark is not Base64")
        }
        var limits = PixelLimits()
        limits.pixels = 16_000_000
        limits.jpegPixels = limits.pixels
        let bytes = [UInt8](data)
        let header = try ImageProbe.header(of: bytes, limits: limits)
        guard header.kind == .png || header.kind == .jpeg else {
            throw .invalidOptions("the image of the watermark is neither PNG nor JPEG")
        }
        let wand = try Decoder.decode(bytes, header, eighths: DecodeScale.full, scale: 1, limits: limits)
        try ColourProfile.convertToSRGB(wand, isOfRequest: true)
        try wand.attempt("preparing", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
        let height = max(1, Int((Double(wand.height * width) / Double(wand.width)).rounded()))
        guard height <= 4 * 65_500 else { throw .invalidOptions("the image of the watermark is too narrow") }
        let isTransparent = wand.hasAlpha
        try wand.resize(width, height)
        var pixels: [UInt16] = []
        try wand.withPixels { source, count in
            pixels = Array(UnsafeBufferPointer(start: source, count: 4 * count))
        }
        if !isTransparent { for index in stride(from: 3, to: pixels.count, by: 4) { pixels[index] = 0 } }
        return Mark(width: width, height: height, pixels: pixels)
    }
}
