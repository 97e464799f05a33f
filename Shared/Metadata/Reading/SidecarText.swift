/// Converts the text of a sidecar to the form in which the metadata library recognizes it.
enum SidecarText {
    /// Returns the text in UTF-8, from its packet header on; nil if it contains no RDF.
    static func packet(_ bytes: [UInt8]) -> [UInt8]? {
        var text = text(bytes)[...].drop { $0.isWhitespace || $0 == "\u{FEFF}" }
        if text.hasPrefix("<?xml"), let end = text.firstRange(of: "?>") {
            text = text[end.upperBound...].drop { $0.isWhitespace }
        }
        guard text.contains("RDF") else { return nil }
        let header = text.hasPrefix("<?xpacket") ? "" : "<?xpacket begin=\"\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>"
        return Array((header + text.filter { $0 != "\0" }).utf8)
    }

    /// Decodes the text by its byte order mark, or by the zeros beside its first character.
    private static func text(_ bytes: [UInt8]) -> String {
        switch (bytes.first, bytes.dropFirst().first, bytes.dropFirst(2).first, bytes.dropFirst(3).first) {
        case (0, 0, _, _): scalars(bytes, bigEndian: true)
        case (_, _, 0, 0): scalars(bytes, bigEndian: false)
        case (0xFE, 0xFF, _, _), (0, _, _, _): String(decoding: units(bytes, bigEndian: true), as: UTF16.self)
        case (0xFF, 0xFE, _, _), (_, 0, _, _): String(decoding: units(bytes, bigEndian: false), as: UTF16.self)
        default: String(decoding: bytes, as: UTF8.self)
        }
    }

    private static func units(_ bytes: [UInt8], bigEndian: Bool) -> [UInt16] {
        stride(from: 0, to: bytes.count - 1, by: 2).map { index in
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            return bigEndian ? first << 8 | second : second << 8 | first
        }
    }

    private static func scalars(_ bytes: [UInt8], bigEndian: Bool) -> String {
        let units = units(bytes, bigEndian: bigEndian)
        let scalars = stride(from: 0, to: units.count - 1, by: 2).compactMap { (index: Int) -> Unicode.Scalar? in
            let (first, second) = (UInt32(units[index]), UInt32(units[index + 1]))
            return Unicode.Scalar(bigEndian ? first << 16 | second : second << 16 | first)
        }
        return String(String.UnicodeScalarView(scalars))
    }
}
