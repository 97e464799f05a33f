/// Parses the boxes of a JPEG XL file and the beginning of its codestream (ISO/IEC 18181-1 annex D, 18181-2).
///
/// A file is either a bare codestream, or a sequence of boxes as in ISO media files with the codestream in one or
/// several of them.
enum JPEGXLStructure {
    static let container: [UInt8] = [0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]

    static func read(_ file: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard file.bytes.starts(with: container) else { return try codestream(file) }
        let boxes = BMFFStructure.boxes(file)
        // A partial codestream box begins with its number.
        let parts = boxes.compactMap { box -> ByteReader? in
            switch box.name {
            case "jxlc": box.content
            case "jxlp": box.content.slice(4, box.content.count - 4).map { ByteReader($0) }
            default: nil
            }
        }
        guard let first = parts.first else { throw .truncated }
        var header = try codestream(first)
        header.isComplete = boxes.allSatisfy(\.isWhole)
        for box in boxes where box.isWhole {
            if box.name == "xml ", header.xmp == nil {
                header.xmp = box.content.bytes.indices
            } else if box.name == "Exif", header.exif == nil, let offset = box.content.big32(0),
                let content = box.content.slice(4 + offset, box.content.count - 4 - offset)
            {
                header.exif = content.indices
            }
        }
        return header
    }

    private static func codestream(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard reader.byte(0) == 0xFF, reader.byte(1) == 0x0A else { throw .invalid("a jxl file without a codestream") }
        var bits = Bits(reader, from: 2)
        guard let size = bits.size(), let isDefault = bits.flag() else { throw .truncated }
        var header = ImageHeader(kind: .jxl, storedWidth: size.width, storedHeight: size.height)
        guard !isDefault, bits.flag() == true else { return header }
        guard let turn = bits.number(3), let hasOwnSize = bits.flag() else { throw .truncated }
        // Orientations from five on swap width and height. Decoders apply the codestream's orientation and ignore that
        // of EXIF.
        if turn >= 4 { (header.storedWidth, header.storedHeight) = (size.height, size.width) }
        if hasOwnSize { _ = bits.size() }
        // The size of a preview precedes the animation flag and is not needed here.
        if bits.flag() == false, bits.flag() == true { header.frameCount = 2 }
        return header
    }

    /// Reads bits from the lowest of each byte to the highest.
    private struct Bits {
        private let reader: ByteReader
        private var position: Int

        init(_ reader: ByteReader, from byte: Int) {
            self.reader = reader
            position = byte * 8
        }

        mutating func number(_ count: Int) -> Int? {
            var value = 0
            for index in 0..<count {
                guard let byte = reader.byte(position / 8) else { return nil }
                value |= (byte >> (position % 8) & 1) << index
                position += 1
            }
            return value
        }

        mutating func flag() -> Bool? { number(1).map { $0 == 1 } }

        /// The aspect ratios by their number in the file.
        private static let ratios = [(0, 0), (1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]

        mutating func size() -> (width: Int, height: Int)? {
            guard let isSmall = flag(), let height = side(isSmall), let ratio = number(3) else { return nil }
            guard ratio == 0 else { return (height * Self.ratios[ratio].0 / Self.ratios[ratio].1, height) }
            return side(isSmall).map { ($0, height) }
        }

        private mutating func side(_ isSmall: Bool) -> Int? {
            if isSmall { return number(5).map { ($0 + 1) * 8 } }
            guard let length = number(2) else { return nil }
            return number([9, 13, 18, 30][length]).map { $0 + 1 }
        }
    }
}
