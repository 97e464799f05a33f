import Basics
import JSONValue
import Messaging
import PhotoModel

/// A finished picture with what the reply says about it.
struct StoredRendition: Sendable, Equatable {
    var bytes: Bytes
    var mimeType: String
    var pixelWidth: Int
    var pixelHeight: Int
    var isUpscaled: Bool

    /// Bytes that it takes in memory, about.
    var cost: Int64 { Int64(bytes.count) + 256 }
}

extension StoredRendition: JSONTabled {
    /// All but the bytes: what stands in the head of a cache file and in a worker's answer.
    static let table = JSONTable(
        "StoredRendition",
        "A finished picture.",
        unknown: .ignored,
        blank: StoredRendition(bytes: [], mimeType: "", pixelWidth: 0, pixelHeight: 0, isUpscaled: false),
        [
            .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
            .required("pixelWidth", \.pixelWidth, .count(1...1_000_000), "True width."),
            .required("pixelHeight", \.pixelHeight, .count(1...1_000_000), "True height."),
            .required("isUpscaled", \.isUpscaled, .flag, "Larger than the source."),
        ]
    )
}

/// The file of one picture in the disk cache: mark, head, bytes, checksum.
///
/// The head names the key and the checksum covers everything, so that a torn, damaged or misplaced file is seen as what
/// it is and never served.
///
///     8 bytes   "SLRENDR1"
///     4 bytes   length of the head, little-endian
///     …         the head: JSON with the key, what it is the hash of (`made`), and the picture's facts
///     …         the picture
///     32 bytes  SHA-256 of all that stands before
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

    /// What the key is the hash of, as the head of an undamaged file says; nil where it does not say.
    static func canonical(_ file: Bytes) -> String? {
        let start = mark.count + 4
        guard file.count >= start, file.starts(with: mark) else { return nil }
        let length = (0..<4).reduce(0) { $0 | Int(file[mark.count + $1]) << ($1 * 8) }
        guard length <= longestHead, start + length <= file.count else { return nil }
        return (try? JSON(parsing: file[start..<start + length]))?["made"]?.stringValue
    }

    /// The picture; nil where the file is not one of this key, whole and undamaged.
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
