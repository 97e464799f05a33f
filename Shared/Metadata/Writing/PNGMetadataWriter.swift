/// Writes EXIF and XMP into PNG files. Image data is copied byte for byte.
enum PNGMetadataWriter {
    /// Returns a PNG with the given blocks directly after its header chunk, which replace those that it had.
    static func replacing(in file: [UInt8], exif: [UInt8]?, xmp: [UInt8]?) -> [UInt8] {
        var output = Array(file.prefix(8))
        var offset = 8
        while offset + 12 <= file.count {
            let length = file[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= file.count - offset - 12 else { break }
            let name = Array(file[offset + 4..<offset + 8])
            let end = offset + 12 + length
            let isXMP =
                name == Array("iTXt".utf8) && file[offset + 8..<end].starts(with: Array("XML:com.adobe.xmp".utf8))
            if name != Array("eXIf".utf8), !isXMP { output += file[offset..<end] }
            offset = end
            if name == Array("IHDR".utf8) {
                if let exif { append("eXIf", exif, to: &output) }
                if let xmp { append("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + xmp, to: &output) }
            }
        }
        return output
    }

    private static func append(_ name: String, _ content: [UInt8], to output: inout [UInt8]) {
        let body = Array(name.utf8) + content
        output += big(UInt32(truncatingIfNeeded: content.count)) + body + big(checksum(body))
    }

    private static func big(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
        return ~sum
    }
}
