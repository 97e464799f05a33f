import CMagickWand
import CPixels
import Foundation
import ImageFormats
import PhotoModel

/// Draws watermarks: a line of text, or an image that is embedded in the list.
enum AdjustmentOverlay {
    /// Draws the watermark of an operation.
    ///
    /// - Parameter inDisplayP3: true if the colours of the image are those of Display P3, false for sRGB
    static func apply(
        _ operation: Adjustment,
        to wand: borrowing Wand,
        inDisplayP3: Bool = false
    ) throws(ImagingError) {
        guard let (mark, x, y) = try mark(operation, in: (wand.width, wand.height), inDisplayP3: inDisplayP3) else {
            return
        }
        try draw(mark, x: x, y: y, opacity: operation.number("opacity"), over: wand)
    }

    /// Draws a watermark with its upper left pixel at a position, which may be outside of the image.
    static func draw(
        _ mark: Mark,
        x: Int,
        y: Int,
        opacity: Double = 1,
        over wand: borrowing Wand
    ) throws(ImagingError) {
        let (width, height) = (wand.width, wand.height)
        try wand.withPixels { pixels, _ in
            safelight_overlay(pixels, width, height, mark.pixels, mark.width, mark.height, x, y, Float(opacity))
        }
    }

    /// Returns the watermark of an operation and its position; nil if there is nothing to draw.
    static func mark(
        _ operation: Adjustment,
        in size: (width: Int, height: Int),
        inDisplayP3: Bool
    ) throws(ImagingError) -> (mark: Mark, x: Int, y: Int)? {
        let width = max(1, Int((operation.number("size") * Double(size.width)).rounded()))
        let mark =
            operation.kind == .textWatermark
            ? try text(inDisplayP3 ? operation.inDisplayP3 : operation, width: width, height: size.height)
            : try image(operation.text("picture"), width: width, inDisplayP3: inDisplayP3)
        guard mark.width > 0, mark.height > 0 else { return nil }
        let margin = Int((operation.number("margin") * Double(min(size.width, size.height))).rounded())
        let (x, y) = origin(operation.text("position"), mark, in: size, margin: margin)
        return (mark, x, y)
    }

    /// A watermark in ImageMagick's channel order: blue, green, red and opacity.
    struct Mark {
        var width: Int
        var height: Int
        var pixels: [UInt16]

        init(width: Int, height: Int, pixels: [UInt16]) {
            self.width = width
            self.height = height
            self.pixels = pixels
        }

        /// Creates a line of text. The opacity of a pixel is its coverage.
        ///
        /// - Parameter colour: red, green and blue of eight bits each, red highest
        init(_ line: TextRenderer.Coverage, colour: UInt32) {
            self.init(width: line.width, height: line.height, pixels: [])
            let channels = [0, 8, 16].map { UInt16((colour >> UInt32($0)) & 255) * 257 }
            pixels.reserveCapacity(4 * line.pixels.count)
            for coverage in line.pixels {
                pixels += channels
                pixels.append(65_535 - 257 * UInt16(coverage))
            }
        }
    }

    /// Returns the upper left pixel of a watermark.
    private static func origin(
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

    private static func text(
        _ operation: Adjustment,
        width: Int,
        height: Int
    ) throws(ImagingError) -> Mark {
        guard let line = try TextRenderer.draw(operation.text("text"), width: width, height: height) else {
            return Mark(width: 0, height: 0, pixels: [])
        }
        return Mark(line, colour: UInt32(operation.text("colour").dropFirst(), radix: 16) ?? 0xFFFFFF)
    }

    private static func image(_ base64: String, width: Int, inDisplayP3: Bool) throws(ImagingError) -> Mark {
        guard let data = Data(base64Encoded: base64) else {
            throw .invalidOptions("the image of the watermark is not Base64")
        }
        let wand = try decoded([UInt8](data))
        try ColourProfile.convertToSRGB(wand, isOfRequest: true)
        try wand.attempt("preparing", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
        if inDisplayP3 {
            wand.setProfile(ColourProfile.sRGB)
            let profile = ColourProfile.displayP3
            try wand.attempt("converting", MagickProfileImage(wand.pointer, "icc", profile, profile.count))
        }
        let height = max(1, Int((Double(wand.height * width) / Double(wand.width)).rounded()))
        guard height <= ImageBounds.side, width * height <= PixelLimits().decodedPixels else {
            throw .tooMuchWork("the watermark would have \(width) by \(height) pixels; give a smaller size")
        }
        let hasAlpha = wand.hasAlpha
        try wand.resize(width, height)
        var pixels: [UInt16] = []
        try wand.withPixels { source, count in
            pixels = Array(UnsafeBufferPointer(start: source, count: 4 * count))
        }
        if !hasAlpha { for index in stride(from: 3, to: pixels.count, by: 4) { pixels[index] = 0 } }
        return Mark(width: width, height: height, pixels: pixels)
    }

    /// Decodes the image of a watermark. Its errors are attributed to the request, not to the photo.
    private static func decoded(_ bytes: [UInt8]) throws(ImagingError) -> Wand {
        var limits = PixelLimits()
        limits.pixels = 16_000_000
        limits.jpegPixels = limits.pixels
        do throws(ImagingError) {
            let header = try ImageProbe.header(of: bytes, limits: limits)
            guard header.kind == .png || header.kind == .jpeg else {
                throw .invalidOptions("it is neither PNG nor JPEG")
            }
            return try Decoder.decode(bytes, header, eighths: DecodeScale.full, scale: 1, limits: limits)
        } catch {
            throw .invalidOptions("the image of the watermark cannot be read: \(error.message)")
        }
    }
}
