import CPixels
import Foundation

/// Makes a raster smaller by a three-lobed Lanczos filter.
enum Shrink {
    static func rgb(_ raster: JPEGPass.Raster, to size: (width: Int, height: Int)) -> JPEGPass.Raster {
        guard size.width != raster.width || size.height != raster.height else { return raster }
        let across = Taps(from: raster.width, to: size.width)
        let down = Taps(from: raster.height, to: size.height)
        let pixels = [UInt8](unsafeUninitializedCapacity: 3 * size.width * size.height) { pixels, count in
            count = 3 * size.width * size.height
            let start = UInt(bitPattern: pixels.baseAddress)
            raster.pixels.withUnsafeBufferPointer { source in
                let from = UInt(bitPattern: source.baseAddress)
                RowBands.run(size.height, pixels: raster.width * raster.height) { first, rows in
                    guard let from = UnsafePointer<UInt8>(bitPattern: from),
                        let to = UnsafeMutablePointer<UInt8>(bitPattern: start)
                    else { return }
                    var lines = [Float](repeating: 0, count: 3 * size.width * (down.taps + 1))
                    across.with { across in
                        down.with { down in
                            safelight_resize_rgb(
                                from,
                                3 * raster.width,
                                across,
                                down,
                                first,
                                rows,
                                &lines,
                                to + 3 * size.width * first
                            )
                        }
                    }
                }
            }
        }
        return JPEGPass.Raster(width: size.width, height: size.height, pixels: pixels)
    }

    /// For each pixel of the result where its neighbours begin, and what each counts.
    private struct Taps: Sendable {
        var taps: Int
        var starts: [Int32] = []
        var weights: [Float] = []

        init(from source: Int, to result: Int) {
            let ratio = Double(source) / Double(result)
            let reach = 3 * max(1, ratio)
            taps = min(source, Int((2 * reach).rounded(.up)) + 1)
            for index in 0..<result {
                let centre = (Double(index) + 0.5) * ratio
                let first = min(max(0, Int((centre - reach).rounded(.up))), source - taps)
                let row = (0..<taps).map { tap -> Double in
                    let x = (Double(first + tap) + 0.5 - centre) / max(1, ratio)
                    if abs(x) < 1e-9 { return 1 }
                    return abs(x) >= 3 ? 0 : 3 * sin(.pi * x) * sin(.pi * x / 3) / (.pi * .pi * x * x)
                }
                let sum = row.reduce(0, +)
                starts.append(Int32(first))
                weights += row.map { Float($0 / sum) }
            }
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
}
