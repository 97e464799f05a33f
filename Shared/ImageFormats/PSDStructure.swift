/// The sections of a Photoshop file that describe its flattened image (Adobe Photoshop File Formats Specification).
public struct PSDStructure: Sendable, Hashable {
    public enum Mode: Int, Sendable, Hashable {
        case bitmap = 0, grey = 1, indexed = 2, rgb = 3, cmyk = 4, duotone = 8

        /// Channels of the colour; further ones are opacity or masks.
        public var channels: Int {
            switch self {
            case .rgb: 3
            case .cmyk: 4
            default: 1
            }
        }
    }

    /// True for the large document format, PSB, whose lengths have more bytes.
    public let isLarge: Bool
    public let mode: Mode
    /// Channels of the flattened image, at least those of the mode.
    public let channels: Int
    public let width: Int
    public let height: Int
    /// Bits of a sample: 1, 8 or 16.
    public let depth: Int
    /// The colours of an indexed image: 256 red, then green, then blue values.
    public private(set) var palette: Range<Int>?
    public private(set) var profile: Range<Int>?
    /// True if the channel after those of the colour is the opacity of the flattened image.
    public private(set) var hasAlpha = false
    /// True if the rows are compressed with PackBits.
    public private(set) var isCompressed = false
    /// The offset of the samples, or of the lengths of compressed rows.
    public private(set) var start = 0
    private var exif: Range<Int>?
    private var xmp: Range<Int>?
    private var iptc: Range<Int>?
    private var hasFlattenedImage = true

    /// Bytes of an uncompressed row of one channel.
    public var rowBytes: Int { (width * depth + 7) / 8 }

    public init(_ reader: ByteReader) throws(ImageHeader.Failure) {
        guard let version = reader.big16(4), let channels = reader.big16(12), let height = reader.big32(14),
            let width = reader.big32(18), let depth = reader.big16(22), let number = reader.big16(24)
        else { throw .truncated }
        guard version == 1 || version == 2, reader.slice(6, 6)?.allSatisfy({ $0 == 0 }) == true,
            (1...56).contains(channels), (1...300_000).contains(width), (1...300_000).contains(height),
            [1, 8, 16, 32].contains(depth), number <= 9
        else { throw .invalid("a Photoshop file with an impossible header") }
        guard let mode = Mode(rawValue: number) else {
            throw .unsupported(found: number == 9 ? "a Photoshop file in Lab colours" : "a multichannel Photoshop file")
        }
        guard depth != 32 else { throw .unsupported(found: "a Photoshop file with 32 bits per sample") }
        guard channels >= mode.channels, (depth == 1) == (mode == .bitmap), mode != .indexed || depth == 8 else {
            throw .invalid("a Photoshop file with \(channels) channels of \(depth) bits")
        }
        isLarge = version == 2
        (self.mode, self.channels, self.width, self.height, self.depth) = (mode, channels, width, height, depth)
        var offset = 26
        let colours = try Self.section(reader, &offset)
        if mode == .indexed {
            guard colours.count >= 768 else { throw .invalid("an indexed Photoshop file without colours") }
            palette = colours
        }
        readResources(reader, try Self.section(reader, &offset))
        let layers = try Self.section(reader, &offset, isLong: isLarge)
        hasAlpha = channels > mode.channels && mode != .indexed && Self.hasOpacity(reader, layers, isLarge: isLarge)
        guard let compression = reader.big16(offset) else { throw .truncated }
        guard hasFlattenedImage else {
            throw .unsupported(
                found: "a Photoshop file without a flattened image; save it with maximum compatibility"
            )
        }
        guard compression <= 1 else { throw .unsupported(found: "a Photoshop file whose flattened image is zipped") }
        isCompressed = compression == 1
        start = offset + 2
    }

    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        let file = try PSDStructure(reader)
        var header = ImageHeader(kind: .psd, storedWidth: file.width, storedHeight: file.height)
        header.hasAlpha = file.hasAlpha
        header.exif = file.exif
        header.xmp = file.xmp
        header.iptc = file.iptc
        header.isComplete = file.isComplete(reader)
        return header
    }

    /// Returns the range of a section's content, and moves `offset` behind it.
    private static func section(
        _ reader: ByteReader,
        _ offset: inout Int,
        isLong: Bool = false
    ) throws(ImageHeader.Failure) -> Range<Int> {
        let size = isLong ? 8 : 4
        guard let length = reader.big(offset, size), reader.slice(offset + size, length) != nil else {
            throw .truncated
        }
        let start = offset + size
        offset = start + length
        return start..<offset
    }

    /// Returns true if the number of layers is negative, which means that the flattened image has opacity. With 16 bits
    /// per sample the layers are in a block after their normal position, which is empty.
    private static func hasOpacity(_ reader: ByteReader, _ layers: Range<Int>, isLarge: Bool) -> Bool {
        func isNegative(_ offset: Int) -> Bool { (reader.big16(offset) ?? 0) >= 0x8000 }
        let size = isLarge ? 8 : 4
        guard layers.count > 8, let layerBytes = reader.big(layers.lowerBound, size) else { return false }
        guard layerBytes == 0 else { return isNegative(layers.lowerBound + size) }
        guard let mask = reader.big32(layers.lowerBound + size) else { return false }
        var offset = layers.lowerBound + size + 4 + mask
        while offset < layers.upperBound, reader.has("8BIM", at: offset) || reader.has("8B64", at: offset),
            let key = reader.text(offset + 4, 4)
        {
            // "Mt16" has no content: it indicates opacity.
            if key == "Mt16" { return true }
            let size = isLarge && longBlocks.contains(key) ? 8 : 4
            let start = offset + 8 + size
            guard let length = reader.big(offset + 8, size), length <= layers.upperBound - start else { return false }
            if key == "Lr16", length >= 2, isNegative(start) { return true }
            // Padded to a multiple of four bytes.
            offset = start + (length + 3) / 4 * 4
        }
        return false
    }

    /// The blocks whose lengths have eight bytes in the large document format.
    private static let longBlocks: Set<String> = [
        "LMsk", "Lr16", "Lr32", "Layr", "Mt16", "Mt32", "Mtrn", "Alph", "FMsk", "lnk2", "FEid", "FXid", "PxSD",
    ]

    /// Finds the profile and the metadata among the image resources. A damaged list is read up to the damage.
    private mutating func readResources(_ reader: ByteReader, _ list: Range<Int>) {
        var offset = list.lowerBound
        while reader.has("8BIM", at: offset), let id = reader.big16(offset + 4), let name = reader.byte(offset + 6) {
            let at = offset + 6 + (name + 2) / 2 * 2
            guard let length = reader.big32(at), at + 4 + length <= list.upperBound else { return }
            let content = (at + 4)..<(at + 4 + length)
            switch id {
            case 1028: iptc = content
            case 1039: profile = content
            case 1057: hasFlattenedImage = reader.byte(content.lowerBound + 4) != 0
            case 1058: exif = content
            case 1060: xmp = content
            default: break
            }
            offset = content.upperBound + length % 2
        }
    }

    /// Returns the lengths of the compressed rows in the order of the file; nil if the file ends before them.
    public func rowLengths(_ reader: ByteReader) -> [Int]? {
        let size = isLarge ? 4 : 2
        let rows = channels * height
        guard reader.slice(start, rows * size) != nil else { return nil }
        return (0..<rows).map { reader.big(start + $0 * size, size) ?? 0 }
    }

    private func isComplete(_ reader: ByteReader) -> Bool {
        guard isCompressed else { return reader.count - start >= channels * height * rowBytes }
        guard let lengths = rowLengths(reader) else { return false }
        return start + lengths.count * (isLarge ? 4 : 2) + lengths.reduce(0, +) <= reader.count
    }
}
