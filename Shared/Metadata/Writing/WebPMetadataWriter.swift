/// Writes EXIF and XMP into WebP files. Image data is copied byte for byte.
enum WebPMetadataWriter {
    /// Returns a WebP in the extended format with the given blocks at its end, which replace those that it had.
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
