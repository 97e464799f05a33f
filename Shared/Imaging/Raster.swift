import CPixels
import Foundation

/// Pixels of eight bits, red, green and blue, without gaps: less than half of what ImageMagick holds of the same picture.
struct Raster: Sendable {
    var width: Int
    var height: Int
    var pixels: [UInt8]

    /// The picture made smaller.
    func reduced(to size: (width: Int, height: Int)) -> Raster {
        guard size.width != width || size.height != height else { return self }
        let across = LanczosTaps(from: width, to: size.width)
        let down = LanczosTaps(from: height, to: size.height)
        let result = [UInt8](unsafeUninitializedCapacity: 3 * size.width * size.height) { result, count in
            count = 3 * size.width * size.height
            let start = UInt(bitPattern: result.baseAddress)
            RowBands.run(size.height, pixels: width * height) { first, rows in
                let output = start + UInt(3 * size.width * first)
                reduce(whole, across, down, first: first, rows: rows, bytes: output, wide: 0)
            }
        }
        return Raster(width: size.width, height: size.height, pixels: result)
    }

    /// A region made smaller, as a picture of ImageMagick's, of sixteen bits, so that nothing is rounded twice.
    func reduced(_ region: PixelRect, to size: (width: Int, height: Int)) throws(ImagingError) -> Wand {
        let wand = try Wand.blank(size.width, size.height)
        let across = LanczosTaps(from: region.width, to: size.width)
        let down = LanczosTaps(from: region.height, to: size.height)
        try wand.withPixels { pixels, _ in
            reduce(region, across, down, first: 0, rows: size.height, bytes: 0, wide: UInt(bitPattern: pixels))
        }
        wand.noteDepth(8)
        return wand
    }

    private var whole: PixelRect { PixelRect(x: 0, y: 0, width: width, height: height) }

    /// Rows of a smaller picture to one of two addresses, the other of which is 0.
    private func reduce(
        _ region: PixelRect,
        _ across: LanczosTaps,
        _ down: LanczosTaps,
        first: Int,
        rows: Int,
        bytes: UInt,
        wide: UInt
    ) {
        across.with { across in
            down.with { down in
                pixels.withUnsafeBufferPointer { source in
                    withUnsafeTemporaryAllocation(of: Float.self, capacity: 3 * region.width + 1) { sums in
                        // The last pixel's fourth number.
                        sums[3 * region.width] = 0
                        safelight_reduce_rgb(
                            source.baseAddress?.advanced(by: 3 * (region.y * width + region.x)),
                            3 * width,
                            region.width,
                            across,
                            down,
                            first,
                            rows,
                            UnsafeMutablePointer(bitPattern: bytes),
                            UnsafeMutablePointer(bitPattern: wide),
                            sums.baseAddress
                        )
                    }
                }
            }
        }
    }
}

/// A three-lobed Lanczos filter for making one side smaller: for each pixel of the result where its neighbours begin, and
/// what each counts.
struct LanczosTaps: Sendable {
    private let taps: Int
    private var starts: [Int32] = []
    private var weights: [Float] = []

    /// - Parameter result: at most as many pixels as the source
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
