import CPixels
import Foundation

/// A three-lobed Lanczos filter for reducing one side: for each pixel of the result the first source pixel and the
/// weights.
struct LanczosTaps: Sendable {
    let taps: Int
    private var starts: [Int32] = []
    private var weights: [Float] = []

    /// - Parameter result: the size of the result, at most that of the source
    init(from source: Int, to result: Int) {
        let ratio = Double(source) / Double(result)
        let reach = 3 * max(1, ratio)
        taps = min(source, Int((2 * reach).rounded(.up)) + 1)
        starts.reserveCapacity(result)
        weights.reserveCapacity(result * taps)
        var row = [Double](repeating: 0, count: taps)
        for index in 0..<result {
            let centre = (Double(index) + 0.5) * ratio
            let first = min(max(0, Int((centre - reach - 0.5).rounded(.up))), source - taps)
            var sum = 0.0
            for tap in 0..<taps {
                row[tap] = Self.lanczos((Double(first + tap) + 0.5 - centre) / max(1, ratio))
                sum += row[tap]
            }
            starts.append(Int32(first))
            for weight in row { weights.append(Float(weight / sum)) }
        }
    }

    static func lanczos(_ x: Double) -> Double {
        if abs(x) < 1e-9 { return 1 }
        return abs(x) >= 3 ? 0 : 3 * sin(.pi * x) * sin(.pi * x / 3) / (.pi * .pi * x * x)
    }

    /// Returns the first source pixel of a result pixel.
    func start(_ index: Int) -> Int { Int(starts[index]) }

    func with(_ body: (UnsafePointer<safelight_taps>) -> Void) {
        starts.withUnsafeBufferPointer { starts in
            weights.withUnsafeBufferPointer { weights in
                var made = safelight_taps()
                made.count = starts.count
                made.taps = taps
                made.starts = starts.baseAddress
                made.weights = weights.baseAddress
                body(&made)
            }
        }
    }
}
