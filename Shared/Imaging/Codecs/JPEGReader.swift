import CJPEG

/// Reads a JPEG row by row. Only one thread at a time may use it.
final class JPEGReader: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Opens a JPEG. The bytes must outlive the reader. Nil if out of memory.
    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let pointer = safelight_jpeg_open(bytes.baseAddress, bytes.count) else { return nil }
        self.pointer = pointer
    }

    deinit { safelight_jpeg_close(pointer) }

    /// True if the image has three 8-bit channels that can be converted to red, green and blue.
    var isPlain: Bool { safelight_jpeg_is_plain(pointer) == 1 }

    var profile: [UInt8] {
        var count = 0
        guard let bytes = safelight_jpeg_profile(pointer, &count) else { return [] }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }

    /// Returns libjpeg's reason why a file cannot be decoded; nil if it can, or if the check takes too long.
    static func problem(of bytes: [UInt8]) -> String? {
        var report = safelight_jpeg_report()
        safelight_jpeg_check(bytes, bytes.count, 500, 256 << 20, &report)
        guard report.state == SAFELIGHT_JPEG_UNREADABLE || report.state == SAFELIGHT_JPEG_DAMAGED else { return nil }
        return withUnsafeBytes(of: report.message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
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

    /// Decodes a region of the image. `rowBytes` is the size of a row of the whole image. Must be called before any
    /// other read.
    func raster(rowBytes: Int, _ region: PixelRect) throws(ImagingError) -> Raster {
        let regionRowBytes = 3 * region.width
        var failure: ImagingError?
        let pixels = [UInt8](unsafeUninitializedCapacity: regionRowBytes * region.height) { pixels, count in
            count = regionRowBytes * region.height
            guard let start = pixels.baseAddress else { return }
            let band = UnsafeMutablePointer<UInt8>.allocate(capacity: 16 * rowBytes)
            defer { band.deallocate() }
            do throws(ImagingError) {
                var row = 0
                while row < region.y + region.height {
                    let rows = min(16, region.y + region.height - row)
                    try read(band, rowBytes: rowBytes, count: rows)
                    for index in max(0, region.y - row)..<max(rows, region.y - row) {
                        (start + regionRowBytes * (row + index - region.y)).update(
                            from: band + index * rowBytes + 3 * region.x,
                            count: regionRowBytes
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

    // MARK: Scaling down

    /// Scales several regions down in one pass. Must be called before any other read.
    func reduce(rowBytes: Int, height: Int, into reductions: inout [RowReduction]) throws(ImagingError) {
        let step = 16
        let capacity = 2 * (reductions.map(\.reach).max() ?? 0) + step
        let rows = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity * rowBytes)
        defer { rows.deallocate() }
        var (first, available) = (0, 0)
        while let needed = reductions.compactMap(\.needed).min() {
            if available + step > capacity || needed >= first + available {
                let dropped = min(needed - first, available)
                available -= dropped
                first += dropped
                rows.update(from: rows + dropped * rowBytes, count: available * rowBytes)
            }
            let count = min(step, height - first - available)
            guard count > 0 else { throw .undecodable(reason: "the image ends before its last row") }
            try read(rows + available * rowBytes, rowBytes: rowBytes, count: count)
            available += count
            for index in reductions.indices {
                reductions[index].append(rows, rowBytes: rowBytes, first: first, count: available)
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

/// Eight-bit pixels, red, green and blue, without gaps.
struct Raster: Sendable {
    var width: Int
    var height: Int
    var pixels: [UInt8]
}
