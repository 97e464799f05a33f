/// Files that mean harm, made by code.
public enum HostilePictures {
    /// A small PNG with a compressed text chunk that becomes so many bytes when it is opened.
    ///
    /// - Parameter chunk: `zTXt`, `iTXt` or `iCCP`
    public static func textBomb(_ chunk: String, bytes: Int) -> [UInt8] {
        let keyword = Array("Comment".utf8) + [0]
        let content: [UInt8] =
            switch chunk {
            // Compressed, deflate, no language, no translated keyword.
            case "iTXt": keyword + [1, 0, 0, 0]
            default: keyword + [0]
            }
        return TestPictures.png(width: 8, height: 8, chunks: [(chunk, content + zeros(bytes))]) { _, _ in
            (200, 100, 50, 255)
        }
    }

    /// A PNG that declares a size and holds a few pixels of it.
    public static func hugePNG(width: Int, height: Int) -> [UInt8] {
        TestPictures.pngStart(width: width, height: height) + TestPictures.chunk("IDAT", zeros(4096))
            + TestPictures.chunk("IEND", [])
    }

    /// HEIF boxes within boxes.
    public static func nestedBoxes(depth: Int) -> [UInt8] {
        let start: [UInt8] = [0, 0, 0, 24] + Array("ftypheic".utf8) + [0, 0, 0, 0] + Array("mif1heic".utf8)
        var bytes = start
        for level in 0..<depth {
            bytes += big((depth - level) * 8) + Array((level == 0 ? "meta" : "iprp").utf8)
        }
        return bytes
    }

    /// A BMP that declares a size and holds nothing.
    public static func hugeBMP(side: Int) -> [UInt8] {
        func little(_ number: Int) -> [UInt8] { big(number).reversed() }
        return Array("BM".utf8) + little(1000) + little(0) + little(54) + little(40) + little(side) + little(side)
            + [1, 0, 24, 0] + little(0) + little(900) + little(2835) + little(2835) + little(0) + little(0)
            + [UInt8](repeating: 7, count: 900)
    }

    /// A TIFF whose first directory is followed by itself.
    public static let loopingTIFF: [UInt8] =
        Array("II".utf8) + [42, 0, 8, 0, 0, 0, 2, 0]
        + [0, 1, 3, 0, 1, 0, 0, 0, 16, 0, 0, 0, 1, 1, 3, 0, 1, 0, 0, 0, 16, 0, 0, 0] + [8, 0, 0, 0]

    /// Text that ImageMagick would obey, were it asked to find out what it is.
    public static let texts: [(name: String, text: String)] = [
        (
            "svg.jpg",
            """
            <?xml version="1.0"?><svg width="10" height="10" xmlns="http://www.w3.org/2000/svg"
            xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="text:/etc/passwd" width="9" height="9"/></svg>
            """
        ),
        (
            "mvg.jpg",
            "push graphic-context\nviewbox 0 0 9 9\nimage over 0,0 0,0 'https://127.0.0.1/x'\npop graphic-context\n"
        ),
        (
            "msl.jpg",
            "<?xml version=\"1.0\"?><image><read filename=\"/etc/passwd\"/><write filename=\"/tmp/x\"/></image>"
        ),
        ("ps.png", "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) (r) file\nshowpage\n"),
        ("msl:x", "<image><read filename=\"/etc/passwd\"/></image>"),
    ]

    /// A zlib stream of zeros: each thirteen bits repeat 258 of them.
    static func zeros(_ count: Int) -> [UInt8] {
        var writer = BitWriter()
        writer.put(1, bits: 1)
        writer.put(1, bits: 2)
        let repeats = max(0, count - 1) / 258
        let rest = count - repeats * 258
        // The table of fixed codes; Huffman codes stand with their first bit first.
        for _ in 0..<rest { writer.code(0x30, bits: 8) }
        for _ in 0..<repeats {
            writer.code(0xC5, bits: 8)
            writer.code(0, bits: 5)
        }
        writer.code(0, bits: 7)
        // Adler-32 of zeros: the first sum stays one.
        return [0x78, 0xDA] + writer.finished + big((count % 65_521) << 16 | 1)
    }

    private struct BitWriter {
        private var bytes: [UInt8] = []
        private var pending: UInt64 = 0
        private var count = 0

        mutating func put(_ value: UInt64, bits: Int) {
            pending |= value << UInt64(count)
            count += bits
            while count >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: pending))
                pending >>= 8
                count -= 8
            }
        }

        mutating func code(_ value: UInt64, bits: Int) {
            var turned: UInt64 = 0
            for bit in 0..<bits where value >> UInt64(bit) & 1 == 1 { turned |= 1 << UInt64(bits - 1 - bit) }
            put(turned, bits: bits)
        }

        var finished: [UInt8] { count > 0 ? bytes + [UInt8(truncatingIfNeeded: pending)] : bytes }
    }

    private static func big(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
}
