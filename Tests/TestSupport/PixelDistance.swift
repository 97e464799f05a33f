import Foundation

/// Distances between images. They are in this module because it is optimised in debug builds too.
public enum PixelDistance {
    /// Returns the peak signal-to-noise ratio of two lists of samples in decibels.
    ///
    /// - Parameter peak: the largest value of a sample, such as 255
    /// - Returns: infinite for equal lists, 0 for lists of different lengths
    public static func psnr(_ left: [UInt8], _ right: [UInt8], peak: Double = 255) -> Double {
        decibels(left, right, peak)
    }

    /// Returns the peak signal-to-noise ratio of two lists of samples of sixteen bits in decibels.
    public static func psnr(_ left: [UInt16], _ right: [UInt16], peak: Double = 65_535) -> Double {
        decibels(left, right, peak)
    }

    private static func decibels<Sample: BinaryInteger>(_ left: [Sample], _ right: [Sample], _ peak: Double) -> Double {
        guard left.count == right.count else { return 0 }
        var sum = 0.0
        for (first, second) in zip(left, right) {
            let difference = Double(first) - Double(second)
            sum += difference * difference
        }
        return sum == 0 ? .infinity : 10 * log10(peak * peak / (sum / Double(left.count)))
    }
}
