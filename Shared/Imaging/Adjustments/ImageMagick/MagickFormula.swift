import CPixels
import Foundation

/// Formulas of the colour pass that a few calls of ImageMagick compute exactly, in a third of the time of a HALD CLUT
/// or less.
enum MagickFormula {
    /// Returns the calls for a picture of encoded values; empty for a formula that needs a table.
    static func calls(_ step: AdjustmentColour.Step) -> [MagickCall] {
        guard case .formula(let kind, let numbers) = step else { return [] }
        let values = numbers.map { Double($0) }
        switch kind {
        case SAFELIGHT_MIXED_MATRIX: return mixed(Array(values.prefix(9)), share: values[9])
        case SAFELIGHT_VIBRANCE: return vibrance(values[0])
        case SAFELIGHT_TONING: return toning(values)
        case SAFELIGHT_BANDS: return bands(values)
        case SAFELIGHT_GREY_BANDS: return greyBands(values)
        default: return []
        }
    }

    private static func mixed(_ matrix: [Double], share: Double) -> [MagickCall] {
        [.group([.copy([0]), .matrix(matrix)]), .composite(.mathematics(0, share, 1 - share, 0))]
    }

    /// Adds the difference of each channel and the brightness, times the value, times 1 less the chroma. Differences
    /// are halved around middle grey.
    private static func vibrance(_ value: Double) -> [MagickCall] {
        var difference: [Double] = []
        for row in 0..<3 {
            for (column, weight) in ColourMatrix.luminance.enumerated() {
                difference.append((row == column ? 0.5 : 0) - weight / 2)
            }
            difference += [0, 0, 0.5]
        }
        // The chroma is twice the distance of the largest channel and the mean of the largest and the smallest.
        let colourless: [MagickCall] = [
            .copy([0]), .group([.copy([0]), .grey(.lightness)]), .group([.copy([0]), .grey(.brightness)]), .delete([0]),
            .composite(.mathematics(0, -2, 2, 1)),
        ]
        return [
            .group([
                .copy([0]), .group(colourless), .group([.copy([0]), .matrix(difference)]), .delete([0]),
                .composite(.mathematics(1, 0, -0.5, 0.5)),
            ]), .composite(.mathematics(0, 2 * value, 1, -value)),
        ]
    }

    /// Mixes in a colour of each brightness: the grey itself and the colours of shadows and highlights.
    private static func toning(_ n: [Double]) -> [MagickCall] {
        let added = (0..<3).map { channel -> @Sendable (Double) -> Double in
            { y in
                let bright = min(1, max(0, y + n[7]))
                let colour = (1 - bright) * n[1 + channel] + bright * n[4 + channel]
                return n[0] * y + n[8] * 2 * y * (1 - y) * colour
            }
        }
        // The added values may be negative, so they are mapped to the range of a pixel.
        let all = added.flatMap { body in (0...255).map { body(Double($0) / 255) } }
        let low = min(0, (all.min() ?? 0) - 0.001)
        let range = (all.max() ?? 1) + 0.001 - low
        let spread = added.map { body -> @Sendable (Double) -> Double in { (body($0) - low) / range } }
        return [
            .group([.copy([0]), .grey(.luma), .image(.functions(spread)), .clut]),
            .composite(.mathematics(0, range, 1 - n[0], low)),
        ]
    }

    // MARK: - Hues

    /// Returns the value of a channel in a pure colour, from the hue in sextants; shift 0 for red, 4 for green, 2 for
    /// blue.
    private static func pure(_ hue: Double, _ shift: Double) -> Double {
        let at = (hue + shift + 6).truncatingRemainder(dividingBy: 6)
        return min(1, max(0, abs(at - 3) - 1))
    }

    /// Returns a value between knots of 30 degrees, from the hue in sextants.
    private static func between(_ knots: ArraySlice<Double>, _ hue: Double) -> Double {
        let index = min(11, Int(2 * hue))
        let low = knots[knots.startIndex + index]
        return low + (2 * hue - Double(index)) * (knots[knots.startIndex + index + 1] - low)
    }

    /// Turns hues and changes chroma and lightness by hue: all channels are the lightness, and the chroma times a
    /// function of the hue.
    private static func bands(_ n: [Double]) -> [MagickCall] {
        let factors = [0.0, 4, 2].map { shift -> @Sendable (Double) -> Double in
            { hue in
                let turned = hue + between(n[0..<13], hue)
                let strength = 1 + between(n[13..<26], hue)
                return between(n[26..<39], hue) / 2 + strength * (pure(turned, shift) - 0.5)
            }
        }
        return ofHue(factors, share: 1, added: [.grey(.lightness)])
    }

    /// A grey that is brighter or darker by hue, mixed with the picture.
    private static func greyBands(_ n: [Double]) -> [MagickCall] {
        var mixed: [Double] = []
        for row in 0..<3 {
            for (column, weight) in ColourMatrix.luminance.enumerated() {
                mixed.append((row == column ? 1 - n[39] : 0) + n[39] * weight)
            }
        }
        return ofHue([{ between(n[0..<13], $0) / 2 }], share: n[39], added: [.matrix(mixed)])
    }

    /// Adds the chroma times a function of the hue to the result of calls.
    ///
    /// - Parameter factors: functions of the hue in sextants, one for all channels or one for each
    private static func ofHue(
        _ factors: [@Sendable (Double) -> Double],
        share: Double,
        added: [MagickCall]
    ) -> [MagickCall] {
        let all = factors.flatMap { body in (0...720).map { body(Double($0) / 120) } }
        let (low, high) = ((all.min() ?? 0) - 0.001, (all.max() ?? 0) + 0.001)
        let (range, most) = (high - low, max(abs(low), abs(high)))
        let spread = factors.map { body -> @Sendable (Double) -> Double in { (body(6 * $0) - low) / range } }
        let chroma: [MagickCall] = [
            .copy([0]), .group([.copy([0]), .grey(.lightness)]), .group([.copy([0]), .grey(.brightness)]), .delete([0]),
            .composite(.mathematics(0, 2, -2, 0)),
        ]
        let factor: [MagickCall] = [
            .copy([0]), .hue, .matrix([1, 0, 0, 1, 0, 0, 1, 0, 0]), .image(.functions(spread)), .clut,
        ]
        return [
            .group([
                .copy([0]), .group([.copy([0])] + added), .group(chroma), .group(factor),
                // Around middle grey, because it may be negative.
                .group([
                    .copy([3, 2]), .composite(.mathematics(range / (2 * most), low / (2 * most), 0, 0.5)),
                ]), .delete([0, 2, 3]), .composite(.mathematics(0, 2 * most * share, 1, -most * share)),
            ]), .delete([0]),
        ]
    }
}
