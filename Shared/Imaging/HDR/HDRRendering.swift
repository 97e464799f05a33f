import CPixels
import Foundation
import ImageFormats

/// Renders images in high dynamic range with their gain maps.
enum HDRRendering {
    /// The luminance of white in standard range, in cd/m² (ITU-R BT.2408).
    static let whiteLuminance = 203.0

    /// Renders an image with its gain map: an AVIF with the gain applied, or a JPEG that contains the map.
    static func image(
        _ wand: borrowing Wand,
        _ map: GainMap,
        _ geometry: RenditionGeometry,
        _ options: RenditionOptions,
        _ range: RenditionOptions.DynamicRange
    ) throws(ImagingError) -> RenderedImage {
        var image: RenderedImage
        if options.format == .jpeg {
            let base = try RenditionRenderer.cropAndEncode(wand, geometry, options)
            image = try Self.image(base, with: map, try map.part(geometry, isEnlarged: false))
        } else {
            try wand.cropCentre(geometry.output)
            try Encoder.flatten(wand)
            let part = try map.part(geometry, isEnlarged: true)
            let samples = try samples(wand, part, map.metadata, display: range.headroom)
            image = RenderedImage(
                bytes: try AvifEncoder.encode(samples, quality: options.quality),
                format: .avif,
                pixelWidth: samples.width,
                pixelHeight: samples.height,
                isUpscaled: geometry.isUpscaled
            )
            image.headroom = min(range.headroom ?? .infinity, map.metadata.headroom)
        }
        return image
    }

    /// Adds a gain map to a JPEG.
    ///
    /// - Parameter part: the part of the map that the image shows
    static func image(
        _ image: RenderedImage,
        with map: GainMap,
        _ part: borrowing Wand
    ) throws(ImagingError) -> RenderedImage {
        guard let bytes = GainMapJPEG.file(image: image.bytes, map: try map.encoded(part), map.metadata) else {
            throw .encodingFailed("the description of the gain map does not fit into a segment")
        }
        var result = RenderedImage(
            bytes: bytes,
            format: image.format,
            pixelWidth: image.pixelWidth,
            pixelHeight: image.pixelHeight,
            isUpscaled: image.isUpscaled
        )
        result.headroom = map.metadata.headroom
        return result
    }

    /// 10-bit samples of red, green and blue in BT.2020 primaries with the transfer function PQ (SMPTE ST 2084).
    struct Samples {
        var values: [UInt16]
        let width: Int
        let height: Int
    }

    /// Applies a gain map to an image of the same size.
    ///
    /// - Parameters:
    ///   - image: an image with any colour profile; its colours are converted
    ///   - display: the headroom of the display, at least 1; nil for the full gain
    static func samples(
        _ image: borrowing Wand,
        _ map: borrowing Wand,
        _ metadata: GainMapMetadata,
        display: Double?
    ) throws(ImagingError) -> Samples {
        let toBT2020 = try convertPrimaries(of: image)
        let weight = display.map(metadata.weight(display:)) ?? 1
        // The curve of the image, and the gains of red, green and blue.
        var tables = Self.decode
        for channel in 0..<3 {
            tables += (0..<Self.steps).map {
                Float(exp2(weight * metadata.gain(Double($0) / Double(Self.steps - 1), channel: channel)))
            }
        }
        var parameters = safelight_gain()
        let offsets = (0..<3).map { metadata.channels[min($0, metadata.channels.count - 1)] }
        // Without any gain the result is the image, even if its offsets differ from each other.
        let factor = weight > 0 ? 1.0 : 0
        parameters.base_offset = triple(offsets.map { $0.baseOffset * factor })
        parameters.alternate_offset = triple(offsets.map { $0.alternateOffset * factor })
        withUnsafeMutableBytes(of: &parameters.matrix) { $0.copyBytes(from: toBT2020.flatMap(Self.bytes)) }
        let (width, height) = (image.width, image.height)
        var values = [UInt16](repeating: 0, count: 3 * width * height)
        let gains = try pixels(of: map)
        try image.withPixelsForReading { pixels, count in
            tables.withUnsafeBufferPointer { tables in
                Self.encode.withUnsafeBufferPointer { encode in
                    guard let first = tables.baseAddress, 4 * count == gains.count else { return }
                    parameters.decode = first
                    parameters.gain = (first + Self.steps, first + 2 * Self.steps, first + 3 * Self.steps)
                    parameters.encode = encode.baseAddress
                    safelight_apply_gain(pixels, gains, count, &parameters, &values)
                }
            }
        }
        return Samples(values: values, width: width, height: height)
    }

    private static func pixels(of map: borrowing Wand) throws(ImagingError) -> [UInt16] {
        var result: [UInt16] = []
        try map.withPixelsForReading { result = Array(UnsafeBufferPointer(start: $0, count: 4 * $1)) }
        return result
    }

    private static func triple(_ values: [Double]) -> (Float, Float, Float) {
        (Float(values[0]), Float(values[1]), Float(values[2]))
    }

    private static func bytes(_ value: Float) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

    // MARK: Curves

    /// The number of 16-bit values.
    private static let steps = 65_536

    /// The linear value of each encoded sRGB value.
    private static let decode: [Float] = (0..<steps).map(linear)

    /// Returns a linear value, by the inverse transfer function of sRGB (IEC 61966-2-1).
    private static func linear(_ value: Int) -> Float {
        let encoded = Double(value) / 65_535
        return Float(encoded <= 0.04045 ? encoded / 12.92 : pow((encoded + 0.055) / 1.055, 2.4))
    }

    /// The 10-bit values at the points of `safelight_gain.encode`.
    private static let encode: [UInt16] = (0..<UInt32(SAFELIGHT_CURVE_POINTS)).map(encoded)

    private static func encoded(_ point: UInt32) -> UInt16 {
        let bits: UInt32 = (UInt32(SAFELIGHT_CURVE_FIRST) + point) << 12
        // The middle of the range of numbers with these upper bits.
        let value = Float(bitPattern: bits | 1 << 11)
        return UInt16((1023 * pq(Double(value) * whiteLuminance)).rounded())
    }

    /// Returns the PQ signal, 0...1, of a luminance in cd/m² (ITU-R BT.2100, table 4).
    static func pq(_ luminance: Double) -> Double {
        let fraction: Double = min(max(luminance / 10_000, 0), 1)
        let power: Double = pow(fraction, 0.1593017578125)
        let upper: Double = 0.8359375 + 18.8515625 * power
        let lower: Double = 1 + 18.6875 * power
        return pow(upper / lower, 78.84375)
    }

    // MARK: Primaries

    /// Converts an image to primaries whose matrix is known, and returns that matrix.
    private static func convertPrimaries(of image: borrowing Wand) throws(ImagingError) -> [Float] {
        guard let profile = ColourProfile.profile(of: image), !ColourProfile.isSRGB(profile) else {
            try ColourProfile.convertToSRGB(image)
            return sRGBtoBT2020
        }
        if !ColourProfile.isDisplayP3(profile) { try ColourProfile.convert(image, to: ColourProfile.displayP3) }
        return displayP3toBT2020
    }

    /// Converts linear values from the primaries of BT.709 to those of BT.2020, both with white point D65 (ITU-R
    /// BT.2087).
    private static let sRGBtoBT2020: [Float] = [
        0.627404, 0.329283, 0.043313, 0.069097, 0.919540, 0.011362, 0.016391, 0.088013, 0.895595,
    ]

    /// Converts linear values from Display P3 (SMPTE EG 432-1) to BT.2020.
    private static let displayP3toBT2020: [Float] = [
        0.753833, 0.198597, 0.047570, 0.045744, 0.941777, 0.012479, -0.001210, 0.017602, 0.983609,
    ]
}
