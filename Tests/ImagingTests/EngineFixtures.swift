import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import Synchronization
import TestSupport

@testable import Imaging

/// Pixels of sixteen bits, for distances that eight bits would hide.
struct DeepPixels {
    let width: Int
    let height: Int
    let values: [UInt16]

    /// - Parameter isFlattened: true to put transparent parts on white
    init(_ bytes: [UInt8], isFlattened: Bool = false) throws {
        let header = try ImageHeader.read(bytes)
        let wand = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
        try ColourProfile.convertToSRGB(wand)
        if isFlattened { try Encoder.flatten(wand) }
        (width, height) = (wand.width, wand.height)
        values = try wand.colours()
    }

    /// Returns the peak signal-to-noise ratio in dB; infinite for equal images, 0 for images of different sizes.
    func psnr(_ other: DeepPixels) -> Double {
        guard width == other.width, height == other.height else { return 0 }
        return PixelDistance.psnr(values, other.values)
    }
}

/// Images and lists for the comparison of the two engines.
enum EngineFixtures {
    private struct ImageKey: Hashable {
        let seed: UInt64
        let width: Int
        let height: Int
        let bits: UInt8
    }

    private static let images = Mutex<[ImageKey: [UInt8]]>([:])

    /// Returns an image with gradients, edges, texture and noise, in the colours of the seed; it is created once.
    static func image(seed: UInt64, width: Int = 240, height: Int = 160, bits: UInt8 = 8) -> [UInt8] {
        images.withLock { images in
            let key = ImageKey(seed: seed, width: width, height: height, bits: bits)
            if let image = images[key] { return image }
            let image = TestImages.texturedPNG(seed: seed, width: width, height: height, bits: bits)
            images[key] = image
            return image
        }
    }

    /// Returns three adjustments of an operation, with values from low to high.
    static func cases(_ kind: AdjustmentKind) throws -> [Adjustment] {
        try (0..<3).map { try Adjustment(kind, members(kind, $0)) }
    }

    /// A look of strong colours, as a .cube file.
    static let filmLook: [UInt8] = {
        var text = "# a film look\nTITLE \"film\"\nLUT_3D_SIZE 17\n\n"
        for index in 0..<17 * 17 * 17 {
            let (r, g, b) = (Double(index % 17) / 16, Double(index / 17 % 17) / 16, Double(index / 289) / 16)
            let y = 0.2126 * r + 0.7152 * g + 0.0722 * b
            let red = min(1, 0.08 + 0.9 * pow(r, 0.85) + 0.05 * y)
            let green = 0.04 + 0.9 * g * (0.9 + 0.1 * y)
            let blue = 0.1 + 0.7 * b + 0.1 * y
            text += "\(red) \(green) \(blue)\n"
        }
        return Array(text.utf8)
    }()

    private static func members(_ kind: AdjustmentKind, _ index: Int) -> JSONObject {
        let strength = [-0.7, 0.5, 0.9][index]
        let amount = JSON.double([0.3, 0.6, 1][index])
        switch kind {
        case .crop: return ["x": 0.1, "y": 0.05, "width": .double(0.3 + 0.2 * Double(index)), "height": 0.6]
        case .straighten: return ["value": .double([-7.3, 2.1, 31][index])]
        case .rotate: return ["value": JSON([90, 180, 270][index])]
        case .flip: return ["value": index == 1 ? "vertical" : "horizontal"]
        case .perspective:
            return ["topLeftX": .double(0.05 + 0.05 * Double(index)), "topRightY": 0.1, "bottomRightX": 0.93]
        case .resize: return ["width": JSON([100, 72, 61][index])]
        case .exposure: return ["value": .double([-2, 1, 3][index])]
        case .levels:
            return ["black": .double(0.05 * Double(index + 1)), "white": 0.9, "gamma": .double([0.6, 1.3, 2][index])]
        case .curve:
            return [
                "master": [[0, 0.05], [0.4, .double([0.2, 0.5, 0.7][index])], [1, 0.97]],
                "blue": [[0, 0.1], [1, .double([1, 0.9, 0.8][index])]],
            ]
        case .hsl:
            return [
                "redHue": .double(strength), "greenSaturation": .double(-strength), "blueLuminance": .double(strength),
                "yellowHue": 0.3, "aquaSaturation": .double(strength),
            ]
        case .blackAndWhiteMix: return ["value": amount, "red": .double(strength), "blue": -0.5, "green": 0.3]
        case .toning: return ["value": amount, "hue": .double(40 + 120 * Double(index))]
        case .splitToning:
            return ["shadowSaturation": amount, "highlightSaturation": 0.5, "balance": .double(strength)]
        case .lut: return ["value": amount, "table": .string(Data(filmLook).base64EncodedString())]
        case .noiseReduction: return index == 1 ? ["colour": 1] : ["luminance": amount, "colour": amount]
        case .sharpen:
            return [
                "amount": .double([0.5, 1.5, 3][index]), "radius": .double([0.4, 1, 4][index]),
                "threshold": .double([0, 0.03, 0][index]),
            ]
        case .vignette: return ["value": .double(strength), "midpoint": .double([0.7, 0.4, 0.8][index])]
        case .grain: return ["value": amount, "size": .double([0.004, 0.01, 0.02][index]), "seed": JSON(index)]
        case .textWatermark: return ["text": "Safelight", "opacity": amount, "colour": "#ffcc00"]
        case .pictureWatermark:
            return ["picture": .string(Data(mark).base64EncodedString()), "position": "topLeft", "opacity": amount]
        case .blur, .motionBlur: return ["radius": .double([0.7, 2, 6][index])]
        case .adaptiveSharpen, .charcoal, .emboss, .edge: return ["radius": .double([0.6, 1, 2][index])]
        case .oilPaint: return ["radius": .double([1, 2, 4][index])]
        case .median: return ["radius": JSON(index + 1)]
        case .despeckle: return ["value": JSON(index + 1)]
        case .posterize: return ["levels": JSON([2, 5, 40][index])]
        case .solarize: return ["threshold": .double([0.2, 0.5, 0.8][index])]
        case .radialBlur, .swirl: return ["value": .double([3, 20, 60][index])]
        case .border, .frame: return ["size": .double([0.02, 0.1, 0.3][index]), "colour": "#336699"]
        case .roundedCorners: return ["radius": .double([0.05, 0.2, 0.5][index]), "colour": "#336699"]
        case .colorize, .colourTint, .normalize, .equalize, .contrastStretch: return ["value": amount]
        case .modulate:
            return [
                "brightness": .double([0.6, 1.1, 1.4][index]), "saturation": .double([0.3, 1.3, 2][index]),
                "hue": .double([-120, 0, 40][index]),
            ]
        case .unsharpMask: return ["amount": .double([0.4, 1, 3][index]), "radius": .double([0.6, 1, 3][index])]
        case .sketch: return ["radius": .double([2, 5, 8][index]), "angle": .double([-30, 120, 45][index])]
        case .wave:
            return [
                "amplitude": .double([-4, 8, 20][index]), "wavelength": .double([30, 60, 200][index]),
                "colour": "#336699",
            ]
        case .liquidRescale:
            return ["width": .double([0.7, 0.9, 1.2][index]), "height": .double([1, 0.8, 0.9][index])]
        case .trim: return ["fuzz": .double([0.05, 0.2, 0.4][index])]
        case .deskew: return ["threshold": .double([0.2, 0.4, 0.8][index]), "colour": "#336699"]
        case .polaroid: return ["angle": .double([-8, 0, 5][index]), "colour": "#336699"]
        case .shadow: return ["opacity": amount, "size": .double([0.004, 0.01, 0.05][index]), "colour": "#ddeeff"]
        case .timeRange: return ["start": .double([0, 1, 2][index]), "end": 10]
        case .speed, .volume: return ["value": .double([0.5, 1, 2][index])]
        case .blackAndWhite, .sepia: return ["value": amount]
        default: return ["value": .double(strength)]
        }
    }

    private static let mark = TestImages.png(width: 40, height: 30) { x, y in
        (UInt8(6 * x), 40, UInt8(8 * y), UInt8(min(255, 9 * y)))
    }

    /// Returns a random list of at most six operations of all stages, or of all but the effects.
    static func list(_ random: inout SeededRandom, withEffects: Bool) throws -> [Adjustment] {
        let kinds = AdjustmentKind.all.filter { withEffects || $0.stage != .effect }
        return try (0..<Int.random(in: 1...6, using: &random)).map { _ in random.pick(try cases(random.pick(kinds))) }
    }
}
