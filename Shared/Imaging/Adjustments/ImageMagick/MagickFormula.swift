import CPixels
import Foundation

/// The formulas of the colour pass that a few calls to ImageMagick compute exactly, in at most a third of the time of a
/// HALD CLUT.
enum MagickFormula {
    /// Returns the calls for an image of encoded values; empty for a formula that needs a table.
    static func calls(_ step: AdjustmentColour.Step) -> [MagickCall] {
        guard case .formula(let kind, let numbers) = step else { return [] }
        let values = numbers.map { Double($0) }
        switch kind {
        case SAFELIGHT_MIXED_MATRIX: return mixedMatrix(Array(values.prefix(9)), weight: values[9])
        case SAFELIGHT_VIBRANCE: return vibrance(values[0])
        case SAFELIGHT_TONING: return toning(values)
        case SAFELIGHT_BANDS: return bands(values)
        case SAFELIGHT_GREY_BANDS: return greyBands(values)
        default: return []
        }
    }

    private static func mixedMatrix(_ matrix: [Double], weight: Double) -> [MagickCall] {
        [.group([.copy([0]), .matrix(matrix)]), .composite(.mathematics(0, weight, 1 - weight, 0))]
    }

    /// Returns calls that add to each channel its difference to the brightness, times the value, times 1 minus the
    /// chroma. Differences are halved around middle grey.
    private static func vibrance(_ value: Double) -> [MagickCall] {
        var difference: [Double] = []
        for row in 0..<3 {
            for (column, weight) in ColourMatrix.luminance.enumerated() {
                difference.append((row == column ? 0.5 : 0) - weight / 2)
            }
            difference += [0, 0, 0.5]
        }
        // The chroma is twice the difference of the largest channel and the mean of the largest and the smallest.
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

    /// Returns calls that mix in a colour for each brightness: the grey, and the colours of shadows and highlights.
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
        let normalized = added.map { body -> @Sendable (Double) -> Double in { (body($0) - low) / range } }
        return [
            .group([.copy([0]), .grey(.luma), .image(.functions(normalized)), .clut]),
            .composite(.mathematics(0, range, 1 - n[0], low)),
        ]
    }

    // MARK: - Hues

    /// Returns the value of a channel in a pure colour, from the hue in sextants; shift 0 for red, 4 for green, 2 for
    /// blue.
    private static func pure(_ hue: Double, _ shift: Double) -> Double {
        let position = (hue + shift + 6).truncatingRemainder(dividingBy: 6)
        return min(1, max(0, abs(position - 3) - 1))
    }

    /// Returns the value of a hue in sextants, interpolated between knots at every 30 degrees.
    private static func interpolate(_ knots: ArraySlice<Double>, _ hue: Double) -> Double {
        let index = min(11, Int(2 * hue))
        let low = knots[knots.startIndex + index]
        return low + (2 * hue - Double(index)) * (knots[knots.startIndex + index + 1] - low)
    }

    /// Returns calls that rotate hues and change chroma and lightness by hue: each channel becomes the lightness plus
    /// the chroma times a function of the hue.
    private static func bands(_ n: [Double]) -> [MagickCall] {
        let factors = [0.0, 4, 2].map { shift -> @Sendable (Double) -> Double in
            { hue in
                let rotated = hue + interpolate(n[0..<13], hue)
                let strength = 1 + interpolate(n[13..<26], hue)
                return interpolate(n[26..<39], hue) / 2 + strength * (pure(rotated, shift) - 0.5)
            }
        }
        return addChroma(factors, weight: 1, to: [.grey(.lightness)])
    }

    /// Returns calls that mix the image with a grey whose brightness depends on the hue.
    private static func greyBands(_ n: [Double]) -> [MagickCall] {
        var mixed: [Double] = []
        for row in 0..<3 {
            for (column, weight) in ColourMatrix.luminance.enumerated() {
                mixed.append((row == column ? 1 - n[39] : 0) + n[39] * weight)
            }
        }
        return addChroma([{ interpolate(n[0..<13], $0) / 2 }], weight: n[39], to: [.matrix(mixed)])
    }

    /// Returns calls that add the chroma times a function of the hue to the result of other calls.
    ///
    /// - Parameter factors: functions of the hue in sextants, one for all channels or one for each
    private static func addChroma(
        _ factors: [@Sendable (Double) -> Double],
        weight: Double,
        to calls: [MagickCall]
    ) -> [MagickCall] {
        let all = factors.flatMap { body in (0...720).map { body(Double($0) / 120) } }
        let (low, high) = ((all.min() ?? 0) - 0.001, (all.max() ?? 0) + 0.001)
        let (range, limit) = (high - low, max(abs(low), abs(high)))
        let normalized = factors.map { body -> @Sendable (Double) -> Double in { (body(6 * $0) - low) / range } }
        let chroma: [MagickCall] = [
            .copy([0]), .group([.copy([0]), .grey(.lightness)]), .group([.copy([0]), .grey(.brightness)]), .delete([0]),
            .composite(.mathematics(0, 2, -2, 0)),
        ]
        let factor: [MagickCall] = [
            .copy([0]), .hue, .matrix([1, 0, 0, 1, 0, 0, 1, 0, 0]), .image(.functions(normalized)), .clut,
        ]
        return [
            .group([
                .copy([0]), .group([.copy([0])] + calls), .group(chroma), .group(factor),
                // Around middle grey, because it may be negative.
                .group([
                    .copy([3, 2]), .composite(.mathematics(range / (2 * limit), low / (2 * limit), 0, 0.5)),
                ]), .delete([0, 2, 3]), .composite(.mathematics(0, 2 * limit * weight, 1, -limit * weight)),
            ]), .delete([0]),
        ]
    }
}
