import ImageFormats

/// Converts the text of a sidecar to the form in which the metadata library can parse it.
enum SidecarText {
    /// Returns the text in UTF-8, from its packet header on; nil if it contains no RDF.
    ///
    /// An XML declaration is left out: after conversion, and often before, its encoding is not that of the text.
    static func packet(_ bytes: [UInt8]) -> [UInt8]? {
        var text = trimmed(utf8(bytes)[...])
        if text.starts(with: "<?xml".utf8), let end = ByteReader(text).find("?>") {
            text = trimmed(text.dropFirst(end + 2))
        }
        guard ByteReader(text).find("RDF") != nil else { return nil }
        let header = text.starts(with: "<?xpacket".utf8) ? "" : "<?xpacket begin=\"\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>"
        return Array(header.utf8) + text
    }

    /// Returns the text without white space and byte order marks at its beginning.
    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text
        while true {
            text = text.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
            guard text.starts(with: [0xEF, 0xBB, 0xBF]) else { return text }
            text = text.dropFirst(3)
        }
    }

    private static func utf8(_ bytes: [UInt8]) -> [UInt8] {
        let text = Array(decoded(bytes).utf8)
        return text.contains(0) ? text.filter { $0 != 0 } : text
    }

    /// Decodes the text by its byte order mark, or by the zeros beside its first character.
    ///
    /// Bytes that are not UTF-8 either are in the encoding of old programs for Windows.
    private static func decoded(_ bytes: [UInt8]) -> String {
        switch (bytes.first, bytes.dropFirst().first, bytes.dropFirst(2).first, bytes.dropFirst(3).first) {
        case (0, 0, _, _): scalars(bytes, bigEndian: true)
        case (_, _, 0, 0): scalars(bytes, bigEndian: false)
        case (0xFE, 0xFF, _, _), (0, _, _, _): String(decoding: units(bytes, bigEndian: true), as: UTF16.self)
        case (0xFF, 0xFE, _, _), (_, 0, _, _): String(decoding: units(bytes, bigEndian: false), as: UTF16.self)
        default: String(validating: bytes, as: UTF8.self) ?? mixed(bytes)
        }
    }

    /// Decodes UTF-8 with bytes of Windows-1252 in it, for example a value that a program has copied unchanged from
    /// IPTC. A text that is Windows-1252 as a whole is the same case: hardly any of its characters form UTF-8.
    private static func mixed(_ bytes: [UInt8]) -> String {
        var scalars = String.UnicodeScalarView()
        var parser = Unicode.UTF8.ForwardParser()
        var input = bytes.makeIterator()
        var position = 0
        while true {
            switch parser.parseScalar(from: &input) {
            case .valid(let encoded):
                scalars.append(Unicode.UTF8.decode(encoded))
                position += encoded.count
            case .error(let length):
                for byte in bytes[position..<position + length] { scalars.append(MetadataBlock.windows1252(byte)) }
                position += length
            case .emptyInput: return String(scalars)
            }
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
