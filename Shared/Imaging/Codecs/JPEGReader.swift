import CJPEG
import CPixels

/// Reads a JPEG row by row. Used by one thread at a time.
final class JPEGReader: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Opens a JPEG. The bytes must outlive the reader. Nil if out of memory.
    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let pointer = safelight_jpeg_open(bytes.baseAddress, bytes.count) else { return nil }
        self.pointer = pointer
    }

    deinit { safelight_jpeg_close(pointer) }

    /// True if the image has three channels of eight bits that can be converted to red, green and blue.
    var isPlain: Bool { safelight_jpeg_is_plain(pointer) == 1 }

    var profile: [UInt8] {
        var count = 0
        guard let bytes = safelight_jpeg_profile(pointer, &count) else { return [] }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }

    /// Starts decoding at a fraction in eighths. Returns the decoded size; nil if the image cannot be decoded.
    func begin(eighths: Int) -> (width: Int, height: Int)? {
        var (width, height) = (0, 0)
        guard safelight_jpeg_begin(pointer, UInt32(eighths), &width, &height) == 1 else { return nil }
        return (width, height)
    }

    func read(_ rows: UnsafeMutablePointer<UInt8>, rowBytes: Int, count: Int) throws(ImagingError) {
        guard safelight_jpeg_read(pointer, rows, rowBytes, count) == 1 else {
            throw .undecodable(reason: "decoding: " + String(cString: safelight_jpeg_reader_message(pointer)))
        }
    }

    /// Decodes a region of the image. `rowBytes` is the size of a row of the whole image. Nothing may have been read
    /// before.
    func raster(rowBytes: Int, _ region: PixelRect) throws(ImagingError) -> Raster {
        let kept = 3 * region.width
        var failure: ImagingError?
        let pixels = [UInt8](unsafeUninitializedCapacity: kept * region.height) { pixels, count in
            count = kept * region.height
            guard let start = pixels.baseAddress else { return }
            let band = UnsafeMutablePointer<UInt8>.allocate(capacity: 16 * rowBytes)
            defer { band.deallocate() }
            do throws(ImagingError) {
                var row = 0
                while row < region.y + region.height {
                    let rows = min(16, region.y + region.height - row)
                    try read(band, rowBytes: rowBytes, count: rows)
                    for index in max(0, region.y - row)..<max(rows, region.y - row) {
                        (start + kept * (row + index - region.y)).update(
                            from: band + index * rowBytes + 3 * region.x,
                            count: kept
                        )
                    }
                    row += rows
                }
            } catch {
                failure = error
                pixels.initialize(repeating: 0)
            }
        }
        if let failure { throw failure }
        return Raster(width: region.width, height: region.height, pixels: pixels)
    }
}

// MARK: - Scaling down while reading

extension JPEGReader {
    /// Scales several regions down in one pass. Nothing may have been read before.
    func reduce(rowBytes: Int, height: Int, into reductions: inout [RowReduction]) throws(ImagingError) {
        let step = 16
        let capacity = 2 * (reductions.map(\.reach).max() ?? 0) + step
        let rows = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity * rowBytes)
        defer { rows.deallocate() }
        var (first, held) = (0, 0)
        while let needed = reductions.compactMap(\.needed).min() {
            if held + step > capacity || needed >= first + held {
                let done = min(needed - first, held)
                held -= done
                first += done
                rows.update(from: rows + done * rowBytes, count: held * rowBytes)
            }
            let count = min(step, height - first - held)
            guard count > 0 else { throw .undecodable(reason: "the image ends before its last row") }
            try read(rows + held * rowBytes, rowBytes: rowBytes, count: count)
            held += count
            for index in reductions.indices {
                reductions[index].append(rows, rowBytes: rowBytes, first: first, count: held)
            }
        }
    }

    /// Returns a region of the image, scaled down.
    func raster(
        rowBytes: Int,
        height: Int,
        _ region: PixelRect,
        reducedTo size: (width: Int, height: Int)
    ) throws(ImagingError) -> Raster {
        var raster = Raster(
            width: size.width,
            height: size.height,
            pixels: [UInt8](repeating: 0, count: 3 * size.width * size.height)
        )
        try raster.pixels.withUnsafeMutableBufferPointer { (pixels) throws(ImagingError) in
            guard let start = pixels.baseAddress else { return }
            var reductions = [RowReduction(region, to: size, .bytes(start))]
            try reduce(rowBytes: rowBytes, height: height, into: &reductions)
        }
        return raster
    }
}

/// Scales a region of an image down from rows that arrive in order, so that only the rows within reach of the filter
/// are kept.
struct RowReduction {
    enum Output {
        /// Three bytes per pixel.
        case bytes(UnsafeMutablePointer<UInt8>)
        /// ImageMagick's opaque 16-bit pixels, so that values are rounded only once.
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

    /// The number of source rows that the filter needs at a time.
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
                    // The fourth number of the last pixel.
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

/// Eight-bit pixels, red, green and blue, without gaps.
struct Raster: Sendable {
    var width: Int
    var height: Int
    var pixels: [UInt8]
}
