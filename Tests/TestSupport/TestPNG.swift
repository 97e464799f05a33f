extension TestImages {
    /// Returns an uncompressed PNG with transparency; `chunks` are inserted between its header and its pixels. With 16
    /// bits, each sample is the 8-bit value scaled up, with a colour's last bit flipped, so that 8 bits cannot
    /// represent it.
    public static func png(
        width: Int,
        height: Int,
        bits: UInt8 = 8,
        chunks: [(name: String, content: [UInt8])] = [],
        pixel: (_ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8, UInt8)
    ) -> [UInt8] {
        var raw: [UInt8] = []
        raw.reserveCapacity(height * (width * Int(bits) / 2 + 1))
        for y in 0..<height {
            raw.append(0)
            for x in 0..<width {
                let (red, green, blue, alpha) = pixel(x, y)
                raw +=
                    bits == 16
                    ? [red, red ^ 1, green, green ^ 1, blue, blue ^ 1, alpha, alpha] : [red, green, blue, alpha]
            }
        }
        var output = pngStart(width: width, height: height, bits: bits)
        for (name, content) in chunks { output += chunk(name, content) }
        return output + chunk("IDAT", stored(raw)) + chunk("IEND", [])
    }

    /// Returns the signature and the header chunk only: a PNG that declares a size without pixels.
    public static func pngStart(width: Int, height: Int, bits: UInt8 = 8) -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", big(width) + big(height) + [bits, 6, 0, 0, 0])
    }

    /// Returns a black PNG of 16 bits per sample: a small file that takes long to decode.
    public static func largeBlackPNG(side: Int) -> [UInt8] {
        pngStart(width: side, height: side, bits: 16) + chunk("IDAT", deflatedZeros(side * (1 + 8 * side)))
            + chunk("IEND", [])
    }

    /// Returns a zlib stream of `count` zeros (RFC 1951, one block of fixed codes): a literal, then copies of 258
    /// bytes.
    private static func deflatedZeros(_ count: Int) -> [UInt8] {
        var output: [UInt8] = [0x78, 0x01]
        var (bits, filled) = (UInt8(0), UInt8(0))
        func put(_ code: Int, _ length: Int) {
            for position in (0..<length).reversed() {
                bits |= UInt8(code >> position & 1) << filled
                filled += 1
                guard filled == 8 else { continue }
                output.append(bits)
                (bits, filled) = (0, 0)
            }
        }
        func copy() {
            put(0b1100_0101, 8)
            put(0, 5)
        }
        put(0b110, 3)
        put(0b0011_0000, 8)
        let copies = (count - 1) / 258
        // Eight copies are exactly thirteen bytes, always the same.
        let start = output.count
        for _ in 0..<8 { copy() }
        let eight = Array(output[start...])
        for _ in 1..<(copies / 8) { output += eight }
        for _ in 0..<(copies % 8) { copy() }
        for _ in 0..<((count - 1) % 258) { put(0b0011_0000, 8) }
        put(0, 7)
        if filled > 0 { output.append(bits) }
        return output + big((count % 65_521) << 16 | 1)
    }

    /// Returns a GIF whose frames are one black pixel each.
    public static func gif(frames: Int) -> [UInt8] {
        var output = Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF]
        for _ in 0..<frames {
            output += [0x21, 0xF9, 4, 0, 1, 0, 0, 0]
            output += [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0]
        }
        return output + [0x3B]
    }

    /// Returns a chunk with its length and checksum.
    public static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + content
        var sum: UInt32 = 0xFFFF_FFFF
        for byte in body { sum = sum >> 8 ^ checksums[Int((sum ^ UInt32(byte)) & 255)] }
        return big(content.count) + body + big(Int(~sum))
    }

    private static let checksums: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }

    private static func big(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    /// Returns a zlib stream of stored blocks.
    public static func stored(_ raw: [UInt8]) -> [UInt8] {
        var output: [UInt8] = [0x78, 0x01]
        var offset = 0
        repeat {
            let count = min(65_535, raw.count - offset)
            let isLast: UInt8 = offset + count == raw.count ? 1 : 0
            output += [isLast, UInt8(count & 255), UInt8(count >> 8), UInt8(~count & 255), UInt8(~count >> 8 & 255)]
            output += raw[offset..<offset + count]
            offset += count
        } while offset < raw.count
        var (low, high) = (1, 0)
        for byte in raw {
            low = (low + Int(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return output + big(high << 16 | low)
    }
}
