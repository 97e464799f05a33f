/// The header of a Truevision TGA file.
///
/// The format has no magic number, so every field of the header has to have an allowed value.
public struct TGAStructure: Sendable, Hashable {
    public enum Pixels: Sendable, Hashable { case palette, colour, grey }

    public let pixels: Pixels
    /// True if runs of equal pixels are compressed.
    public let isCompressed: Bool
    public let width: Int
    public let height: Int
    /// Bits of a stored pixel: 8, 15, 16, 24 or 32.
    public let depth: Int
    /// Bits of a pixel that are its opacity.
    public let alphaBits: Int
    public let isTopDown: Bool
    /// True if rows are stored from right to left.
    public let isMirrored: Bool
    /// The number of the palette's first colour.
    public let paletteFirst: Int
    /// The range of the palette in the file, and the bits of each of its colours.
    public let palette: Range<Int>
    public let paletteDepth: Int
    /// The offset of the first pixel.
    public let start: Int

    static let headerBytes = 18

    /// Bytes of a stored pixel.
    public var pixelBytes: Int { (depth + 7) / 8 }

    /// Parses the first bytes; nil if they are not a TGA file's.
    public init?(_ reader: ByteReader) {
        guard reader.count >= Self.headerBytes, let idLength = reader.byte(0), let paletteType = reader.byte(1),
            let type = reader.byte(2), let first = reader.little16(3), let count = reader.little16(5),
            let colourBits = reader.byte(7), let width = reader.little16(12), let height = reader.little16(14),
            let depth = reader.byte(16), let descriptor = reader.byte(17)
        else { return nil }
        guard paletteType <= 1, [1, 2, 3, 9, 10, 11].contains(type), width > 0, height > 0, descriptor & 0xC0 == 0
        else {
            return nil
        }
        if paletteType == 0 {
            guard first == 0, count == 0, colourBits == 0 else { return nil }
        } else {
            guard count > 0, [15, 16, 24, 32].contains(colourBits) else { return nil }
        }
        alphaBits = descriptor & 15
        let allowed: [Int: [Int]]
        switch type & 7 {
        case 1:
            guard paletteType == 1 else { return nil }
            (pixels, allowed) = (.palette, [8: [0, 8], 16: [0]])
        case 2: (pixels, allowed) = (.colour, [15: [0, 1], 16: [0, 1], 24: [0], 32: [0, 8]])
        default: (pixels, allowed) = (.grey, [8: [0], 16: [8]])
        }
        guard allowed[depth]?.contains(alphaBits) == true else { return nil }
        isCompressed = type >= 9
        (self.width, self.height, self.depth) = (width, height, depth)
        isTopDown = descriptor & 0x20 != 0
        isMirrored = descriptor & 0x10 != 0
        (paletteFirst, paletteDepth) = (first, colourBits)
        let paletteStart = Self.headerBytes + idLength
        start = paletteStart + count * ((colourBits + 7) / 8)
        palette = paletteStart..<start
    }

    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard let image = TGAStructure(reader) else { throw .invalid("a TGA file with an impossible header") }
        var header = ImageHeader(kind: .tga, storedWidth: image.width, storedHeight: image.height)
        header.hasAlpha = image.alphaBits > 0 || image.pixels == .palette && image.paletteDepth == 32
        header.isComplete = image.isComplete(reader)
        return header
    }

    /// Returns true if all pixels are in the file.
    private func isComplete(_ reader: ByteReader) -> Bool {
        let total = width * height
        guard isCompressed else { return reader.count - start >= total * pixelBytes }
        var (offset, pixels) = (start, 0)
        while pixels < total {
            guard let packet = reader.byte(offset) else { return false }
            let count = packet & 0x7F + 1
            offset += 1 + (packet & 0x80 != 0 ? 1 : count) * pixelBytes
            pixels += count
        }
        return offset <= reader.count
    }
}
