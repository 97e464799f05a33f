import PictureFormats

/// The one field of Apple's maker note that is needed: the identifier that the still and the video of a Live Photo
/// share.
struct AppleNote {
    let contentIdentifier: String?

    /// - Parameter text: The note as the metadata library prints bytes: "65 112 112 …".
    init?(_ text: String?) {
        guard let text, text.hasPrefix("65 112 112 108 101 32 105 79 83 ") else { return nil }
        let note = ByteReader(text.split(separator: " ").prefix(65_536).compactMap { UInt8($0) })
        guard let count = note.big16(14), count < 1024 else { return nil }
        var found: String?
        for index in 0..<count {
            let entry = 16 + 12 * index
            guard note.big16(entry) == 0x0011, note.big16(entry + 2) == 2, let length = note.big32(entry + 4),
                (2...128).contains(length), let offset = note.big32(entry + 8),
                let value = note.text(offset, length - 1)
            else { continue }
            found = value
        }
        contentIdentifier = found
    }
}
