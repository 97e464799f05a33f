import Foundation
import ImageFormats
import PhotoModel

/// The calls for ImageMagick's effects and borders, which both engines make.
enum MagickEffects {
    static let stages: Set<AdjustmentKind.Stage> = [.effect, .frame]
    /// The minimum side, in pixels, of an image for seam carving.
    private static let minCarvedSide = 3

    /// Returns true if the effect depends on single pixels, so that a preview has to be reduced from the full result.
    static func needsFullSize(_ kind: AdjustmentKind) -> Bool {
        [
            .adaptiveSharpen, .median, .despeckle, .posterize, .charcoal, .oilPaint, .emboss, .edge, .unsharpMask,
            .sketch, .wave, .liquidRescale, .trim, .deskew, .polaroid, .shadow,
        ].contains(kind)
    }

    /// Returns the calls for an image of this size.
    ///
    /// - Parameter scale: pixels of this image per pixel of the full result
    static func calls(_ operation: Adjustment, width: Int, height: Int, scale: Double) -> [MagickCall] {
        let radius = operation.number("radius") * scale
        let value = operation.number()
        let side = Double(min(width, height))
        func blended(_ effect: MagickCall.Effect) -> [MagickCall] {
            [.group([.copy([0]), .effect(effect)]), .composite(.blend(value))]
        }
        switch operation.kind {
        case .blur: return radius < 0.1 ? [] : [.effect(.blur(radius))]
        case .motionBlur: return radius < 0.1 ? [] : [.effect(.motionBlur(radius, angle: operation.number("angle")))]
        case .radialBlur: return [.effect(.radialBlur(value))]
        case .adaptiveSharpen: return [.effect(.adaptiveSharpen(radius))]
        case .median:
            let window = 2 * Int(radius.rounded()) + 1
            return window < 3 ? [] : [.effect(.median(window))]
        case .despeckle: return Array(repeating: .effect(.despeckle), count: Int(value))
        case .posterize: return [.effect(.posterize(Int(operation.number("levels"))))]
        case .solarize: return [.effect(.solarize(operation.number("threshold")))]
        case .charcoal: return [.effect(.charcoal(radius))]
        case .oilPaint: return [.effect(.oilPaint(radius))]
        case .emboss: return [.effect(.emboss(radius))]
        case .edge: return [.effect(.edge(radius))]
        case .swirl: return [.effect(.swirl(value))]
        case .implode: return [.effect(.implode(value))]
        case .normalize: return blended(.contrastStretch(black: 0.02, white: 0.01, pixels: width * height))
        case .equalize: return blended(.equalize)
        case .contrastStretch:
            return blended(
                .contrastStretch(
                    black: operation.number("black"),
                    white: operation.number("white"),
                    pixels: width * height
                )
            )
        case .colorize: return [.effect(.colorize(operation.text("colour"), value))]
        case .colourTint: return [.effect(.tint(operation.text("colour"), value))]
        case .unsharpMask:
            return [
                .effect(
                    .unsharpMask(radius, amount: operation.number("amount"), threshold: operation.number("threshold"))
                )
            ]
        case .sketch: return [.effect(.sketch(radius, angle: operation.number("angle")))]
        case .wave:
            let (amplitude, length) = (operation.number("amplitude") * scale, operation.number("wavelength") * scale)
            return [.effect(.wave(amplitude, length: max(1, length), operation.text("colour")))]
        case .liquidRescale:
            func scaled(_ name: String, _ side: Int) -> Int {
                max(min(side, minCarvedSide), Int((operation.number(name) * Double(side)).rounded()))
            }
            let (newWidth, newHeight) = (scaled("width", width), scaled("height", height))
            guard newWidth != width || newHeight != height else { return [] }
            // liblqr ends the process for an image of one row or column.
            guard min(width, height) >= minCarvedSide else {
                return [.resize(width: newWidth, height: newHeight, .lanczos)]
            }
            return [.effect(.liquidRescale(from: (width, height), to: (newWidth, newHeight)))]
        case .trim: return [.effect(.trim(fuzz: operation.number("fuzz")))]
        case .deskew: return [.effect(.deskew(operation.number("threshold"), operation.text("colour")))]
        case .polaroid: return [.effect(.polaroid(angle: operation.number("angle"), operation.text("colour")))]
        case .shadow:
            let size = operation.number("size") * side
            return [
                .effect(
                    .shadow(
                        opacity: operation.number("opacity"),
                        radius: size,
                        offset: Int(size.rounded()),
                        operation.text("colour")
                    )
                )
            ]
        case .border, .frame:
            let (colour, width) = (operation.text("colour"), Self.width(operation, side))
            guard width > 0 else { return [] }
            return [.effect(operation.kind == .border ? .border(colour, width) : .frame(colour, width))]
        case .roundedCorners:
            let mark = corners(operation, width, height)
            return [.image(.mark(mark, opacity: 1)), .composite(.over(x: 0, y: 0))]
        default: return []
        }
    }

    /// Returns the size of the result of the stage `frame`.
    static func framedSize(_ operations: [Adjustment], _ size: (width: Int, height: Int)) -> (width: Int, height: Int) {
        operations.reduce(into: size) { size, operation in
            // No image can become this large. Larger numbers would overflow.
            guard [.border, .frame].contains(operation.kind), !operation.isNeutral,
                max(size.width, size.height) < 1 << 24
            else { return }
            let added = 2 * width(operation, Double(min(size.width, size.height)))
            size = (size.width + added, size.height + added)
        }
    }

    /// Refuses borders and rotated images that are larger than ImageMagick allows, or need too much memory.
    static func check(_ operations: [Adjustment], _ size: (width: Int, height: Int)) throws(ImagingError) {
        try checkBorders(operations, size)
        var size = size
        for operation in operations where !operation.isNeutral {
            if operation.kind == .polaroid {
                size = try polaroidSize(operation, size)
            } else {
                size = framedSize([operation], size)
            }
        }
    }

    /// Returns the size of an image as an instant photo, before its edges are trimmed.
    private static func polaroidSize(
        _ operation: Adjustment,
        _ size: (width: Int, height: Int)
    ) throws(ImagingError) -> (width: Int, height: Int) {
        let border = max(Double(max(size.width, size.height)) / 25, 10)
        let (across, down) = (Double(size.width) + 2 * border, Double(size.height) + 2 * border)
        let angle = operation.number("angle") * .pi / 180
        let (cosine, sine) = (abs(cos(angle)), abs(sin(angle)))
        let rotated = (width: Int(across * cosine + down * sine), height: Int(across * sine + down * cosine))
        // The image, its shadow, and both after the rotation.
        guard 4 * 8 * rotated.width * rotated.height <= MagickCost.maxMemory else {
            throw .tooMuchWork(
                "polaroid makes an image of \(rotated.width) by \(rotated.height) pixels, and there is memory for "
                    + "\(MagickCost.maxMemory / 32 / 1_000_000) megapixels; turn it less, or scale down with resize"
            )
        }
        return rotated
    }

    private static func checkBorders(
        _ operations: [Adjustment],
        _ size: (width: Int, height: Int)
    ) throws(ImagingError) {
        let (width, height) = framedSize(operations, size)
        guard width > size.width else { return }
        let bytes = 8 * (size.width * size.height + width * height)
        guard max(width, height) <= ImageBounds.side, bytes <= MagickCost.maxMemory else {
            throw .tooMuchWork(
                "the borders make an image of \(width) by \(height) pixels; give fewer or narrower ones"
            )
        }
    }

    /// Returns the width of a border in pixels.
    private static func width(_ operation: Adjustment, _ side: Double) -> Int {
        Int((operation.number("size") * side).rounded())
    }

    /// Returns an image of the colour that is transparent within the rounded rectangle, with soft edges.
    private static func corners(_ operation: Adjustment, _ width: Int, _ height: Int) -> AdjustmentOverlay.Mark {
        let radius = operation.number("radius") * Double(min(width, height))
        let number = UInt32(operation.text("colour").dropFirst(), radix: 16) ?? 0xFFFFFF
        let channels = [0, 8, 16].map { UInt16((number >> UInt32($0)) & 255) * 257 }
        var pixels = [UInt16](repeating: 65_535, count: 4 * width * height)
        pixels.withUnsafeMutableBufferPointer { pixels in
            let reach = Int(radius.rounded(.up))
            for y in 0..<height where y < reach || y >= height - reach {
                let down = max(0, radius - min(Double(y) + 0.5, Double(height - y) - 0.5))
                for x in 0..<width where x < reach || x >= width - reach {
                    let across = max(0, radius - min(Double(x) + 0.5, Double(width - x) - 0.5))
                    let covered = min(1, max(0, hypot(across, down) - radius + 0.5))
                    let offset = 4 * (y * width + x)
                    for channel in 0..<3 { pixels[offset + channel] = channels[channel] }
                    pixels[offset + 3] = UInt16((65_535 * (1 - covered)).rounded())
                }
            }
        }
        return AdjustmentOverlay.Mark(width: width, height: height, pixels: pixels)
    }
}
