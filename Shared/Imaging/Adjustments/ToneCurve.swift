import Foundation
import PhotoModel

/// Functions of a single channel.
enum ToneCurve {
    /// Converts an encoded sRGB value to linear light.
    static func decoded(_ value: Double) -> Double {
        value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    /// The linear light of each 8-bit value.
    static let decodedBytes: [Double] = (0..<256).map { ToneCurve.decoded(Double($0) / 255) }

    /// Converts linear light to an encoded sRGB value.
    static func encoded(_ light: Double) -> Double {
        light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    }

    /// Returns the curve of an operation that applies the same curve to all channels, on encoded values.
    static func curve(of operation: Adjustment) -> AdjustmentColour.Curve {
        let value = operation.number()
        switch operation.kind {
        case .brightness:
            let exponent = exp2(-value)
            return { pow($0, exponent) }
        case .contrast:
            let exponent = exp2(value)
            return { $0 < 0.5 ? pow(2 * $0, exponent) / 2 : 1 - pow(max(0, 2 * (1 - $0)), exponent) / 2 }
        case .highlights: return { $0 + value * $0 * $0 * (1 - $0) }
        case .shadows: return { $0 + value * $0 * (1 - $0) * (1 - $0) }
        case .whites: return { min(1, $0 + value * $0 * $0 * $0 / 4) }
        case .blacks: return { max(0, $0 + value * (1 - $0) * (1 - $0) * (1 - $0) / 4) }
        case .levels:
            let (black, white) = (operation.number("black"), operation.number("white"))
            let (low, high) = (operation.number("outputBlack"), operation.number("outputWhite"))
            let exponent = 1 / operation.number("gamma")
            return { low + (high - low) * pow(min(1, max(0, ($0 - black) / (white - black))), exponent) }
        default: return { $0 }
        }
    }

    /// Returns the monotone cubic curve through points (Fritsch and Carlson), which is constant beyond the ends.
    static func through(_ points: [CurvePoint]) -> AdjustmentColour.Curve {
        guard points != CurvePoint.straight, points.count >= 2, let first = points.first, let last = points.last else {
            return { $0 }
        }
        let count = points.count
        let widths = zip(points, points.dropFirst()).map { $1.x - $0.x }
        let slopes = zip(zip(points, points.dropFirst()), widths).map { ($0.1.y - $0.0.y) / $1 }
        let tangents = (0..<count).map { index -> Double in
            if index == 0 { return slopes[0] }
            if index == count - 1 { return slopes[count - 2] }
            let (before, after) = (slopes[index - 1], slopes[index])
            guard before * after > 0 else { return 0 }
            // The weighted harmonic mean never overshoots.
            let (left, right) = (widths[index - 1], widths[index])
            return 3 * (left + right) / ((2 * right + left) / before + (right + 2 * left) / after)
        }
        return { x in
            if x <= first.x { return first.y }
            if x >= last.x { return last.y }
            var index = 0
            while index + 2 < count, x >= points[index + 1].x { index += 1 }
            let width = widths[index]
            let t = (x - points[index].x) / width
            let (square, cube) = (t * t, t * t * t)
            let from = points[index].y * (2 * cube - 3 * square + 1) + points[index + 1].y * (3 * square - 2 * cube)
            let rise = tangents[index] * (cube - 2 * square + t) + tangents[index + 1] * (cube - square)
            return min(1, max(0, from + width * rise))
        }
    }
}
