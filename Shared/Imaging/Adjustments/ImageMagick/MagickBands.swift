import CMagickWand
import CPixels
import PhotoModel
import Synchronization

/// Makes calls of ImageMagick on bands of rows, so that decoding, the calls and encoding run side by side and the
/// pixels of sixteen bits stay in the processor's cache.
///
/// The result is that of the same calls on the whole picture: each of them treats a pixel on its own, or reads so few
/// rows above and below it that they are the band's margin.
final class MagickBands: @unchecked Sendable {
    // Unchecked because of the calls. They are not changed: their tables are created beforehand, and ImageMagick can
    // share the pixels of copies between threads.
    private let calls: [MagickCall]
    private let width: Int
    private let failure = Mutex<ImagingError?>(nil)

    /// The rows of a band, and those above and below it that its calls read.
    let rowsOfBand: Int
    let margin: Int

    /// Larger bands than those of the fused pass, because each call of `-clut` prepares a table of 65,536 colours. With
    /// its margin a band has less than 128 rows, from which on ImageMagick would start threads of its own.
    private static let rows = 120

    /// Larger margins would cost more time than bands save.
    private static let longestMargin = 40

    /// Nil if the calls read more than the pixels that they write and a few rows around them.
    init?(_ operations: [Adjustment], width: Int, height: Int, seconds: Double) throws(ImagingError) {
        let calls = try MagickPlan.recolouring(operations, width: width, height: height, shrink: 1, hasAlpha: false)
        guard let margin = Self.reach(calls), margin <= Self.longestMargin else { return nil }
        self.margin = margin
        rowsOfBand = max(Self.rows - 2 * margin, 2 * margin)
        let atATime = min(height, 4 * (rowsOfBand + 2 * margin)) * width
        try MagickCost.check(calls, pixels: width * height, atATime: atATime, seconds: seconds)
        self.width = width
        self.calls = try Self.withTables(calls)
    }

    /// Creates the pictures that the calls need.
    private static func withTables(_ calls: [MagickCall]) throws(ImagingError) -> [MagickCall] {
        var made: [MagickCall] = []
        for call in calls {
            switch call {
            case .image(let image): made.append(.image(.made(MagickTable(try image.wand()))))
            case .group(let inner): made.append(.group(try withTables(inner)))
            default: made.append(call)
            }
        }
        return made
    }

    /// Returns the rows above and below a pixel that the calls read at most; nil if they depend on the whole picture.
    private static func reach(_ calls: [MagickCall]) -> Int? {
        var list = [0]
        return reach(calls, &list, around: []) ? list.max() : nil
    }

    /// - Parameters:
    ///   - list: the reach of each picture
    ///   - around: the reaches of the list around this one
    /// - Returns: false if a call depends on the whole picture
    private static func reach(_ calls: [MagickCall], _ list: inout [Int], around: [Int]) -> Bool {
        for call in calls {
            switch call {
            case .matrix, .grey, .hue, .luma, .colour, .effect(.modulate), .convolve(_, isColumn: false): break
            case .image(.ramp), .image(.cube), .image(.functions): list.append(0)
            case .copy(let indices): list += indices.map { around[$0] }
            case .delete(let indices): for index in indices.sorted(by: >) { list.remove(at: index) }
            case .clut, .hald, .composite(.mathematics), .combineLuma: list = [list.max() ?? 0]
            case .separate: list = list.flatMap { [$0, $0, $0] }
            case .convolve(let weights, isColumn: true): list = list.map { $0 + weights.count / 2 }
            case .selectiveBlur: list = list.map { $0 + 2 }
            case .group(let inner):
                var group: [Int] = []
                guard reach(inner, &group, around: list) else { return false }
                list += group
            default: return false
            }
        }
        return true
    }

    /// Changes rows of three bytes a pixel, which may have a margin above and below them. May be called from any
    /// thread.
    func change(_ bytes: UnsafeMutablePointer<UInt8>, rowBytes: Int, rows: Int, above: Int = 0, below: Int = 0) {
        guard !calls.isEmpty else { return }
        let start = bytes - above * rowBytes
        let all = above + rows + below
        do throws(ImagingError) {
            let wand = try Wand.blank(width, all)
            try wand.withPixels { pixels, _ in
                for row in 0..<all {
                    safelight_pixels_of_bytes(start + row * rowBytes, width, pixels + 4 * width * row)
                }
            }
            wand.noteDepth(8)
            let made = try MagickRunner.run(calls, on: wand)
            try made.withPixelsForReading { pixels, _ in
                for row in 0..<rows {
                    safelight_bytes_of_pixels(pixels + 4 * width * (above + row), width, bytes + row * rowBytes)
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

/// A picture of a plan that is created once for several runs.
final class MagickTable: @unchecked Sendable {
    // Unchecked because ImageMagick counts the copies of pixels with a lock, and nothing changes these.
    let wand: Wand

    init(_ wand: consuming Wand) { self.wand = wand }
}
