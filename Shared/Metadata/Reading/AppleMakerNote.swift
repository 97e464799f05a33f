import ImageFormats

/// The two fields that are used of Apple's maker note: the identifier shared by the still and the video of a Live
/// Photo, and the identifier shared by the frames of a burst.
struct AppleMakerNote {
    let contentIdentifier: String?
    let burstIdentifier: String?

    private static let burst = 0x000B
    private static let content = 0x0011

    /// - Parameter bytes: the value of the field; `nil` if it is missing
    init?(_ bytes: [UInt8]?) {
        guard let bytes, bytes.starts(with: "Apple iOS".utf8) else { return nil }
        let note = ByteReader(bytes)
        guard let count = note.big16(14), count < 1024 else { return nil }
        var found: [Int: String] = [:]
        for index in 0..<count {
            let entry = 16 + 12 * index
            guard let tag = note.big16(entry), tag == Self.burst || tag == Self.content, note.big16(entry + 2) == 2,
                let length = note.big32(entry + 4), (2...128).contains(length), let offset = note.big32(entry + 8),
                let value = note.text(offset, length - 1), value.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else { continue }
            found[tag] = value
        }
        contentIdentifier = found[Self.content]
        burstIdentifier = found[Self.burst]
    }
}
