/// Parses the chunks of a WebP file.
enum WebPStructure {
    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard let size = reader.little32(4), let first = reader.text(12, 4) else { throw .truncated }
        guard var header = image(reader, first) else { throw .truncated }
        header.isComplete = size + 8 <= reader.count
        var frames = 0
        var offset = 12
        while let name = reader.text(offset, 4), let length = reader.little32(offset + 4) {
            let start = offset + 8
            if let content = reader.slice(start, length) {
                switch name {
                case "EXIF":
                    let skip = reader.has("Exif\0\0", at: start) ? 6 : 0
                    header.exif = content.startIndex + skip..<content.endIndex
                case "XMP ": header.xmp = content.startIndex..<content.endIndex
                case "ANMF": frames += 1
                default: break
                }
            }
            guard length <= reader.count - start else { break }
            offset = start + length + length & 1
        }
        header.frameCount = max(1, frames)
        return header
    }

    private static func image(_ reader: ByteReader, _ first: String) -> ImageHeader? {
        switch first {
        case "VP8X":
            guard let flags = reader.byte(20), let width = reader.little24(24), let height = reader.little24(27) else {
                return nil
            }
            var header = ImageHeader(kind: .webp, storedWidth: width + 1, storedHeight: height + 1)
            header.hasAlpha = flags & 0x10 != 0
            return header
        case "VP8 ":
            // The start code of a key frame (RFC 6386, section 9.1).
            guard reader.slice(23, 3)?.elementsEqual([0x9D, 0x01, 0x2A]) == true, let width = reader.little16(26),
                let height = reader.little16(28)
            else { return nil }
            return ImageHeader(kind: .webp, storedWidth: width & 0x3FFF, storedHeight: height & 0x3FFF)
        case "VP8L":
            guard reader.byte(20) == 0x2F, let bits = reader.little32(21) else { return nil }
            var header = ImageHeader(
                kind: .webp,
                storedWidth: bits & 0x3FFF + 1,
                storedHeight: bits >> 14 & 0x3FFF + 1
            )
            header.hasAlpha = bits >> 28 & 1 == 1
            return header
        default: return nil
        }
    }
}
