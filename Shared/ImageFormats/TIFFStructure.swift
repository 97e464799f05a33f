/// Parses the first directory of a TIFF structure: of a TIFF or BigTIFF file or of an EXIF block.
public enum TIFFStructure {
    /// The maximum number of entries of a directory.
    private static let maxEntries = 4096

    static func read(_ file: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard let first = Directory(file, at: nil) else { throw .truncated }
        let raw = rawContentType(file, first)
        let directory = raw == nil ? first : largest(file, first)
        guard let width = directory.number(0x0100), let height = directory.number(0x0101) else {
            throw .invalid("a TIFF file whose first directory has no size")
        }
        if raw == nil, let found = unsupported(directory) { throw .unsupported(found: found) }
        var header = ImageHeader(kind: .tiff, storedWidth: width, storedHeight: height)
        header.rawContentType = raw
        header.exif = file.bytes.startIndex..<file.bytes.endIndex
        header.hasAlpha = directory.number(0x0152) != nil
        header.isNegated =
            raw == nil && directory.number(photometricTag) == 0 && [2, 4].contains(directory.number(0x0102))
        if let packet = first.bytes(0x02BC) { header.xmp = packet }
        if raw == nil { header.isComplete = directory.hasAllData }
        return header
    }

    /// Returns the name of a variant that the decoder would return with wrong pixels; nil for any other.
    private static func unsupported(_ directory: Directory) -> String? {
        let compression = directory.number(0x0103)
        if compression == 6 { return "a TIFF file with old-style JPEG compression (6)" }
        // libtiff converts JPEG tiles to RGB only if they are YCbCr.
        if compression == 7, directory.number(photometricTag) == 5, directory.number(0x0142) != nil {
            return "a TIFF file with tiles of CMYK JPEG"
        }
        let sampleFormat = directory.number(0x0153)
        if sampleFormat == 2 { return "a TIFF file with signed samples" }
        // ImageMagick reads floating-point numbers as fractions of 1, but those of CIELab reach 100.
        if sampleFormat == 3, directory.number(photometricTag) == 8 {
            return "a TIFF file in CIELab with floating-point samples"
        }
        return nil
    }

    /// Returns the stored orientation (tag 0x0112) of an EXIF block.
    public static func orientation(_ block: ByteReader) -> Int? {
        Directory(block, at: nil)?.number(0x0112)
    }

    /// Returns true if an error of libtiff means that pixels are missing: for a strip that cannot be decoded,
    /// ImageMagick returns the earlier content of its memory, which may come from other files.
    ///
    /// Errors in directories, such as that of EXIF, do not concern the pixels, and the fax decoder clears the rows that
    /// it cannot read. The error's text ends with the name of libtiff's function.
    public static func meansMissingPixels(_ error: String) -> Bool {
        !["Directory", "FetchNormalTag", "SetField", "Fax"].contains(where: error.contains)
    }

    /// Returns the file with default values for an orientation (1) or a resolution unit (inches) that TIFF does not
    /// define, because libtiff refuses such a file; nil if both values are valid or missing.
    public static func corrected(_ bytes: [UInt8]) -> [UInt8]? {
        guard let directory = Directory(ByteReader(bytes), at: nil) else { return nil }
        var result: [UInt8]?
        for (tag, allowed, fallback) in [(0x0112, 1...8, UInt8(1)), (0x0128, 1...3, 2)] {
            guard let value = directory.number(tag), !allowed.contains(value),
                let range = directory.valueRange(tag)
            else {
                continue
            }
            var changed = result ?? bytes
            for index in range { changed[index] = 0 }
            changed[directory.reader.isLittle ? range.lowerBound : range.upperBound - 1] = fallback
            result = changed
        }
        return result
    }

    /// Returns true if a file that begins like TIFF is a camera raw file: it has a DNG version, or one of its
    /// directories contains sensor data.
    public static func isRaw(_ file: ByteReader) -> Bool {
        guard let first = Directory(file, at: nil) else { return false }
        return first.number(dngTag) != nil || directories(file, first).contains(where: holdsSensorData)
    }

    /// Returns the uniform type identifier if the file is a camera raw file (see ``isRaw(_:)``): that of DNG, else that
    /// of the maker's format. Nil for any other file.
    private static func rawContentType(_ file: ByteReader, _ first: Directory) -> String? {
        if first.number(dngTag) != nil { return RawFileType.dng }
        let isCanon = file.has("II", at: 0) && file.has("CR", at: 8)
        guard isCanon || directories(file, first).contains(where: holdsSensorData) else { return nil }
        return isCanon ? RawFileType.cr2 : RawFileType.contentType(ofMaker: first.text(makerTag) ?? "")
    }

    /// Returns the strips and tiles of all images of a file, previews included.
    static func imageData(_ file: ByteReader) -> [Range<Int>]? {
        var next = Directory(file, at: nil)
        var (found, seen): ([Range<Int>], Set<Int>) = ([], [])
        while let directory = next, seen.count < maxDirectories, seen.insert(directory.start).inserted {
            for image in directories(file, directory) {
                for (offsets, lengths) in [(0x0111, 0x0117), (0x0144, 0x0145)] {
                    let parts = zip(image.numbers(offsets), image.numbers(lengths))
                    for (offset, length) in parts where found.count < ImageData.maxParts {
                        guard let content = file.slice(offset, length) else { return nil }
                        found.append(content.startIndex..<content.endIndex)
                    }
                }
            }
            next = directory.next.flatMap { $0 > 0 ? Directory(file, at: $0) : nil }
        }
        return found
    }

    /// The maximum number of directories that follow each other.
    private static let maxDirectories = 64

    private static func directories(_ file: ByteReader, _ first: Directory) -> [Directory] {
        [first] + first.offsets(directoriesTag).compactMap { Directory(file, at: $0) }
    }

    private static func holdsSensorData(_ directory: Directory) -> Bool {
        sensorValues.contains(directory.number(photometricTag) ?? 0)
    }

    /// Returns the directory of a raw file that has its image; the first one is often that of a preview.
    private static func largest(_ file: ByteReader, _ first: Directory) -> Directory {
        let all = directories(file, first)
        let sensor = all.filter(holdsSensorData)
        func pixels(_ directory: Directory) -> Int {
            (directory.number(0x0100) ?? 0).multipliedReportingOverflow(by: directory.number(0x0101) ?? 0).partialValue
        }
        return (sensor.isEmpty ? all : sensor).max { pixels($0) < pixels($1) } ?? first
    }

    private static let makerTag = 0x010F

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

    /// Returns the sizes and offsets of the images of a Multi-Picture Format index (CIPA DC-007, 5.2.3), at most eight.
    static func multiPictureEntries(_ block: ByteReader) -> [(size: Int, offset: Int)] {
        guard let directory = Directory(block, at: nil), let range = directory.bytes(0xB002) else { return [] }
        let entries = ByteReader(block.bytes[range], isLittle: directory.reader.isLittle)
        return (0..<min(entries.count / 16, 8)).compactMap { index in
            guard let size = entries.long(16 * index + 4), let offset = entries.long(16 * index + 8) else { return nil }
            return (size, offset)
        }
    }

    /// Returns the maker note of an EXIF block.
    static func makerNote(_ block: ByteReader) -> ByteReader? {
        guard let first = Directory(block, at: nil), let start = first.offsets(0x8769).first,
            let exif = Directory(block, at: start), let range = exif.bytes(0x927C)
        else { return nil }
        return ByteReader(block.bytes[range])
    }

    /// One image file directory. The numbers of BigTIFF have eight bytes where those of TIFF have four, and those of
    /// entries eight where they have two.
    private struct Directory {
        let reader: ByteReader
        let start: Int
        let count: Int
        private let isBig: Bool

        init?(_ block: ByteReader, at offset: Int?) {
            switch block.text(0, 2) {
            case "II": reader = ByteReader(block.bytes, isLittle: true)
            case "MM": reader = ByteReader(block.bytes, isLittle: false)
            default: return nil
            }
            switch reader.short(2) {
            case 42: isBig = false
            case 43 where reader.short(4) == 8 && reader.short(6) == 0: isBig = true
            default: return nil
            }
            guard let start = offset ?? (isBig ? reader.long8(8) : reader.long(4)),
                let count = isBig ? reader.long8(start) : reader.short(start), count <= TIFFStructure.maxEntries
            else { return nil }
            self.start = start
            self.count = count
        }

        private var wordSize: Int { isBig ? 8 : 4 }
        private var countSize: Int { isBig ? 8 : 2 }
        private var entrySize: Int { 4 + 2 * wordSize }

        private func word(_ offset: Int) -> Int? { isBig ? reader.long8(offset) : reader.long(offset) }

        /// The offset of the next directory.
        var next: Int? { word(start + countSize + entrySize * count) }

        /// The values of a field: their type and number, and where they are.
        private struct Field {
            let type: Int
            let count: Int
            let offset: Int
        }

        private func field(_ tag: Int) -> Field? {
            for index in 0..<count {
                let entry = start + countSize + entrySize * index
                guard reader.short(entry) == tag else { continue }
                guard let type = reader.short(entry + 2), let count = word(entry + 4), let size = Self.sizes[type]
                else { return nil }
                let values = entry + 4 + wordSize
                guard count > wordSize / size else { return Field(type: type, count: count, offset: values) }
                // Offsets are limited to the size of the data, so that the offsets of further values do not overflow.
                // No value is read there.
                return word(values).map { Field(type: type, count: count, offset: min($0, reader.count)) }
            }
            return nil
        }

        /// The bytes of a value by type: byte, text, short, long, undefined, directory, and the eight bytes of BigTIFF.
        private static let sizes = [1: 1, 2: 1, 3: 2, 4: 4, 7: 1, 13: 4, 16: 8, 18: 8]

        private func value(_ field: Field, _ index: Int) -> Int? {
            switch Self.sizes[field.type] {
            case 1: reader.byte(field.offset + index)
            case 2: reader.short(field.offset + 2 * index)
            case 4: reader.long(field.offset + 4 * index)
            case 8: reader.long8(field.offset + 8 * index)
            default: nil
            }
        }

        /// False if the file ends before a strip or tile of the image, inside one that is not compressed, or in the
        /// first half of a compressed one: some programs write sizes of compressed strips that are too large.
        var hasAllData: Bool {
            for (offsets, sizes) in [(0x0111, 0x0117), (0x0144, 0x0145)] {
                guard let positions = field(offsets) else { continue }
                let (lengths, isCompressed) = (field(sizes), number(0x0103) ?? 1 != 1)
                for index in 0..<min(positions.count, 1_000_000) {
                    guard let offset = value(positions, index) else { return false }
                    let length = lengths.flatMap { index < $0.count ? value($0, index) : nil } ?? 1
                    // An empty strip or tile has the offset or the length zero.
                    guard offset > 0, length > 0 else { continue }
                    let needed = isCompressed ? length / 2 + length % 2 : length
                    guard reader.slice(offset, needed) != nil else { return false }
                }
            }
            return true
        }

        /// Returns the first value of a field of type byte, short, long or long8.
        func number(_ tag: Int) -> Int? {
            guard let field = field(tag), [1, 3, 4, 16].contains(field.type) else { return nil }
            return value(field, 0)
        }

        /// Returns the range of the bytes of the first value of a field.
        func valueRange(_ tag: Int) -> Range<Int>? {
            guard let field = field(tag), let size = Self.sizes[field.type],
                let content = reader.slice(field.offset, size)
            else { return nil }
            return content.startIndex..<content.endIndex
        }

        /// Returns the values of a field of type byte, short, long or long8, at most ``ImageData/maxParts``.
        func numbers(_ tag: Int) -> [Int] {
            guard let field = field(tag), [1, 3, 4, 16].contains(field.type) else { return [] }
            return (0..<min(field.count, ImageData.maxParts)).compactMap { value(field, $0) }
        }

        /// Returns the values of a field of offsets, at most eight.
        func offsets(_ tag: Int) -> [Int] {
            guard let field = field(tag), [4, 13, 16, 18].contains(field.type) else { return [] }
            return (0..<min(field.count, 8)).compactMap { value(field, $0) }
        }

        /// Returns the first 64 bytes of a field of type text, up to NUL.
        func text(_ tag: Int) -> String? {
            guard let field = field(tag), field.type == 2 else { return nil }
            return reader.slice(field.offset, min(field.count, 64)).map {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
        }

        /// Returns the range of the bytes of a field of type byte or undefined.
        func bytes(_ tag: Int) -> Range<Int>? {
            guard let field = field(tag), field.type == 1 || field.type == 7, field.count > 4,
                let content = reader.slice(field.offset, field.count)
            else { return nil }
            return content.startIndex..<content.endIndex
        }
    }
}
