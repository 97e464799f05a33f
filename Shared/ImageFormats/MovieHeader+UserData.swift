extension MovieHeader {
    /// QuickTime's text boxes, iTunes' and 3GPP's, by the key that their value has in ``values``.
    private static let keys: [String: String] = [
        "\u{A9}nam": "title", "titl": "title", "\u{A9}ART": "author", "\u{A9}aut": "author", "auth": "author",
        "\u{A9}cpy": "copyright", "cprt": "copyright", "\u{A9}des": "description", "desc": "description",
        "dscp": "description", "\u{A9}cmt": "comment", "\u{A9}mak": "make", "\u{A9}mod": "model",
        "\u{A9}swr": "software", "\u{A9}too": "software", "\u{A9}key": "keywords", "keyw": "keywords",
        "kywd": "keywords", "\u{A9}xyz": "location.ISO6709",
    ]

    /// The longest text of user data that is read, in bytes.
    private static let maxTextLength = 4096

    /// Records a value unless there is one already.
    mutating func note(_ text: String?, _ key: String) {
        guard let text, !text.isEmpty, text.utf8.count <= Self.maxTextLength, values[key] == nil else { return }
        values[key] = text
    }

    /// Reads the frame rate of the recording: a number of 32 bits.
    mutating func readCaptureRate(_ data: ByteReader) {
        guard data.big32(0) == 23, let bits = data.big32(8) else { return }
        let rate = Double(Float(bitPattern: UInt32(bits)))
        if rate > 0, rate < 100_000 { captureRate = rate }
    }

    /// Reads `udta`: QuickTime's international texts, 3GPP's boxes, the list of iTunes, and XMP.
    mutating func readUserData(_ box: ByteReader) {
        for item in Self.boxes(box) {
            switch item.name {
            case "XMP_" where (1...Self.maxXMPBytes).contains(item.content.count): xmp = Array(item.content.bytes)
            case "meta":
                readValues(item.content)
                readList(item.content)
            case "loci": note(Self.location(item.content), "location.ISO6709")
            case "kywd": note(Self.keywords(item.content), "keywords")
            default:
                guard let key = Self.keys[item.name] else { continue }
                let isQuickTime = item.name.hasPrefix("\u{A9}")
                note(isQuickTime ? Self.internationalText(item.content) : Self.assetText(item.content), key)
            }
        }
    }

    /// Reads the list of iTunes, in which each item has a box of data.
    private mutating func readList(_ meta: ByteReader) {
        guard let list = Self.boxes(meta, from: 4).first(where: { $0.name == "ilst" })?.content else { return }
        for item in Self.boxes(list) {
            guard let key = Self.keys[item.name],
                let data = Self.boxes(item.content).first(where: { $0.name == "data" })?.content, data.big32(0) == 1
            else { continue }
            note(data.text(8, min(data.count - 8, Self.maxTextLength)), key)
        }
    }

    /// Returns the first text of a list whose entries are a length, a language and a text.
    private static func internationalText(_ content: ByteReader) -> String? {
        guard let length = content.big16(0), length <= content.count - 4 else { return nil }
        return content.text(4, length).map(trimmed)
    }

    /// Returns the text of 3GPP's boxes: a version, a language, and UTF-8 or UTF-16 that ends with zero.
    private static func assetText(_ content: ByteReader) -> String? {
        content.count > 6 ? terminated(content, 6).map(\.text) ?? nil : nil
    }

    private static func trimmed(_ text: String) -> String { String(text.prefix { $0 != "\0" }) }

    /// Returns a text that ends with zero, and the offset after it.
    private static func terminated(_ content: ByteReader, _ start: Int) -> (text: String?, end: Int)? {
        if content.big16(start) == 0xFEFF {
            var (units, at): ([UInt16], Int) = ([], start + 2)
            while let unit = content.big16(at), unit != 0, units.count < maxTextLength {
                units.append(UInt16(unit))
                at += 2
            }
            return (String(decoding: units, as: UTF16.self), at + 2)
        }
        var at = start
        while let byte = content.byte(at), byte != 0 { at += 1 }
        return at <= content.count ? (content.text(start, at - start), at + 1) : nil
    }

    /// Returns 3GPP's keywords, which are stored with their lengths, as one text separated by commas.
    private static func keywords(_ content: ByteReader) -> String? {
        guard let count = content.byte(6) else { return nil }
        var words: [String] = []
        var at = 7
        for _ in 0..<count {
            guard let length = content.byte(at), let text = content.text(at + 1, length) else { break }
            words.append(trimmed(text))
            at += 1 + length
        }
        return words.joined(separator: ",")
    }

    /// Returns 3GPP's location as ISO 6709: a name, a role, then degrees and metres in 16.16 bits.
    private static func location(_ content: ByteReader) -> String? {
        guard let name = terminated(content, 6) else { return nil }
        func number(_ index: Int) -> Double? {
            content.big32(name.end + 1 + 4 * index).map { Double(Int32(truncatingIfNeeded: $0)) / 65536 }
        }
        guard let longitude = number(0), let latitude = number(1), let altitude = number(2) else { return nil }
        func signed(_ value: Double) -> String { value < 0 ? "\(value)" : "+\(value)" }
        guard [longitude, latitude, altitude].allSatisfy({ $0 == 0 || abs($0) > 0.0001 }) else { return nil }
        return signed(latitude) + signed(longitude) + (altitude == 0 ? "" : signed(altitude)) + "/"
    }
}
