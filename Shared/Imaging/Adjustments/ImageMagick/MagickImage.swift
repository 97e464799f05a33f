import CMagickWand

/// An image that a plan needs besides the one that is edited: a table of colours or a mask.
///
/// The numbers come from the formulas of the fused pass, which are applied to a ramp, a cube or a uniform grey instead
/// of a photo. ImageMagick applies the result to the photo.
enum MagickImage {
    /// One row of values, in which each channel is looked up on its own.
    case ramp([AdjustmentColour.Step])
    /// One row with the values of one function, or of one for each channel.
    case functions([@Sendable (Double) -> Double])
    /// A HALD CLUT.
    case cube([AdjustmentColour.Step])
    /// The gains of a vignette, divided by the maximum.
    case gains(VignetteShape, width: Int, height: Int)
    /// The noise of a grain, around middle grey.
    case noise(AdjustmentColour.Step, width: Int, height: Int)
    /// A watermark.
    case mark(AdjustmentOverlay.Mark, opacity: Double)
    /// An image that was created beforehand.
    case prepared(MagickTable)

    /// The number of values of a ramp. Eight-bit values fall on entries, because 255 divides the number minus 1.
    /// Debian's policy for `convert` allows 16,000 pixels per side.
    static let rampCount = 255 * 62 + 1
    /// The level of the HALD CLUT: 64 points for each channel. The curves before and after it are exact in ramps, so
    /// the cube contains only mixtures of channels, which are almost linear between its points.
    static let level = 8
    /// The maximum side of a mask in pixels. It is enlarged to the size of the image.
    static let maskSide = 1024

    func makeWand() throws(ImagingError) -> Wand {
        switch self {
        case .prepared(let table): return try table.wand.copy()
        case .ramp(let steps):
            return try Self.changed(steps, Self.rampCount, 1) { index in
                let value = Self.scaled(index, Self.rampCount)
                return (value, value, value)
            }
        case .functions(let bodies):
            return try Self.changed([], Self.rampCount, 1) { index in
                let samples = bodies.map { body in
                    let value = body(Double(index) / Double(Self.rampCount - 1))
                    return UInt16((min(1, max(0, value)) * 65_535).rounded())
                }
                return (samples[0], samples[samples.count / 2], samples[samples.count - 1])
            }
        case .cube(let steps):
            return try Self.cube(of: Self.level * Self.level, steps)
        case .gains(let shape, let width, let height):
            let size = RenditionGeometry.fitted((width, height), Self.maskSide, Self.maskSide)
            let (maskWidth, maskHeight) = size.width < width ? size : (width, height)
            let grey = UInt16((65_535 / shape.maxGain).rounded())
            return try Self.changed([.vignette(shape)], maskWidth, maskHeight) { _ in (grey, grey, grey) }
        case .noise(let step, let width, let height):
            return try Self.changed([step], width, height) { _ in (32_768, 32_768, 32_768) }
        case .mark(let mark, let opacity):
            let wand = try Wand.blank(mark.width, mark.height)
            try wand.attempt("preparing", MagickSetImageAlphaChannel(wand.pointer, OpaqueAlphaChannel))
            try wand.withPixels { pixels, count in
                for index in 0..<4 * count {
                    let value = mark.pixels[index]
                    pixels[index] =
                        index % 4 == 3 ? UInt16((65_535 - opacity * Double(65_535 - value)).rounded()) : value
                }
            }
            wand.setDepth(16)
            return wand
        }
    }

    /// Returns an image of the points of a cube, in which red varies fastest, changed by steps.
    static func cube(of points: Int, _ steps: [AdjustmentColour.Step]) throws(ImagingError) -> Wand {
        let side = Int(Double(points).squareRoot().rounded())
        let width = side * side == points ? side * points : points
        return try changed(steps, width, points * points * points / width) { index in
            (
                scaled(index % points, points), scaled(index / points % points, points),
                scaled(index / (points * points), points)
            )
        }
    }

    /// Returns an index scaled to a 16-bit value.
    private static func scaled(_ index: Int, _ count: Int) -> UInt16 {
        UInt16((index * 65_535 + (count - 1) / 2) / (count - 1))
    }

    /// Returns an image of computed pixels, changed by steps.
    private static func changed(
        _ steps: [AdjustmentColour.Step],
        _ width: Int,
        _ height: Int,
        _ value: (Int) -> (UInt16, UInt16, UInt16)
    ) throws(ImagingError) -> Wand {
        let wand = try Wand.blank(width, height)
        try wand.withPixels { pixels, count in
            for index in 0..<count {
                let (red, green, blue) = value(index)
                pixels[4 * index] = blue
                pixels[4 * index + 1] = green
                pixels[4 * index + 2] = red
                pixels[4 * index + 3] = 0
            }
        }
        wand.setDepth(16)
        try AdjustmentColour(steps: steps).apply(to: wand)
        return wand
    }
}
