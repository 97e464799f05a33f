/// Writes EXIF and XMP into JPEG files. Image data is copied byte for byte.
enum JPEGMetadataWriter {
    /// The maximum size of a segment's content, which follows the two length bytes.
    static let longestSegment = 65_533

    /// Returns a JPEG with the given blocks directly after its start; `exif` and `xmp` replace those that it had. A block
    /// that is too long for a segment is omitted.
    ///
    /// - Parameter iptc: IPTC records, or a Photoshop resource block that contains them
    static func replacing(in file: [UInt8], exif: [UInt8]?, xmp: [UInt8]?, iptc: [UInt8]? = nil) -> [UInt8] {
        var output: [UInt8] = [0xFF, 0xD8]
        output.reserveCapacity(file.count + (exif?.count ?? 0) + (xmp?.count ?? 0) + 64)
        if let exif { append(exifName + exif, to: &output) }
        if let xmp { append(xmpName + xmp, to: &output) }
        if let iptc { append(photoshopName + resourceBlock(iptc), marker: 0xED, to: &output) }
        var offset = 2
        while offset + 4 <= file.count, file[offset] == 0xFF {
            let marker = file[offset + 1]
            guard marker != 0xDA, marker != 0xD9 else { break }
            let end = offset + 2 + (Int(file[offset + 2]) << 8 | Int(file[offset + 3]))
            guard end <= file.count, end > offset + 3 else { break }
            let content = file[offset + 4..<end]
            let isReplaced = marker == 0xE1 && (content.starts(with: exifName) || content.starts(with: xmpName))
            if !isReplaced { output += file[offset..<end] }
            offset = end
        }
        return output + file[offset...]
    }

    private static let exifName = Array("Exif\0\0".utf8)
    private static let xmpName = Array("http://ns.adobe.com/xap/1.0/\0".utf8)

    private static let photoshopName = Array("Photoshop 3.0\0".utf8)

    /// Returns the records as Photoshop's resource 0x0404, unless they are one already.
    private static func resourceBlock(_ iptc: [UInt8]) -> [UInt8] {
        guard !iptc.starts(with: Array("8BIM".utf8)) else { return iptc }
        let count = (0..<4).map { UInt8(truncatingIfNeeded: iptc.count >> (24 - 8 * $0)) }
        return Array("8BIM".utf8) + [4, 4, 0, 0] + count + iptc + [UInt8](repeating: 0, count: iptc.count & 1)
    }

    private static func append(_ content: [UInt8], marker: UInt8 = 0xE1, to output: inout [UInt8]) {
        guard content.count <= longestSegment else { return }
        let length = content.count + 2
        output += [0xFF, marker, UInt8(length >> 8), UInt8(length & 255)] + content
    }
}

/// Writes EXIF and XMP into PNG files. Image data is copied byte for byte.
enum PNGMetadataWriter {
    /// Returns a PNG with the given blocks directly after its header chunk, in place of those that it had.
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

/// Writes EXIF and XMP into WebP files. Image data is copied byte for byte.
enum WebPMetadataWriter {
    /// Returns a WebP in the extended format with the given blocks at its end, in place of those that it had.
    static func replacing(
        in file: [UInt8],
        exif: [UInt8]?,
        xmp: [UInt8]?,
        width: Int,
        height: Int,
        hasAlpha: Bool
    ) -> [UInt8] {
        var chunks: [UInt8] = []
        var flags: UInt8 = hasAlpha ? 0x10 : 0
        var offset = 12
        while offset + 8 <= file.count {
            let name = file[offset..<offset + 4]
            let length = file[offset + 4..<offset + 8].reversed().reduce(0) { $0 << 8 | Int($1) }
            guard length <= file.count - offset - 8 else { break }
            let end = min(file.count, offset + 8 + length + length & 1)
            if name.elementsEqual("VP8X".utf8) {
                flags |= file[offset + 8] & 0x32
            } else if !name.elementsEqual("EXIF".utf8), !name.elementsEqual("XMP ".utf8) {
                chunks += file[offset..<end]
            }
            offset = end
        }
        if let exif {
            flags |= 0x08
            chunks += chunk("EXIF", exif)
        }
        if let xmp {
            flags |= 0x04
            chunks += chunk("XMP ", xmp)
        }
        let head = chunk("VP8X", [flags, 0, 0, 0] + little(width - 1, 3) + little(height - 1, 3))
        return Array("RIFF".utf8) + little(4 + head.count + chunks.count, 4) + Array("WEBP".utf8) + head + chunks
    }

    private static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
        Array(name.utf8) + little(content.count, 4) + content + [UInt8](repeating: 0, count: content.count & 1)
    }

    private static func little(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
