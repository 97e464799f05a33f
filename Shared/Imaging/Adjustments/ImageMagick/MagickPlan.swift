import CPixels
import Foundation
import ImageFormats
import PhotoModel

/// Translates the parts of a list into calls to ImageMagick.
///
/// The definitions are those of the fused pass: ``AdjustmentGeometry`` composes the operations that move pixels,
/// ``AdjustmentColour`` those that recolour them.
enum MagickPlan {
    // MARK: - Geometry

    /// Returns the calls that apply the geometry to a decoded image; the result has the output's size.
    static func geometry(
        _ geometry: AdjustmentGeometry,
        upright full: (width: Int, height: Int),
        decoded: (width: Int, height: Int),
        output: (width: Int, height: Int),
        scale: Double
    ) -> [MagickCall] {
        guard geometry.isResampled else {
            let cut = geometry.visiblePart(in: decoded, of: full)
            var calls: [MagickCall] = []
            if cut != PixelRect(x: 0, y: 0, width: decoded.width, height: decoded.height) { calls.append(.crop(cut)) }
            let orientation = geometry.orientation
            if orientation != 1 { calls.append(.orient(orientation)) }
            let oriented =
                orientation >= 5 ? (width: cut.height, height: cut.width) : (width: cut.width, height: cut.height)
            if oriented != output { calls.append(.resize(width: output.width, height: output.height, .lanczos)) }
            return calls
        }
        var source = decoded
        var calls: [MagickCall] = []
        if scale < 0.999 {
            source = (
                max(1, Int((Double(full.width) * scale).rounded())),
                max(1, Int((Double(full.height) * scale).rounded()))
            )
            if source != decoded { calls.append(.resize(width: source.width, height: source.height, .lanczos)) }
        }
        let map = geometry.scaled(
            source: (Double(source.width) / Double(full.width), Double(source.height) / Double(full.height)),
            result: (Double(output.width) / Double(geometry.width), Double(output.height) / Double(geometry.height))
        )
        calls.append(.project(map: ColourMatrix.inverse(map), width: output.width, height: output.height))
        return calls
    }

    // MARK: - The stages after geometry

    /// The operations whose result has a size that is not known beforehand.
    static let resizing: Set<AdjustmentKind> = [.wave, .liquidRescale, .trim, .deskew, .polaroid, .shadow]

    /// Splits the operations after geometry into parts, each of which ends with an operation of ``resizing``; the calls
    /// of the next part depend on the size of its result.
    static func parts(_ operations: [Adjustment]) -> [[Adjustment]] {
        let work = AdjustmentKind.Stage.allCases.dropFirst().flatMap { stage($0, of: operations) }
        return work.reduce(into: [[]]) { parts, operation in
            if parts.last?.last.map({ resizing.contains($0.kind) }) == true { parts.append([]) }
            parts[parts.count - 1].append(operation)
        }
    }

    /// Returns the calls of the stages after geometry, for an image of this size.
    ///
    /// - Parameters:
    ///   - shrink: pixels of this image per pixel of the full result
    ///   - inDisplayP3: true if the colours of the image are those of Display P3, false for sRGB
    static func recolouring(
        _ operations: [Adjustment],
        width: Int,
        height: Int,
        shrink: Double,
        hasAlpha: Bool,
        inDisplayP3: Bool = false
    ) throws(ImagingError) -> [MagickCall] {
        let active = operations.filter { $0.kind.stage != .geometry && !$0.isNeutral }
        let work = inDisplayP3 ? active.map(\.inDisplayP3) : active
        try MagickEffects.check(work, (width, height))
        let detail = MagickDetail(width: width, height: height, scale: shrink)
        let (cleaning, effects) = (stage(.cleaning, of: work), stage(.effect, of: work))
        let (before, finish) = (stage(.colour, of: work), stage(.finish, of: work))
        let details = stage(.detail, of: work)
        var calls = cleaning.flatMap { detail.calls($0) }
        if details.isEmpty, effects.isEmpty {
            calls = asOpaque(calls + (try colour(before + finish, width, height)), hasAlpha)
        } else {
            calls += try colour(before, width, height)
            calls = asOpaque(calls + details.flatMap { detail.calls($0) }, hasAlpha)
            calls += effects.flatMap { MagickEffects.calls($0, width: width, height: height, scale: shrink) }
            calls += asOpaque(try colour(finish, width, height), hasAlpha)
        }
        for operation in stage(.overlay, of: active) {
            let watermark = try AdjustmentOverlay.mark(operation, in: (width, height), inDisplayP3: inDisplayP3)
            guard let (mark, x, y) = watermark else { continue }
            calls += [.image(.mark(mark, opacity: operation.number("opacity"))), .composite(.over(x: x, y: y))]
        }
        return calls + frames(work, width: width, height: height, scale: shrink)
    }

    /// Returns the calls of the stage `frame`, each for the size of the previous result.
    static func frames(_ operations: [Adjustment], width: Int, height: Int, scale: Double) -> [MagickCall] {
        var size = (width: width, height: height)
        var calls: [MagickCall] = []
        for operation in stage(.frame, of: operations) {
            calls += MagickEffects.calls(operation, width: size.width, height: size.height, scale: scale)
            size = MagickEffects.framedSize([operation], size)
        }
        return calls
    }

    private static func stage(_ stage: AdjustmentKind.Stage, of operations: [Adjustment]) -> [Adjustment] {
        operations.filter { $0.kind.stage == stage && !$0.isNeutral }
    }

    /// Returns calls that change colours as if the image were opaque, and keep its opacity.
    private static func asOpaque(_ calls: [MagickCall], _ hasAlpha: Bool) -> [MagickCall] {
        guard hasAlpha, !calls.isEmpty else { return calls }
        return [
            .group([.copy([0]), .alphaOff] + calls), .group([.copy([1, 0]), .composite(.copyOpacity)]),
            .delete([0, 1]),
        ]
    }

    private static func colour(_ operations: [Adjustment], _ width: Int, _ height: Int) throws(ImagingError)
        -> [MagickCall]
    {
        colour(try AdjustmentColour(operations, isEightBit: false).steps, width, height)
    }

    /// Returns the calls of a composed colour pass.
    ///
    /// Steps that change each channel on its own become one row of values, which is exact. A mixture of light becomes a
    /// matrix. Because ImageMagick clips, light is divided by its maximum possible value, and the next row of values
    /// multiplies it again. Formulas of ``MagickFormula`` become a few calls each, which are exact. All other steps
    /// become a cube, together with adjacent formulas.
    private static func colour(_ steps: [AdjustmentColour.Step], _ width: Int, _ height: Int) -> [MagickCall] {
        var calls: [MagickCall] = []
        // The light of a pixel at full scale.
        var scale = 1.0
        var remaining = steps[...]
        while let next = remaining.first {
            let run = remaining.prefix(while: isPerChannel)
            if !run.isEmpty {
                remaining = remaining.dropFirst(run.count)
                var all = Array(run)
                if scale != 1 { all.insert(.matrix(ColourMatrix.diagonal(scale, scale, scale)), at: 0) }
                var limit = 1.0
                if case .matrix(let matrix)? = run.last {
                    limit = max(matrix[0], matrix[4], matrix[8]) * (run.count == 1 ? scale : 1)
                    all.append(.matrix(ColourMatrix.diagonal(1 / limit, 1 / limit, 1 / limit)))
                }
                scale = limit
                calls += [.image(.ramp(all)), .clut]
                continue
            }
            switch next {
            case .matrix(let matrix):
                let limit = maxOutput(of: matrix)
                calls.append(.matrix(matrix.map { $0 / limit }))
                scale *= limit
            case .vignette(let shape):
                calls += [
                    .group([
                        .image(.gains(shape, width: width, height: height)),
                        .resize(width: width, height: height, .triangle),
                    ]), .composite(.multiply),
                ]
                scale *= shape.maxGain
            case .formula(let kind, let numbers) where kind == SAFELIGHT_MODULATE:
                let (bright, saturation, hue) = (Double(numbers[0]), Double(numbers[1]), Double(numbers[2]) * 60)
                calls.append(.effect(.modulate(brightness: bright, saturation: saturation, hue: hue)))
            case .grain:
                calls += [.image(.noise(next, width: width, height: height)), .composite(.mathematics(0, 1, 1, -0.5))]
            default:
                let mixed = remaining.prefix(while: isMixed)
                let exact = mixed.map(MagickFormula.calls)
                if exact.contains(where: \.isEmpty) {
                    calls += [.image(.cube(Array(mixed))), .hald]
                } else {
                    calls += exact.flatMap(\.self)
                }
                remaining = remaining.dropFirst(mixed.count)
                continue
            }
            remaining = remaining.dropFirst()
        }
        return calls
    }

    /// Returns the maximum output of a matrix for values in 0...1.
    private static func maxOutput(of matrix: [Double]) -> Double {
        let rows: [Double] = (0..<3).map { row in
            max(0, matrix[3 * row]) + max(0, matrix[3 * row + 1]) + max(0, matrix[3 * row + 2])
        }
        return rows.max() ?? 1
    }

    private static func isPerChannel(_ step: AdjustmentColour.Step) -> Bool {
        switch step {
        case .curves: true
        case .matrix(let matrix): matrix.enumerated().allSatisfy { $0.offset % 4 == 0 || $0.element == 0 }
        case .table(let table, _): !table.isCube
        default: false
        }
    }

    private static func isMixed(_ step: AdjustmentColour.Step) -> Bool {
        switch step {
        case .formula(let kind, _): kind != SAFELIGHT_MODULATE
        case .table(let table, _): table.isCube
        default: false
        }
    }
}
