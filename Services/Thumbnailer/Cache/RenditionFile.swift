import Basics
import JSONValue
import PhotoModel

/// The file format of the disk cache: magic, header, image, checksum.
///
/// The header contains the key and the checksum covers the whole file, so that a torn, damaged or misplaced file is
/// detected and never served.
///
///     8 bytes   "SLRENDR1"
///     4 bytes   length of the header, little-endian
///     …         the header: JSON with the key, the text it is the hash of (`made`), and the image's properties
///     …         the image
///     32 bytes  SHA-256 of everything before
enum RenditionFile {
    static let mark = Array("SLRENDR1".utf8)
    private static let checksumLength = 32
    private static let longestHead = 4096

    static func encode(_ rendition: StoredRendition, key: RenditionKey) -> Bytes {
        var head: JSONObject = ["key": .string(key.text)]
        if let canonical = key.canonical { head["made"] = .string(canonical) }
        for member in StoredRendition.table.encode(rendition).members { head[member.name] = member.value }
        let headBytes = JSON.object(head).bytes
        var file = Bytes()
        file.reserveCapacity(mark.count + 4 + headBytes.count + rendition.bytes.count + checksumLength)
        file += mark
        let length = UInt32(truncatingIfNeeded: headBytes.count)
        for shift in stride(from: 0, to: 32, by: 8) { file.append(UInt8(truncatingIfNeeded: length >> shift)) }
        file += headBytes
        file += rendition.bytes
        file += SHA256.hash(data: file)
        return file
    }

    /// Returns the text that the key is the hash of, from the header of an undamaged file; nil if the header lacks it.
    static func canonical(_ file: Bytes) -> String? {
        let start = mark.count + 4
        guard file.count >= start, file.starts(with: mark) else { return nil }
        let length = (0..<4).reduce(0) { $0 | Int(file[mark.count + $1]) << ($1 * 8) }
        guard length <= longestHead, start + length <= file.count else { return nil }
        return (try? JSON(parsing: file[start..<start + length]))?["made"]?.stringValue
    }

    /// Decodes a rendition. Returns nil if the file is damaged, incomplete or of another key.
    static func decode(_ file: Bytes, key: RenditionKey) -> StoredRendition? {
        let start = mark.count + 4
        guard file.count >= start + checksumLength, file.starts(with: mark) else { return nil }
        let length = (0..<4).reduce(0) { $0 | Int(file[mark.count + $1]) << ($1 * 8) }
        let end = file.count - checksumLength
        guard length <= longestHead, start + length <= end else { return nil }
        guard SHA256.hash(data: file[..<end]).elementsEqual(file[end...]) else { return nil }
        guard let head = try? JSON(parsing: file[start..<start + length]),
            head["key"]?.stringValue == key.text,
            var rendition = try? StoredRendition(json: head)
        else { return nil }
        rendition.bytes = Array(file[(start + length)..<end])
        return rendition
    }
}
