/// Parses the first directory of a TIFF structure: of a TIFF file or of an EXIF block.
public enum TIFFStructure {
    private static let longest = 4096

    static func read(_ file: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard let directory = Directory(file, at: nil) else { throw .truncated }
        guard let width = directory.number(0x0100), let height = directory.number(0x0101) else {
            throw .invalid("a TIFF file whose first directory has no size")
        }
        var header = ImageHeader(kind: .tiff, storedWidth: width, storedHeight: height)
        header.exif = file.bytes.startIndex..<file.bytes.endIndex
        header.hasAlpha = directory.number(0x0152) != nil
        if let packet = directory.bytes(0x02BC) { header.xmp = packet }
        return header
    }

    /// Returns the stored orientation (tag 0x0112) of an EXIF block.
    public static func orientation(_ block: ByteReader) -> Int? {
        Directory(block, at: nil)?.number(0x0112)
    }

    /// Returns true if a file that begins like TIFF is a camera raw file: it has a DNG version, or one of its
    /// directories contains sensor data.
    public static func isRaw(_ file: ByteReader) -> Bool {
        guard let first = Directory(file, at: nil) else { return false }
        let directories = [first] + first.places(directoriesTag).compactMap { Directory(file, at: $0) }
        return first.number(dngTag) != nil
            || directories.contains { sensorValues.contains($0.number(photometricTag) ?? 0) }
    }

    private static let directoriesTag = 0x014A
    private static let dngTag = 0xC612
    private static let photometricTag = 0x0106
    /// Colour filter array, and linear raw.
    private static let sensorValues = [32_803, 34_892]

    /// Returns the range of the JPEG preview of an EXIF block: the one in the second directory.
    public static func preview(_ block: ByteReader) -> Range<Int>? {
        guard let first = Directory(block, at: nil), let next = first.next, next > 0,
            let second = Directory(block, at: next), let offset = second.number(0x0201),
            let length = second.number(0x0202), length > 100, let content = second.reader.slice(offset, length),
            content.starts(with: [0xFF, 0xD8, 0xFF])
        else { return nil }
        return content.startIndex..<content.endIndex
    }

    /// One image file directory.
    private struct Directory {
        let reader: ByteReader
        let start: Int
        let count: Int

        init?(_ block: ByteReader, at offset: Int?) {
            switch block.text(0, 2) {
            case "II": reader = ByteReader(block.bytes, isLittle: true)
            case "MM": reader = ByteReader(block.bytes, isLittle: false)
            default: return nil
            }
            guard reader.short(2) == 42, let start = offset ?? reader.long(4), let count = reader.short(start),
                count <= TIFFStructure.longest
            else { return nil }
            self.start = start
            self.count = count
        }

        /// The offset of the next directory.
        var next: Int? { reader.long(start + 2 + 12 * count) }

        private func entry(_ tag: Int) -> Int? {
            for index in 0..<count where reader.short(start + 2 + 12 * index) == tag { return start + 2 + 12 * index }
            return nil
        }

        /// Returns the first value of a field of type byte, short or long.
        func number(_ tag: Int) -> Int? {
            guard let entry = entry(tag) else { return nil }
            return switch reader.short(entry + 2) {
            case 1: reader.byte(entry + 8)
            case 3: reader.short(entry + 8)
            case 4: reader.long(entry + 8)
            default: nil
            }
        }

        /// Returns the values of a field of offsets, at most eight.
        func places(_ tag: Int) -> [Int] {
            guard let entry = entry(tag), let type = reader.short(entry + 2), type == 4 || type == 13,
                let count = reader.long(entry + 4), count > 0
            else { return [] }
            guard count > 1, let start = reader.long(entry + 8) else {
                return [reader.long(entry + 8)].compactMap { $0 }
            }
            return (0..<min(count, 8)).compactMap { reader.long(start + 4 * $0) }
        }

        /// Returns the range of the bytes of a field of type byte or undefined.
        func bytes(_ tag: Int) -> Range<Int>? {
            guard let entry = entry(tag), let type = reader.short(entry + 2), type == 1 || type == 7,
                let length = reader.long(entry + 4), length > 4, let offset = reader.long(entry + 8),
                let content = reader.slice(offset, length)
            else { return nil }
            return content.startIndex..<content.endIndex
        }
    }
}
