import CMagickWand
import Foundation

extension MagickCall {
    /// An effect of ImageMagick on one image. Radii are standard deviations in pixels, unless stated otherwise.
    enum Effect {
        case blur(Double), adaptiveSharpen(Double), charcoal(Double), emboss(Double)
        /// Effects whose radius is that of the neighbourhood.
        case oilPaint(Double), edge(Double)
        case motionBlur(Double, angle: Double)
        case radialBlur(Double), swirl(Double), implode(Double), solarize(Double)
        /// The side of a square in pixels.
        case median(Int)
        case despeckle, equalize
        case posterize(Int)
        /// Fractions of the pixels.
        case contrastStretch(black: Double, white: Double, pixels: Int)
        case colorize(String, Double), tint(String, Double)
        /// The colour, and the width on each side in pixels.
        case border(String, Int), frame(String, Int)
        case modulate(brightness: Double, saturation: Double, hue: Double)
        case unsharpMask(Double, amount: Double, threshold: Double)
        case sketch(Double, angle: Double)
        /// The colour of the areas that appear beside the image.
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
        // The result has a grey colour space, in which later calls could not draw colours.
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
        case .colorize(let colour, let amount): ["-fill", colour, "-colorize", "\(100 * amount)%"]
        case .tint(let colour, let amount): ["-fill", colour, "-tint", "\(100 * amount)%"]
        case .border(let colour, let width): ["-bordercolor", colour, "-border", "\(width)x\(width)"]
        case .frame(let colour, let width):
            ["-mattecolor", colour, "-frame", "\(width)x\(width)+\(Self.bevel(width))+\(Self.bevel(width))", "+repage"]
        case .modulate(let brightness, let saturation, let hue):
            // In the number format of MagickWand: `convert` parses longer numbers differently.
            ["-modulate", String(format: "%g,%g,%g", 100 * brightness, 100 * saturation, 100 + hue / 1.8)]
        case .unsharpMask(let radius, let amount, let threshold): ["-unsharp", "0x\(radius)+\(amount)+\(threshold)"]
        case .sketch(let radius, let angle):
            ["-seed", "\(Self.seed)", "-sketch", "0x\(radius)\(Self.signed(angle))"]
        default: resizingWords
        }
    }

    /// The seed of the strokes of a sketch, so that the same image always has the same strokes.
    private static let seed: UInt = 1

    private static func signed(_ number: Double) -> String { number < 0 ? "\(number)" : "+\(number)" }

    /// The width of the outer and the inner bevel.
    private static func bevel(_ width: Int) -> Int { width / 4 }

    /// The estimated nanoseconds per pixel, on a processor of 2020.
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
        case .modulate: 120
        case .unsharpMask(let radius, _, _): 100 + 80 * radius
        case .sketch(let radius, _): 500 + 400 * radius
        default: resizingNanoseconds
        }
    }

    /// The maximum number of images of the input's size that the effect has in memory, in addition to the input.
    var extraImages: Int {
        switch self {
        // The strokes are drawn at twice the size.
        case .sketch: 14
        case .liquidRescale: 8
        case .polaroid: 6
        case .shadow, .deskew: 4
        case .wave: 2
        default: 1
        }
    }

    /// Carries out the effect.
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
        case .colorize(let colour, let amount):
            try withColours(wand, colour, Self.percentages(amount)) { colour, opacity in
                MagickColorizeImage(pointer, colour, opacity)
            }
        case .tint(let colour, let amount):
            try withColours(wand, colour, Self.percentages(amount)) { colour, opacity in
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
        case .modulate(let brightness, let saturation, let hue):
            try wand.attempt(
                "modulating",
                MagickModulateImage(pointer, 100 * brightness, 100 * saturation, 100 + hue / 1.8)
            )
        case .unsharpMask(let radius, let amount, let threshold):
            try wand.attempt("sharpening", MagickUnsharpMaskImage(pointer, 0, radius, amount, threshold))
        case .sketch(let radius, let angle):
            SetRandomSecretKey(Self.seed)
            try wand.attempt("sketching", MagickSketchImage(pointer, 0, radius, angle))
        default: try applyResizing(wand)
        }
    }

    /// Returns a colour whose three channels are an amount.
    private static func percentages(_ amount: Double) -> String {
        let percent = 100 * amount
        return "rgb(\(percent)%,\(percent)%,\(percent)%)"
    }

    /// Calls `body` with two colours for MagickWand.
    func withColours(
        _ wand: borrowing Wand,
        _ first: String,
        _ second: String,
        _ body: (OpaquePointer, OpaquePointer) -> MagickBooleanType
    ) throws(ImagingError) {
        guard let firstColour = NewPixelWand() else { throw .undecodable(reason: "out of memory") }
        defer { DestroyPixelWand(firstColour) }
        guard let secondColour = NewPixelWand() else { throw .undecodable(reason: "out of memory") }
        defer { DestroyPixelWand(secondColour) }
        PixelSetColor(firstColour, first)
        PixelSetColor(secondColour, second)
        try wand.attempt("colouring", body(firstColour, secondColour))
    }
}
