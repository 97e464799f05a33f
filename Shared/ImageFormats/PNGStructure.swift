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
        var colours = PNGColourChunks()
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
            case "cICP", "iCCP", "sRGB", "gAMA", "cHRM":
                if let content = reader.slice(start, length) { colours.note(name, ByteReader(content)) }
                header.codedColours = colours.colours
            case "tRNS": header.hasAlpha = true
            case "acTL": header.frameCount = max(1, reader.big32(start) ?? 1)
            case "IEND":
                header.isComplete = reader.count >= start + 4
                return header
            default: break
            }
            guard length <= reader.count - start else { break }
            offset = start + length + 4
        }
        return header
    }
}
