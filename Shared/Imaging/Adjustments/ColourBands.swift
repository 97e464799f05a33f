import Foundation
import PhotoModel

/// Functions of the hue of a colour.
enum ColourBands {
    /// Returns the values of a band at 0, 30, … 360 degrees. All band centres are such hues and the values between them
    /// are linear, so these thirteen values describe the whole function.
    static func knots(_ operation: Adjustment, suffix: String) -> [Double] {
        let bands = ColourBand.allCases.map { ($0.centre, operation.number($0.rawValue + suffix)) }
        return (0...12).map { index -> Double in
            let hue = Double(index) * 30
            let after = bands.first { $0.0 >= hue } ?? (360, bands[0].1)
            let before = bands.last { $0.0 <= hue } ?? bands[0]
            guard after.0 > before.0 else { return before.1 }
            return before.1 + (after.1 - before.1) * (hue - before.0) / (after.0 - before.0)
        }
    }

    /// Returns the pure colour of a hue minus its luminance.
    static func tone(_ degrees: Double) -> [Double] {
        let hue = degrees.truncatingRemainder(dividingBy: 360) / 60
        let pure = [0.0, 4, 2].map { shift -> Double in
            let position = (hue + shift).truncatingRemainder(dividingBy: 6)
            return min(1, max(0, abs(position - 3) - 1))
        }
        let brightness = zip(pure, ColourMatrix.luminance).reduce(0) { $0 + $1.0 * $1.1 }
        return pure.map { $0 - brightness }
    }
}
