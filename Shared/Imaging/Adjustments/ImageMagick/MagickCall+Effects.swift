import CMagickWand

extension MagickCall {
    /// An effect of ImageMagick on one picture. Radii are standard deviations in pixels, unless stated otherwise.
    enum Effect {
        case blur(Double), adaptiveSharpen(Double), charcoal(Double), emboss(Double)
        /// The radius is that of the neighbourhood.
        case oilPaint(Double), edge(Double)
        case motionBlur(Double, angle: Double)
        case radialBlur(Double), swirl(Double), implode(Double), solarize(Double)
        /// The side of a square.
        case median(Int)
        case despeckle, equalize
        case posterize(Int)
        /// Shares of the pixels.
        case contrastStretch(black: Double, white: Double, pixels: Int)
        case colorize(String, Double), tint(String, Double)
        /// The colour and the width on each side.
        case border(String, Int), frame(String, Int)
        case modulate(brightness: Double, saturation: Double, hue: Double)
        case unsharpMask(Double, amount: Double, threshold: Double)
        case sketch(Double, angle: Double)
        /// The colour of the areas that appear beside the picture.
        case wave(Double, length: Double, String)
        case liquidRescale(from: (width: Int, height: Int), to: (width: Int, height: Int))
        case trim(fuzz: Double)
        case deskew(Double, String)
        case polaroid(angle: Double, String)
        case shadow(opacity: Double, radius: Double, offset: Int, String)
    }
}

extension MagickCall.Effect {
    /// The options of `convert`.
    var words: [String] {
        switch self {
        case .blur(let radius): ["-blur", "0x\(radius)"]
        case .adaptiveSharpen(let radius): ["-adaptive-sharpen", "0x\(radius)"]
        // It leaves a grey colour space, in which later calls could not draw colours.
        case .charcoal(let radius): ["-charcoal", "0x\(radius)", "-colorspace", "sRGB"]
        case .emboss(let radius): ["-emboss", "0x\(radius)"]
        case .oilPaint(let radius): ["-paint", "\(radius)"]
        case .edge(let radius): ["-edge", "\(radius)"]
        case .motionBlur(let radius, let angle): ["-motion-blur", "0x\(radius)\(angle < 0 ? "" : "+")\(angle)"]
        case .radialBlur(let angle): ["-radial-blur", "\(angle)"]
        case .swirl(let degrees): ["-swirl", "\(degrees)"]
        case .implode(let amount): ["-implode", "\(amount)"]
        case .solarize(let threshold): ["-solarize", "\(65_535 * threshold)"]
        case .median(let side): ["-statistic", "Median", "\(side)x\(side)"]
        case .despeckle: ["-despeckle"]
        case .equalize: ["-equalize"]
        case .posterize(let levels): ["+dither", "-posterize", "\(levels)"]
        case .contrastStretch(let black, let white, let pixels):
            ["-contrast-stretch", "\(black * Double(pixels))x\(white * Double(pixels))"]
        case .colorize(let colour, let share): ["-fill", colour, "-colorize", "\(100 * share)%"]
        case .tint(let colour, let share): ["-fill", colour, "-tint", "\(100 * share)%"]
        case .border(let colour, let width): ["-bordercolor", colour, "-border", "\(width)x\(width)"]
        case .frame(let colour, let width):
            ["-mattecolor", colour, "-frame", "\(width)x\(width)+\(Self.bevel(width))+\(Self.bevel(width))", "+repage"]
        default: pictureWords
        }
    }

    /// The width of the outer and the inner bevel.
    private static func bevel(_ width: Int) -> Int { width / 4 }

    /// Nanoseconds for each pixel, on a processor of 2020.
    var nanoseconds: Double {
        switch self {
        case .blur(let radius): 40 + 60 * radius
        case .adaptiveSharpen(let radius): 200 + 300 * radius * radius
        case .charcoal(let radius): 400 + 400 * radius
        case .emboss(let radius): 200 + 400 * radius * radius
        case .oilPaint(let radius): 200 + 60 * radius * radius
        case .edge(let radius): 100 + 80 * (radius + 1) * (radius + 1)
        case .motionBlur(let radius, _): 100 + 120 * radius
        case .radialBlur(let angle): 200 + 100 * angle
        case .median(let side): 200 + 300 * Double(side * side)
        case .despeckle: 800
        case .swirl, .implode: 200
        case .solarize, .posterize, .equalize, .contrastStretch, .colorize, .tint, .border, .frame: 60
        default: pictureNanoseconds
        }
    }

    /// Makes the effect.
    func apply(to wand: borrowing Wand) throws(ImagingError) {
        let pointer = wand.pointer
        switch self {
        case .blur(let radius): try wand.attempt("blurring", MagickBlurImage(pointer, 0, radius))
        case .adaptiveSharpen(let radius):
            try wand.attempt("sharpening", MagickAdaptiveSharpenImage(pointer, 0, radius))
        case .charcoal(let radius):
            try wand.attempt("drawing", MagickCharcoalImage(pointer, 0, radius))
            try wand.attempt("drawing", MagickTransformImageColorspace(pointer, sRGBColorspace))
        case .emboss(let radius): try wand.attempt("embossing", MagickEmbossImage(pointer, 0, radius))
        case .oilPaint(let radius): try wand.attempt("painting", MagickOilPaintImage(pointer, radius))
        case .edge(let radius): try wand.attempt("finding edges", MagickEdgeImage(pointer, radius))
        case .motionBlur(let radius, let angle):
            try wand.attempt("blurring", MagickMotionBlurImage(pointer, 0, radius, angle))
        case .radialBlur(let angle): try wand.attempt("blurring", MagickRotationalBlurImage(pointer, angle))
        case .swirl(let degrees): try wand.attempt("swirling", MagickSwirlImage(pointer, degrees))
        case .implode(let amount): try wand.attempt("imploding", MagickImplodeImage(pointer, amount))
        case .solarize(let threshold): try wand.attempt("solarizing", MagickSolarizeImage(pointer, 65_535 * threshold))
        case .median(let side):
            try wand.attempt("smoothing", MagickStatisticImage(pointer, MedianStatistic, side, side))
        case .despeckle: try wand.attempt("smoothing", MagickDespeckleImage(pointer))
        case .equalize: try wand.attempt("equalizing", MagickEqualizeImage(pointer))
        case .posterize(let levels): try wand.attempt("posterizing", MagickPosterizeImage(pointer, levels, MagickFalse))
        case .contrastStretch(let black, let white, let pixels):
            // The second number is that of the pixels below white.
            let (low, high) = (black * Double(pixels), Double(pixels) * (1 - white))
            try wand.attempt("stretching", MagickContrastStretchImage(pointer, low, high))
        case .colorize(let colour, let share):
            try withColours(wand, colour, "rgb(\(100 * share)%,\(100 * share)%,\(100 * share)%)") { colour, opacity in
                MagickColorizeImage(pointer, colour, opacity)
            }
        case .tint(let colour, let share):
            try withColours(wand, colour, "rgb(\(100 * share)%,\(100 * share)%,\(100 * share)%)") { colour, opacity in
                MagickTintImage(pointer, colour, opacity)
            }
        case .border(let colour, let width):
            try withColours(wand, colour, colour) { colour, _ in MagickBorderImage(pointer, colour, width, width) }
        case .frame(let colour, let width):
            let bevel = Self.bevel(width)
            try withColours(wand, colour, colour) { colour, _ in
                MagickFrameImage(pointer, colour, width, width, bevel, bevel)
            }
            MagickResetImagePage(pointer, "")
        default: try applyToPicture(wand)
        }
    }

    func withColours(
        _ wand: borrowing Wand,
        _ first: String,
        _ second: String,
        _ body: (OpaquePointer, OpaquePointer) -> MagickBooleanType
    ) throws(ImagingError) {
        guard let one = NewPixelWand() else { throw .undecodable(reason: "out of memory") }
        defer { DestroyPixelWand(one) }
        guard let other = NewPixelWand() else { throw .undecodable(reason: "out of memory") }
        defer { DestroyPixelWand(other) }
        PixelSetColor(one, first)
        PixelSetColor(other, second)
        try wand.attempt("colouring", body(one, other))
    }
}
