import CPixels
import Foundation

/// Scales a region of an image down from rows that arrive in order, so that only the rows that the filter needs are in
/// memory.
struct RowReduction {
    enum Output {
        /// Three bytes per pixel.
        case bytes(UnsafeMutablePointer<UInt8>)
        /// Opaque 16-bit pixels of ImageMagick, so that values are rounded only once.
        case wide(UnsafeMutablePointer<UInt16>)
    }

    private let region: PixelRect
    private let size: (width: Int, height: Int)
    private let across: LanczosTaps
    private let down: LanczosTaps
    private let output: Output
    private var next = 0

    /// - Parameters:
    ///   - size: the size of the scaled region
    ///   - output: memory for the whole result
    init(_ region: PixelRect, to size: (width: Int, height: Int), _ output: Output) {
        self.region = region
        self.size = size
        self.output = output
        across = LanczosTaps(from: region.width, to: size.width)
        down = LanczosTaps(from: region.height, to: size.height)
    }

    /// The number of source rows that the filter needs at the same time.
    var reach: Int { down.taps }

    /// The first source row that is still needed; nil if the result is complete.
    var needed: Int? { next < size.height ? region.y + down.start(next) : nil }

    /// Computes all result rows whose source rows are available: `count` rows from row `first` on.
    mutating func append(_ rows: UnsafePointer<UInt8>, rowBytes: Int, first: Int, count: Int) {
        var end = next
        while end < size.height, region.y + down.start(end) + down.taps <= first + count { end += 1 }
        guard end > next else { return }
        let (done, ready) = (next, end - next)
        next = end
        let (bytes, wide): (UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt16>?) =
            switch output {
            case .bytes(let start): (start + 3 * size.width * done, nil)
            case .wide(let start): (nil, start + 4 * size.width * done)
            }
        across.with { across in
            down.with { down in
                withUnsafeTemporaryAllocation(of: Float.self, capacity: 3 * region.width + 1) { sums in
                    // safelight_reduce_rgb reads four numbers for each pixel.
                    sums[3 * region.width] = 0
                    safelight_reduce_rgb(
                        rows + 3 * region.x,
                        rowBytes,
                        first - region.y,
                        region.width,
                        across,
                        down,
                        done,
                        ready,
                        bytes,
                        wide,
                        sums.baseAddress
                    )
                }
            }
        }
    }
}

// MARK: - The filter

/// A three-lobed Lanczos filter for reducing one side: for each pixel of the result, the first source pixel and the
/// weights.
struct LanczosTaps: Sendable {
    let taps: Int
    private var starts: [Int32] = []
    private var weights: [Float] = []

    /// - Parameter result: the length of the side of the result, at most that of the source
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

    /// Calls `body` with the filter for C.
    func with(_ body: (UnsafePointer<safelight_taps>) -> Void) {
        starts.withUnsafeBufferPointer { starts in
            weights.withUnsafeBufferPointer { weights in
                var arguments = safelight_taps()
                arguments.count = starts.count
                arguments.taps = taps
                arguments.starts = starts.baseAddress
                arguments.weights = weights.baseAddress
                body(&arguments)
            }
        }
    }
}
