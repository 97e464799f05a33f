import CMagickWand
import CPixels
import Foundation
import ImageFormats
import JSONValue
public import PhotoModel

/// Suggests operations that improve an image. They have explicit values, so that the stored list always renders the
/// same result.
public enum AutoEnhance {
    /// The maximum side of the image that is analysed, in pixels.
    static let side = 512

    /// Returns suggested operations for an image. The same bytes give the same suggestion.
    ///
    /// - Returns: levels, brightness, temperature, tint and vibrance, without neutral ones
    /// - Throws: `ImagingError`
    public static func suggest(
        for bytes: [UInt8],
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> [Adjustment] {
        let header = try ImageProbe.header(of: bytes, limits: limits)
        let longest = max(header.pixelWidth, header.pixelHeight)
        let eighths =
            header.kind == .jpeg && longest > side
            ? DecodeScale.eighthsOfPreview(ratio: Double(longest) / Double(side)) : DecodeScale.full
        let scale = min(1, 2 * Double(side) / Double(longest))
        let wand = try Decoder.decode(bytes, header, eighths: eighths, scale: scale, limits: limits)
        if longest > side {
            let size = RenditionGeometry.fitted((header.pixelWidth, header.pixelHeight), side, side)
            try wand.resize(size.width, size.height)
        }
        try ColourProfile.convertToSRGB(wand)
        try wand.attempt("preparing", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
        var counters = [UInt32](repeating: 0, count: 4 * 256)
        var count = 0
        try wand.withPixels { pixels, pixelCount in
            count = pixelCount
            safelight_compute_histogram(pixels, pixelCount, &counters)
        }
        return operations(for: counters, count: count)
    }

    /// Derives operations from the histograms of red, green, blue and brightness.
    static func operations(for counters: [UInt32], count: Int) -> [Adjustment] {
        let bright = Array(counters[768..<1024])
        func percentile(_ fraction: Double) -> Double {
            var remaining = fraction * Double(count)
            for (value, number) in bright.enumerated() {
                remaining -= Double(number)
                if remaining <= 0 { return Double(value) / 255 }
            }
            return 1
        }
        func mean(_ channel: Int) -> Double {
            let values = counters[256 * channel..<256 * (channel + 1)]
            let sum = values.enumerated().reduce(0.0) { $0 + Double($1.element) * ToneCurve.decodedBytes[$1.offset] }
            return sum / Double(count)
        }
        func rounded(_ value: Double) -> Double { (value * 1000).rounded() / 1000 }
        var operations: [Adjustment] = []
        func add(_ kind: AdjustmentKind, _ members: JSONObject) {
            guard let adjustment = try? Adjustment(kind, members), !adjustment.isNeutral else { return }
            operations.append(adjustment)
        }

        // Stretch the tones, but not those of images without any black or white.
        let (black, white) = (min(0.15, percentile(0.002)), max(0.75, percentile(0.998)))
        add(.levels, ["black": .double(rounded(black)), "white": .double(rounded(min(1, white)))])
        // Move the median halfway to middle grey.
        let middle = min(0.95, max(0.05, (percentile(0.5) - black) / (white - black)))
        let brightness = -log2Ratio(of: middle, to: 0.46) / 2
        add(.brightness, ["value": .double(rounded(min(0.5, max(-0.4, brightness))))])
        // Move the mean a third of the way to grey, because many images have a colour cast on purpose.
        let (red, green, blue) = (max(mean(0), 1e-4), max(mean(1), 1e-4), max(mean(2), 1e-4))
        let warmth = log2(blue / red) / 3
        add(.temperature, ["value": .double(rounded(min(0.2, max(-0.2, warmth))))])
        let tint = log2(green / (red * blue).squareRoot()) * 2 / 3
        add(.tint, ["value": .double(rounded(min(0.1, max(-0.1, tint))))])
        add(.vibrance, ["value": 0.15])
        return operations
    }

    /// Returns the log2 of the exponent that maps one middle tone to another; its negative is the value of the
    /// operation brightness.
    private static func log2Ratio(of value: Double, to target: Double) -> Double {
        log2(log2(target) / log2(value))
    }
}
