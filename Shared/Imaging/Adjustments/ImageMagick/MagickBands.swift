import CMagickWand
import CPixels
import PhotoModel
import Synchronization

/// Makes calls to ImageMagick on bands of rows, so that decoding, the calls and encoding run at the same time and the
/// 16-bit pixels stay in the processor's cache.
///
/// The result is that of the same calls on the whole image: each call processes a pixel on its own, or reads only the
/// few rows above and below it that are in the band's margin.
final class MagickBands: @unchecked Sendable {
    // Unchecked because of the calls. They do not change: their tables are created in `init`, and ImageMagick can share
    // the pixels of copies between threads.
    private let calls: [MagickCall]
    private let width: Int
    private let failure = Mutex<ImagingError?>(nil)

    /// The number of rows of a band, and of those above and below it that its calls read.
    let rowsPerBand: Int
    let margin: Int

    /// The rows of a band with its margin: more than in the fused pass, because each call of `-clut` prepares a table
    /// of 65,536 colours, but fewer than 128, from which on ImageMagick would start threads of its own.
    private static let rows = 120

    /// The maximum margin. Larger margins would cost more time than bands save.
    private static let maxMargin = 40

    /// Creates the bands; nil if the calls read more than the pixels that they write and a few rows around them.
    init?(_ operations: [Adjustment], width: Int, height: Int, seconds: Double) throws(ImagingError) {
        let calls = try MagickPlan.recolouring(operations, width: width, height: height, shrink: 1, hasAlpha: false)
        guard let margin = Self.reach(calls), margin <= Self.maxMargin else { return nil }
        self.margin = margin
        rowsPerBand = max(Self.rows - 2 * margin, 2 * margin)
        let concurrentPixels = min(height, 4 * (rowsPerBand + 2 * margin)) * width
        try MagickCost.check(calls, pixels: width * height, concurrentPixels: concurrentPixels, seconds: seconds)
        self.width = width
        self.calls = try Self.withTables(calls)
    }

    /// Returns the calls with the images that they need.
    private static func withTables(_ calls: [MagickCall]) throws(ImagingError) -> [MagickCall] {
        var prepared: [MagickCall] = []
        for call in calls {
            switch call {
            case .image(let image): prepared.append(.image(.prepared(MagickTable(try image.makeWand()))))
            case .group(let inner): prepared.append(.group(try withTables(inner)))
            default: prepared.append(call)
            }
        }
        return prepared
    }

    /// Returns the maximum number of rows above and below a pixel that the calls read; nil if they depend on the whole
    /// image.
    private static func reach(_ calls: [MagickCall]) -> Int? {
        var list = [0]
        return reach(calls, &list, enclosing: []) ? list.max() : nil
    }

    /// - Parameters:
    ///   - list: the reach of each image
    ///   - enclosing: the reach of each image of the enclosing list
    /// - Returns: false if a call depends on the whole image
    private static func reach(_ calls: [MagickCall], _ list: inout [Int], enclosing: [Int]) -> Bool {
        for call in calls {
            switch call {
            case .matrix, .grey, .hue, .luma, .colour, .effect(.modulate), .convolve(_, isColumn: false): break
            case .image(.ramp), .image(.cube), .image(.functions): list.append(0)
            case .copy(let indices): list += indices.map { enclosing[$0] }
            case .delete(let indices): for index in indices.sorted(by: >) { list.remove(at: index) }
            case .clut, .hald, .composite(.mathematics), .combineLuma: list = [list.max() ?? 0]
            case .separate: list = list.flatMap { [$0, $0, $0] }
            case .convolve(let weights, isColumn: true): list = list.map { $0 + weights.count / 2 }
            case .selectiveBlur: list = list.map { $0 + 2 }
            case .group(let inner):
                var group: [Int] = []
                guard reach(inner, &group, enclosing: list) else { return false }
                list += group
            default: return false
            }
        }
        return true
    }

    /// Changes rows of three bytes per pixel, which may have a margin above and below them. May be called from any
    /// thread.
    func change(_ bytes: UnsafeMutablePointer<UInt8>, rowBytes: Int, rows: Int, above: Int = 0, below: Int = 0) {
        guard !calls.isEmpty else { return }
        let start = bytes - above * rowBytes
        let totalRows = above + rows + below
        do throws(ImagingError) {
            let wand = try Wand.blank(width, totalRows)
            try wand.withPixels { pixels, _ in
                for row in 0..<totalRows {
                    safelight_bytes_to_pixels(start + row * rowBytes, width, pixels + 4 * width * row)
                }
            }
            wand.setDepth(8)
            let result = try MagickRunner.run(calls, on: wand)
            try result.withPixelsForReading { pixels, _ in
                for row in 0..<rows {
                    safelight_pixels_to_bytes(pixels + 4 * width * (above + row), width, bytes + row * rowBytes)
                }
            }
        } catch {
            failure.withLock { $0 = $0 ?? error }
        }
    }

    /// Throws the error of the first call that failed.
    func check() throws(ImagingError) {
        if let error = failure.withLock({ $0 }) { throw error }
    }
}

/// An image of a plan that is created once and used by several runs.
final class MagickTable: @unchecked Sendable {
    // Unchecked because ImageMagick counts the copies of pixels under a lock, and these pixels do not change.
    let wand: Wand

    init(_ wand: consuming Wand) { self.wand = wand }
}
