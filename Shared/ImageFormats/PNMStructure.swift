/// The header of a portable bitmap, graymap, pixmap or arbitrary map: P1 to P7 of Netpbm.
public struct PNMStructure: Sendable, Hashable {
    /// The digit after the P: 1 to 3 have samples as text, 4 to 6 binary ones, 7 is the arbitrary map.
    public let variant: Int
    public private(set) var width = 0
    public private(set) var height = 0
    /// The value of a full sample, 1...65,535.
    public private(set) var maximum = 1
    /// Samples of each pixel, 1...4.
    public private(set) var channels = 1
    /// The offset of the first sample.
    public private(set) var start = 0

    /// True if the last sample of each pixel is its opacity.
    public var hasAlpha: Bool { channels == 2 || channels == 4 }
    /// True if the samples are text.
    public var isText: Bool { variant <= 3 }
    /// True if a set sample is black.
    public var isInk: Bool { variant == 1 || variant == 4 }

    /// The maximum length of a header with its comments, in bytes.
    private static let maxHeaderBytes = 65_536

    /// Returns true if the bytes begin a portable map.
    static func sniff(_ head: [UInt8]) -> Bool {
        guard head.count >= 3, head[0] == UInt8(ascii: "P"), (0x31...0x37).contains(head[1]), isSpace(Int(head[2]))
        else { return false }
        let next = head.dropFirst(2).first { !isSpace(Int($0)) }
        guard let next else { return false }
        if next == UInt8(ascii: "#") { return true }
        return head[1] == 0x37 ? (0x41...0x5A).contains(next) : (0x30...0x39).contains(next)
    }

    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        let map = try PNMStructure(reader)
        var header = ImageHeader(kind: .pnm, storedWidth: map.width, storedHeight: map.height)
        header.hasAlpha = map.hasAlpha
        header.isComplete = map.minBytes.map { $0 <= reader.count - map.start } ?? false
        return header
    }

    /// The minimum number of bytes of the samples; nil if it overflows.
    private var minBytes: Int? {
        let (pixels, isTooMuch) = width.multipliedReportingOverflow(by: height)
        guard !isTooMuch, pixels <= 1 << 50 else { return nil }
        return switch variant {
        case 1: pixels
        case 2, 3: 2 * pixels * channels - 1
        case 4: (width + 7) / 8 * height
        default: pixels * channels * (maximum > 255 ? 2 : 1)
        }
    }

    public init(_ reader: ByteReader) throws(ImageHeader.Failure) {
        guard let digit = reader.byte(1), (0x31...0x37).contains(digit) else { throw .invalid("not a portable map") }
        variant = digit - 0x30
        var offset = 2
        if variant == 7 {
            try readFields(reader, &offset)
        } else {
            width = try Self.number(reader, &offset)
            height = try Self.number(reader, &offset)
            maximum = variant == 1 || variant == 4 ? 1 : try Self.number(reader, &offset)
            channels = variant == 3 || variant == 6 ? 3 : 1
            guard let space = reader.byte(offset) else { throw .truncated }
            guard Self.isSpace(space) else { throw .invalid("a portable map without space after its header") }
            offset += 1
        }
        start = offset
        guard width > 0, height > 0, (1...65_535).contains(maximum), (1...4).contains(channels) else {
            throw .invalid("a portable map of \(width) by \(height) pixels, \(channels) samples up to \(maximum)")
        }
    }

    private mutating func readFields(_ reader: ByteReader, _ offset: inout Int) throws(ImageHeader.Failure) {
        channels = 0
        while true {
            switch try Self.word(reader, &offset) {
            case "WIDTH": width = try Self.number(reader, &offset)
            case "HEIGHT": height = try Self.number(reader, &offset)
            case "DEPTH": channels = try Self.number(reader, &offset)
            case "MAXVAL": maximum = try Self.number(reader, &offset)
            case "TUPLTYPE": _ = try Self.word(reader, &offset)
            case "ENDHDR":
                guard reader.byte(offset) == 0x0A else {
                    throw .invalid("a portable map without space after its header")
                }
                offset += 1
                return
            default: throw .invalid("a portable map with an unknown field")
            }
        }
    }

    private static func number(_ reader: ByteReader, _ offset: inout Int) throws(ImageHeader.Failure) -> Int {
        guard let value = Int(try word(reader, &offset)), (0...1_000_000_000).contains(value) else {
            throw .invalid("a portable map with an impossible number")
        }
        return value
    }

    /// Returns the next word. Space and comments before it are skipped.
    private static func word(_ reader: ByteReader, _ offset: inout Int) throws(ImageHeader.Failure) -> String {
        while let byte = reader.byte(offset), isSpace(byte) || byte == 0x23, offset < maxHeaderBytes {
            if byte == 0x23 {
                while let next = reader.byte(offset), next != 0x0A, offset < maxHeaderBytes { offset += 1 }
            }
            offset += 1
        }
        let first = offset
        while let byte = reader.byte(offset), !isSpace(byte), byte != 0x23 {
            guard offset - first < 32, (0x21...0x7E).contains(byte) else {
                throw .invalid("a portable map with an impossible header")
            }
            offset += 1
        }
        guard offset < reader.count else { throw .truncated }
        return reader.text(first, offset - first) ?? ""
    }

    static func isSpace(_ byte: Int) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
