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

/// The chunks of a PNG that define its colour space (PNG, third edition, 4.3).
struct PNGColourChunks {
    private var numbers: CodedColours?
    private var hasProfile = false
    private var isSRGB = false
    private var primaries: CodedColours.Primaries?
    private var power: Double?

    /// The colours by numbers, if they take precedence; nil if a profile does, or if the file defines no colours.
    var colours: CodedColours? {
        if let numbers { return numbers }
        if hasProfile { return nil }
        if isSRGB { return .sRGB }
        guard primaries != nil || power != nil else { return nil }
        return CodedColours(primaries: primaries ?? .bt709, transfer: transfer)
    }

    private var transfer: CodedColours.Transfer {
        guard let power else { return .sRGB }
        // Programs write 1 / 2.2, or 0.45, for sRGB, whose curve differs little from it.
        return abs(power - 2.2) < 0.03 ? .sRGB : .power(power)
    }

    mutating func note(_ name: String, _ content: ByteReader) {
        switch name {
        case "cICP":
            // Primaries, transfer function, matrix and range.
            guard let primaries = content.byte(0), let transfer = content.byte(1), content.byte(2) == 0,
                content.byte(3) == 1
            else { return }
            numbers = CodedColours(primaries: primaries, transfer: transfer)
        case "iCCP": hasProfile = true
        case "sRGB": isSRGB = true
        case "gAMA":
            guard let value = content.big32(0), (1000...1_000_000).contains(value) else { return }
            power = 100_000 / Double(value)
        default:
            let values = stride(from: 0, to: 32, by: 4).map { content.big32($0).map { Double($0) / 100_000 } ?? 0 }
            guard values.allSatisfy({ $0 < 1 }), [1, 3, 5, 7].allSatisfy({ values[$0] > 0.01 }) else { return }
            func chromaticity(_ index: Int) -> CodedColours.Chromaticity { .init(values[index], values[index + 1]) }
            primaries = .init(
                red: chromaticity(2),
                green: chromaticity(4),
                blue: chromaticity(6),
                white: chromaticity(0)
            )
        }
    }
}
