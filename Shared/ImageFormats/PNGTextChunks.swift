import CZlib

/// The metadata in the text chunks of a PNG that is not stored as plain bytes: compressed, or in hexadecimal digits, as
/// ImageMagick and exiftool write "Raw profile type" chunks.
public struct PNGTextChunks: Sendable, Hashable {
    /// The TIFF structure of "Raw profile type exif" or "APP1".
    public private(set) var exif: [UInt8]?
    /// A compressed XMP packet, or that of "Raw profile type xmp" or "APP1".
    public private(set) var xmp: [UInt8]?
    /// The IPTC records, or a Photoshop resource block that contains them.
    public private(set) var iptc: [UInt8]?
    /// The text of "Creation Time".
    public private(set) var creationTime: String?
    /// The time of the last change, in the form of XMP.
    public private(set) var modificationTime: String?

    /// The maximum size of a text after decompression, in bytes.
    private static let maxTextBytes = 16 << 20

    /// Bytes of all texts after decompression. A text that cannot be decompressed counts as ``maxTextBytes``.
    private var expanded = 0

    /// Creates a value without metadata.
    public init() {}

    /// Reads a chunk. Chunks without metadata are ignored, and of several of a kind all but the first. No further text
    /// is read once their total exceeds twice ``maxTextBytes``: decompressed, they may have a thousand times the bytes
    /// of the file.
    mutating func add(_ name: String, _ content: ArraySlice<UInt8>) {
        if name == "tIME" {
            modificationTime = modificationTime ?? Self.time(ByteReader(content))
            return
        }
        guard let keyword = Self.keyword(content), isUsed(keyword.lowercased()), expanded <= 2 * Self.maxTextBytes
        else {
            return
        }
        let read = Self.text(name, content.dropFirst(keyword.utf8.count + 1))
        expanded += read?.count ?? Self.maxTextBytes
        guard let text = read else { return }
        switch keyword.lowercased() {
        case "creation time":
            creationTime = creationTime ?? String(decoding: text.prefix(256), as: UTF8.self)
        case "xml:com.adobe.xmp": xmp = xmp ?? text
        case "raw profile type exif", "raw profile type app1": addProfile(Self.profile(text))
        case "raw profile type xmp": xmp = xmp ?? Self.profile(text)
        case "raw profile type iptc", "raw profile type 8bim": iptc = iptc ?? Self.profile(text)
        default: break
        }
    }

    private mutating func addProfile(_ profile: [UInt8]?) {
        guard let profile else { return }
        let xmpName = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
        if profile.starts(with: xmpName) {
            xmp = xmp ?? Array(profile.dropFirst(xmpName.count))
        } else {
            exif = exif ?? Array(profile.starts(with: Array("Exif\0\0".utf8)) ? profile.dropFirst(6) : profile[...])
        }
    }

    /// Returns true if a text can have metadata of a kind that was not found yet.
    private func isUsed(_ keyword: String) -> Bool {
        switch keyword {
        case "creation time": creationTime == nil
        case "xml:com.adobe.xmp", "raw profile type xmp": xmp == nil
        case "raw profile type exif", "raw profile type app1": exif == nil || xmp == nil
        case "raw profile type iptc", "raw profile type 8bim": iptc == nil
        default: false
        }
    }

    /// Returns the keyword of a text chunk, which ends at the first zero.
    private static func keyword(_ content: ArraySlice<UInt8>) -> String? {
        guard let end = content.prefix(80).firstIndex(of: 0) else { return nil }
        return String(validating: content[..<end], as: UTF8.self)
    }

    /// Returns the text of a chunk after its keyword.
    private static func text(_ name: String, _ content: ArraySlice<UInt8>) -> [UInt8]? {
        switch name {
        case "tEXt": return Array(content.prefix(maxTextBytes))
        case "zTXt": return content.first == 0 ? Inflater.bytes(content.dropFirst(), limit: maxTextBytes) : nil
        case "iTXt":
            // A flag and the method of compression, then the language and the translated keyword, each with its zero.
            let parts = content.dropFirst(2).split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
            guard let flag = content.first, parts.count == 3 else { return nil }
            return flag == 1 ? Inflater.bytes(parts[2], limit: maxTextBytes) : Array(parts[2].prefix(maxTextBytes))
        default: return nil
        }
    }

    /// Returns the bytes of a profile: a line with its name, one with its length, and hexadecimal digits.
    private static func profile(_ text: [UInt8]) -> [UInt8]? {
        let words = text.drop { $0 <= 0x20 }.drop { $0 != 0x0A }.split(maxSplits: 1) { $0 <= 0x20 }
        guard words.count == 2, let length = Int(String(decoding: words[0], as: UTF8.self)),
            (1...maxTextBytes).contains(length)
        else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(min(length, words[1].count / 2))
        var high: UInt8?
        for character in words[1] where character > 0x20 {
            guard let digit = digit(character) else { return nil }
            guard let first = high else {
                high = digit
                continue
            }
            bytes.append(first << 4 | digit)
            high = nil
            if bytes.count == length { break }
        }
        return bytes.count == length ? bytes : nil
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character - 0x30
        case 0x41...0x46: character - 0x41 + 10
        case 0x61...0x66: character - 0x61 + 10
        default: nil
        }
    }

    /// Returns the time of a `tIME` chunk, which is in UTC.
    private static func time(_ chunk: ByteReader) -> String? {
        guard chunk.count == 7, let year = chunk.big16(0) else { return nil }
        func pair(_ offset: Int) -> String {
            let number = chunk.byte(offset) ?? 0
            return number < 10 ? "0\(number)" : "\(number)"
        }
        return "\(year)-\(pair(2))-\(pair(3))T\(pair(4)):\(pair(5)):\(pair(6))Z"
    }
}
