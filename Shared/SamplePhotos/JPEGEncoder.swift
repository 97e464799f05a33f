import Foundation

/// A baseline JPEG encoder: three components without subsampling, simple Huffman tables, fine quantisation.
///
/// It does not depend on ImageMagick, so that any module can create real images.
public enum JPEGEncoder {
    /// Encodes an image.
    ///
    /// - Parameters:
    ///   - width: the stored width in pixels, 1...65,535
    ///   - height: the stored height in pixels
    ///   - segments: EXIF, XMP and similar segments, as returned by `segment`
    ///   - pixel: returns the colour of a stored pixel
    public static func encode(
        width: Int,
        height: Int,
        segments: [[UInt8]],
        pixel: (Int, Int) -> (UInt8, UInt8, UInt8)
    ) -> [UInt8] {
        var output: [UInt8] = [0xFF, 0xD8]
        for segment in segments { output += segment }
        output += segment(0xDB, [0] + zigzag.map { UInt8(quantisation($0)) })
        output += segment(
            0xC0,
            [8, UInt8(height >> 8), UInt8(height & 255), UInt8(width >> 8), UInt8(width & 255), 3]
                + [1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]
        )
        output += segment(0xC4, [0x00] + dcCounts + Array(0..<12))
        output += segment(0xC4, [0x10] + acCounts + acSymbols)
        output += segment(0xDA, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0])
        var writer = BitWriter(output: output)
        let dc = codes(dcCounts, Array(0..<12))
        let ac = codes(acCounts, acSymbols)
        var previous = [0, 0, 0]
        for blockY in stride(from: 0, to: height, by: 8) {
            for blockX in stride(from: 0, to: width, by: 8) {
                let planes = samples(blockX, blockY, width, height, pixel)
                for component in 0..<3 {
                    let block = quantised(planes[component])
                    write(block, previous: &previous[component], dc: dc, ac: ac, to: &writer)
                }
            }
        }
        writer.finish()
        return writer.output + [0xFF, 0xD9]
    }

    /// Returns a segment: marker, length, and content of at most 65,533 bytes.
    public static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        let length = content.count + 2
        return [0xFF, marker, UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)] + content
    }

    private static func samples(
        _ blockX: Int,
        _ blockY: Int,
        _ width: Int,
        _ height: Int,
        _ pixel: (Int, Int) -> (UInt8, UInt8, UInt8)
    ) -> [[Float]] {
        var planes = [[Float]](repeating: [Float](repeating: 0, count: 64), count: 3)
        for y in 0..<8 {
            for x in 0..<8 {
                let (red, green, blue) = pixel(min(blockX + x, width - 1), min(blockY + y, height - 1))
                let (r, g, b) = (Float(red), Float(green), Float(blue))
                planes[0][y * 8 + x] = 0.299 * r + 0.587 * g + 0.114 * b - 128
                planes[1][y * 8 + x] = -0.168736 * r - 0.331264 * g + 0.5 * b
                planes[2][y * 8 + x] = 0.5 * r - 0.418688 * g - 0.081312 * b
            }
        }
        return planes
    }

    /// Transforms a block and returns it quantised, in zigzag order.
    ///
    /// A flat block, which is the most common in test images, needs no transform.
    private static func quantised(_ block: [Float]) -> [Int] {
        var result = [Int](repeating: 0, count: 64)
        if block.allSatisfy({ $0 == block[0] }) {
            result[0] = Int((block[0] * 8 / Float(quantisation(0))).rounded())
            return result
        }
        var rows = [Float](repeating: 0, count: 64)
        for y in 0..<8 {
            for u in 0..<8 {
                var sum: Float = 0
                for x in 0..<8 { sum += block[y * 8 + x] * cosines[u * 8 + x] }
                rows[y * 8 + u] = sum
            }
        }
        for (position, natural) in zigzag.enumerated() {
            let (u, v) = (natural % 8, natural / 8)
            var sum: Float = 0
            for y in 0..<8 { sum += rows[y * 8 + u] * cosines[v * 8 + y] }
            result[position] = Int((sum / Float(quantisation(natural))).rounded())
        }
        return result
    }

    private static func write(
        _ block: [Int],
        previous: inout Int,
        dc: [UInt8: (Int, Int)],
        ac: [UInt8: (Int, Int)],
        to writer: inout BitWriter
    ) {
        let difference = block[0] - previous
        previous = block[0]
        let size = bits(difference)
        writer.put(dc[UInt8(size)] ?? (0, 0))
        writer.put(magnitude(difference, size))
        var zeros = 0
        for value in block.dropFirst() {
            if value == 0 {
                zeros += 1
                continue
            }
            while zeros > 15 {
                writer.put(ac[0xF0] ?? (0, 0))
                zeros -= 16
            }
            let size = bits(value)
            writer.put(ac[UInt8(zeros << 4 | size)] ?? (0, 0))
            writer.put(magnitude(value, size))
            zeros = 0
        }
        if zeros > 0 { writer.put(ac[0] ?? (0, 0)) }
    }

    private static func bits(_ value: Int) -> Int { Int.bitWidth - abs(value).leadingZeroBitCount }

    private static func magnitude(_ value: Int, _ size: Int) -> (Int, Int) {
        (value < 0 ? value + (1 << size) - 1 : value, size)
    }

    /// Maps symbols to (code, length), assigned from the counts as in the JPEG standard.
    private static func codes(_ counts: [UInt8], _ symbols: [UInt8]) -> [UInt8: (Int, Int)] {
        var result: [UInt8: (Int, Int)] = [:]
        var code = 0
        var next = 0
        for (index, count) in counts.enumerated() {
            for _ in 0..<count {
                result[symbols[next]] = (code, index + 1)
                code += 1
                next += 1
            }
            code <<= 1
        }
        return result
    }

    private static func quantisation(_ natural: Int) -> Int { 1 + (natural % 8 + natural / 8) / 3 }

    private static let cosines: [Float] = (0..<64).map { index in
        let (u, x) = (index / 8, index % 8)
        let scale = u == 0 ? 0.5 / 2.0.squareRoot() : 0.5
        return Float(scale * cos(Double((2 * x + 1) * u) * .pi / 16))
    }

    private static let zigzag: [Int] = [
        0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14,
        21,
        28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61,
        54, 47, 55, 62, 63,
    ]

    private static let dcCounts: [UInt8] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    /// All pairs of run and size in a flat code: no code is all ones, and none is longer than nine bits.
    private static let acCounts: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 94, 68, 0, 0, 0, 0, 0, 0, 0]
    private static let acSymbols: [UInt8] =
        [0x00, 0xF0] + (0..<16).flatMap { run in (1...10).map { UInt8(run << 4 | $0) } }
}

private struct BitWriter {
    var output: [UInt8]
    private var pending = 0
    private var count = 0

    init(output: [UInt8]) { self.output = output }

    mutating func put(_ code: (Int, Int)) {
        guard code.1 > 0 else { return }
        pending = pending << code.1 | code.0
        count += code.1
        while count >= 8 {
            let byte = UInt8(truncatingIfNeeded: pending >> (count - 8))
            output.append(byte)
            if byte == 0xFF { output.append(0) }
            count -= 8
            pending &= (1 << count) - 1
        }
    }

    /// Pads the last byte with ones.
    mutating func finish() {
        if count > 0 { put(((1 << (8 - count)) - 1, 8 - count)) }
    }
}
