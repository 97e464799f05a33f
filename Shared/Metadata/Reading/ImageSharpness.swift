import CJPEG
import ImageFormats

extension MetadataReader {
    /// The longest side, in pixels, at which sharpness is measured; larger images are decoded at a fraction of their
    /// size.
    private static let sharpnessSide = 1024

    /// Returns the sharpness of a JPEG: the variance of the Laplacian of its luminance, 0 for an even area.
    ///
    /// It can be compared between images of the same scene and size, such as the frames of a burst. Measuring takes
    /// about ten milliseconds.
    ///
    /// - Returns: nil for another format, and for a JPEG that cannot be decoded or has no colours
    public static func sharpness(of bytes: [UInt8]) -> Double? {
        guard let header = try? header(of: bytes), header.kind == .jpeg else { return nil }
        let longest = max(header.storedWidth, header.storedHeight)
        let eighths = min(8, max(1, 8 * sharpnessSide / longest))
        return bytes.withUnsafeBufferPointer { buffer in
            guard let reader = safelight_jpeg_open(buffer.baseAddress, buffer.count) else { return nil }
            defer { safelight_jpeg_close(reader) }
            var (width, height) = (0, 0)
            guard safelight_jpeg_is_plain(reader) == 1,
                safelight_jpeg_begin(reader, UInt32(eighths), &width, &height) == 1, width > 2, height > 2
            else { return nil }
            return varianceOfLaplacian(width: width, height: height) { row in
                safelight_jpeg_read(reader, row, 3 * width, 1) == 1
            }
        }
    }

    /// - Parameter read: writes the next row, three bytes per pixel; returns false if it cannot be decoded
    private static func varianceOfLaplacian(
        width: Int,
        height: Int,
        read: (UnsafeMutablePointer<UInt8>) -> Bool
    ) -> Double? {
        var pixels = [UInt8](repeating: 0, count: 3 * width)
        func next() -> [Int]? {
            guard pixels.withUnsafeMutableBufferPointer({ $0.baseAddress.map(read) }) == true else { return nil }
            // Integer weights of ITU-R BT.601 that add up to 256.
            return stride(from: 0, to: pixels.count, by: 3).map { index in
                77 * Int(pixels[index]) + 150 * Int(pixels[index + 1]) + 29 * Int(pixels[index + 2])
            }
        }
        guard var above = next(), var row = next() else { return nil }
        var (sum, squares) = (0.0, 0.0)
        for _ in 2..<height {
            guard let below = next() else { return nil }
            for x in 1..<width - 1 {
                let value = Double(4 * row[x] - row[x - 1] - row[x + 1] - above[x] - below[x]) / 256
                sum += value
                squares += value * value
            }
            (above, row) = (row, below)
        }
        let count = Double((width - 2) * (height - 2))
        return max(0, squares / count - sum / count * sum / count)
    }
}
