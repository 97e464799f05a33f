/// Parses the chunks of a PNG file.
enum PNGStructure {
    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard reader.has("IHDR", at: 12), let width = reader.big32(16), let height = reader.big32(20),
            let colour = reader.byte(25), let depth = reader.byte(24)
        else { throw .truncated }
        guard [1, 2, 4, 8, 16].contains(depth), [0, 2, 3, 4, 6].contains(colour) else {
            throw .invalid("a PNG file of colour type \(colour) with \(depth) bits")
        }
        var header = ImageHeader(kind: .png, storedWidth: width, storedHeight: height)
        header.hasAlpha = colour & 4 != 0
        header.isComplete = false
        var offset = 8
        while let length = reader.big32(offset), let name = reader.text(offset + 4, 4) {
            let start = offset + 8
            switch name {
            case "eXIf":
                if let content = reader.slice(start, length) { header.exif = content.startIndex..<content.endIndex }
            case "iTXt":
                if header.xmp == nil, reader.has("XML:com.adobe.xmp\0\0\0\0\0", at: start),
                    let content = reader.slice(start, length), content.count > 22
                {
                    header.xmp = content.startIndex + 22..<content.endIndex
                } else if let content = reader.slice(start, length) {
                    header.texts.add(name, content)
                }
            case "tEXt", "zTXt", "tIME":
                if let content = reader.slice(start, length) { header.texts.add(name, content) }
            case "tRNS": header.hasAlpha = true
            case "acTL": header.frameCount = max(1, reader.big32(start) ?? 1)
            case "IEND":
                header.isComplete = true
                return header
            default: break
            }
            guard length <= reader.count - start else { break }
            offset = start + length + 4
        }
        return header
    }
}

/// Parses the blocks of a GIF file.
enum GIFStructure {
    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard var width = reader.little16(6), var height = reader.little16(8), let flags = reader.byte(10) else {
            throw .truncated
        }
        var frames = 0
        var hasAlpha = false
        var isComplete = false
        var offset = 13 + table(flags)
        scan: while let block = reader.byte(offset) {
            switch block {
            case 0x2C:
                guard let left = reader.little16(offset + 1), let top = reader.little16(offset + 3),
                    let across = reader.little16(offset + 5), let down = reader.little16(offset + 7),
                    let local = reader.byte(offset + 9)
                else { break scan }
                frames += 1
                // Some encoders write a canvas that is too small: it is extended to contain the frames.
                width = max(width, left + across)
                height = max(height, top + down)
                guard let end = subBlocks(reader, offset + 11 + table(local)) else { break scan }
                offset = end
            case 0x21:
                if reader.byte(offset + 1) == 0xF9, let control = reader.byte(offset + 3), control & 1 != 0 {
                    hasAlpha = true
                }
                guard let end = subBlocks(reader, offset + 2) else { break scan }
                offset = end
            case 0x3B:
                isComplete = true
                break scan
            default: break scan
            }
        }
        guard frames > 0 else { throw isComplete ? .invalid("a GIF file without an image") : .truncated }
        var header = ImageHeader(kind: .gif, storedWidth: width, storedHeight: height)
        header.frameCount = frames
        header.hasAlpha = hasAlpha
        header.isComplete = isComplete
        return header
    }

    private static func table(_ flags: Int) -> Int { flags & 0x80 == 0 ? 0 : 3 << (flags & 7 + 1) }

    private static func subBlocks(_ reader: ByteReader, _ start: Int) -> Int? {
        var offset = start
        while let length = reader.byte(offset) {
            offset += 1 + length
            if length == 0 { return offset }
        }
        return nil
    }
}

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

/// Parses the header of a BMP file.
enum BMPStructure {
    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard let size = reader.little32(2), let form = reader.little32(14) else { throw .truncated }
        // One plane of an allowed depth follows the size.
        guard let planes = reader.little16(form == 12 ? 22 : 26), let depth = reader.little16(form == 12 ? 24 : 28)
        else { throw .truncated }
        guard planes == 1, [1, 2, 4, 8, 16, 24, 32].contains(depth) else {
            throw .invalid("a BMP file with \(planes) planes of \(depth) bits")
        }
        var header: ImageHeader
        if form == 12 {
            guard let width = reader.little16(18), let height = reader.little16(20) else { throw .truncated }
            header = ImageHeader(kind: .bmp, storedWidth: width, storedHeight: height)
        } else {
            guard let width = reader.little32(18), let height = reader.little32(22) else { throw .truncated }
            // A negative height means that rows are stored from top to bottom.
            let signed = Int(Int32(truncatingIfNeeded: height))
            header = ImageHeader(
                kind: .bmp,
                storedWidth: Int(Int32(truncatingIfNeeded: width)),
                storedHeight: abs(signed)
            )
        }
        header.isComplete = size <= reader.count
        return header
    }
}
