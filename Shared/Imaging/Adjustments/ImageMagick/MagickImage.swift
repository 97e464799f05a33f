import CMagickWand

/// A picture that a plan needs besides the one that is edited: a table of colours or a mask.
///
/// The numbers come from the same formulas as in the fused pass, applied to a ramp, a cube or an even grey in place of
/// a photograph. ImageMagick applies the result to the photograph.
enum MagickImage {
    /// One row: the values of each channel on its own.
    case ramp([AdjustmentColour.Step])
    /// One row of a function, or of one for each channel.
    case functions([@Sendable (Double) -> Double])
    /// A HALD CLUT.
    case cube([AdjustmentColour.Step])
    /// The gains of a vignette, divided by the largest.
    case gains(VignetteShape, width: Int, height: Int)
    /// The noise of a grain, around middle grey.
    case noise(AdjustmentColour.Step, width: Int, height: Int)
    case mark(AdjustmentOverlay.Mark, opacity: Double)
    /// A picture that was created beforehand.
    case made(MagickTable)

    /// The values of a ramp. Values of eight bits fall on entries, because 255 divides the number less 1; Debian's
    /// policy for `convert` allows 16,000 pixels a side.
    static let rampCount = 255 * 62 + 1
    /// The level of the HALD CLUT: 64 points for each channel. The curves before and after are exact in ramps, so the
    /// cube holds only mixtures of channels, which are close to linear between its points.
    static let level = 8
    /// The longest side of a mask that is enlarged to the picture, in pixels.
    static let maskSide = 1024

    func wand() throws(ImagingError) -> Wand {
        switch self {
        case .made(let table): return try table.wand.copy()
        case .ramp(let steps):
            return try Self.changed(steps, Self.rampCount, 1) { index in
                let value = Self.spread(index, Self.rampCount)
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
            let (across, down) = size.width < width ? size : (width, height)
            let grey = UInt16((65_535 / shape.largestGain).rounded())
            return try Self.changed([.vignette(shape)], across, down) { _ in (grey, grey, grey) }
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
            wand.noteDepth(16)
            return wand
        }
    }

    /// Returns a picture of the points of a cube, red changing fastest, changed by steps.
    static func cube(of points: Int, _ steps: [AdjustmentColour.Step]) throws(ImagingError) -> Wand {
        let side = Int(Double(points).squareRoot().rounded())
        let width = side * side == points ? side * points : points
        return try changed(steps, width, points * points * points / width) { index in
            (
                spread(index % points, points), spread(index / points % points, points),
                spread(index / (points * points), points)
            )
        }
    }

    /// Returns an index as a value of sixteen bits.
    private static func spread(_ index: Int, _ count: Int) -> UInt16 {
        UInt16((index * 65_535 + (count - 1) / 2) / (count - 1))
    }

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
        wand.noteDepth(16)
        try AdjustmentColour(steps: steps).apply(to: wand)
        return wand
    }
}
