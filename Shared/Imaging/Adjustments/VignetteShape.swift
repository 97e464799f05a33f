import CPixels
import Foundation
import PhotoModel

/// The vignette of a list, in units of half the diagonal.
struct VignetteShape {
    private let value: Double
    private let start: Double
    private let feather: Double

    init(_ operation: Adjustment) {
        value = operation.number()
        feather = operation.number("feather")
        start = operation.number("midpoint") - feather / 2
    }

    /// Returns the constants of `SAFELIGHT_VIGNETTE` for an image size.
    func numbers(width: Int, height: Int) -> [Float] {
        let (x, y) = (Double(width) / 2, Double(height) / 2)
        return [Float(x), Float(y), Float(1 / (x * x + y * y).squareRoot()), Float(start), Float(1 / feather)]
    }

    /// The maximum gain, at least 1.
    var maxGain: Double { max(1, exp2(2 * value)) }

    /// The gains at evenly spaced points of the feather.
    var gains: [Float] {
        (0..<Int(SAFELIGHT_CURVE_COUNT)).map { index in
            let t = Double(index) / Double(Int(SAFELIGHT_CURVE_COUNT) - 1)
            return Float(exp2(2 * value * t * t * (3 - 2 * t)))
        }
    }
}
