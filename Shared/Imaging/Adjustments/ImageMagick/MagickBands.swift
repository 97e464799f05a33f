import CMagickWand
import CPixels
import PhotoModel
import Synchronization

/// Makes the colour calls of ImageMagick on bands of rows, so that decoding, the calls and encoding run side by side and
/// the pixels of sixteen bits stay in the processor's cache.
///
/// The result is that of the same calls on the whole picture: each of them treats a pixel on its own.
final class MagickBands: @unchecked Sendable {
    // Unchecked because of the calls, which are not changed: their tables are made beforehand, and ImageMagick shares the
    // pixels of copies between threads.
    private let calls: [MagickCall]
    private let width: Int
    private let failure = Mutex<ImagingError?>(nil)

    /// Larger bands than those of the fused pass, because each call of `-clut` prepares a table of 65,536 colours.
    static let rowsOfBand = 120

    /// Nil if a call reads more than the pixel that it writes.
    init?(_ operations: [Adjustment], width: Int, height: Int, seconds: Double) throws(ImagingError) {
        let calls = try MagickPlan.recolouring(operations, width: width, height: height, shrink: 1, hasAlpha: false)
        guard calls.allSatisfy(MagickBands.isOfSinglePixels) else { return nil }
        let atATime = min(height, 4 * Self.rowsOfBand) * width
        try MagickCost.check(calls, pixels: width * height, atATime: atATime, seconds: seconds)
        self.width = width
        self.calls = try Self.withTables(calls)
    }

    /// Makes the pictures that the calls need.
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

    private static func isOfSinglePixels(_ call: MagickCall) -> Bool {
        switch call {
        case .clut, .hald, .matrix, .grey, .hue, .copy, .delete: true
        case .effect(.modulate), .composite(.mathematics): true
        case .image(.ramp), .image(.cube), .image(.functions): true
        case .group(let inner): inner.allSatisfy(isOfSinglePixels)
        default: false
        }
    }

    /// Changes rows of three bytes a pixel. May be called from any thread.
    func change(_ bytes: UnsafeMutablePointer<UInt8>, rowBytes: Int, rows: Int) {
        guard !calls.isEmpty else { return }
        do throws(ImagingError) {
            let wand = try Wand.blank(width, rows)
            try wand.withPixels { pixels, _ in
                for row in 0..<rows {
                    safelight_pixels_of_bytes(bytes + row * rowBytes, width, pixels + 4 * width * row)
                }
            }
            wand.noteDepth(8)
            let made = try MagickRunner.run(calls, on: wand)
            try made.withPixelsForReading { pixels, _ in
                for row in 0..<rows {
                    safelight_bytes_of_pixels(pixels + 4 * width * row, width, bytes + row * rowBytes)
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

/// A picture of a plan that was made once for several runs.
final class MagickTable: @unchecked Sendable {
    // Unchecked because ImageMagick counts the copies of pixels with a lock, and nothing changes these.
    let wand: Wand

    init(_ wand: consuming Wand) { self.wand = wand }
}
