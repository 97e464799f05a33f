import CMetadata
import Glibc
import ImageFormats
import PhotoModel

/// The metadata of one image, opened by the metadata library and freed by `deinit`.
struct MetadataBlock: ~Copyable {
    private let pointer: OpaquePointer
    /// The names of the fields that have a value. For one without, the library would return the value of the next
    /// field.
    private let present: Set<String>

    /// Opens the metadata of an image file.
    ///
    /// The file itself is opened if the library handles its format well, otherwise a small JPEG made of the file's EXIF
    /// and XMP: the library supports neither a PNG's eXIf chunk nor the newest HEIC files, and one broken block makes
    /// it refuse the whole file.
    init?(_ bytes: [UInt8], _ header: ImageHeader) {
        var exif = header.exif.map { Array(bytes[$0]) } ?? header.texts.exif
        var xmp = header.xmp.map { Array(bytes[$0]) } ?? header.texts.xmp
        let iptc = header.iptc.map { Array(bytes[$0]) } ?? header.texts.iptc
        if header.kind == .jxl {
            let boxes = JPEGXLBoxes(bytes)
            (exif, xmp) = (boxes.exif, boxes.xmp)
        }
        xmp = xmp.map(Self.packet)
        let isDirect = header.kind == .jpeg || header.kind == .tiff
        guard
            let opened = (isDirect ? Self.open(bytes) : nil)
                ?? Self.open(exif: exif, xmp: xmp, iptc: iptc)
                ?? Self.open(exif: exif, xmp: nil, iptc: nil)
                ?? Self.open(exif: nil, xmp: xmp, iptc: nil)
        else { return nil }
        if isDirect, let more = ExtendedXMP.packet(bytes, header) { Self.extend(opened, more) }
        pointer = opened
        present = Self.present(opened)
    }

    /// Adds the fields of a JPEG's second XMP packet that ``MetadataFields`` contains.
    private static func extend(_ pointer: OpaquePointer, _ packet: [UInt8]) {
        let fields = Set(MetadataFields.table.flatMap(\.fields).filter { $0.hasPrefix("Xmp.") && !$0.contains("/") })
        withCopies(of: fields.sorted()) { safelight_metadata_extend(pointer, packet, packet.count, $0) }
    }

    /// Opens a camera raw file.
    init?(raw bytes: [UInt8]) {
        guard let opened = Self.open(bytes) else { return nil }
        pointer = opened
        present = Self.present(opened)
    }

    /// Opens a stand-alone XMP packet; nil if it cannot be parsed.
    ///
    /// Only XMP fields are read. If the packet were in a file, the library would copy some of them to EXIF and IPTC,
    /// converting dates to the time zone of this process and dropping their offsets.
    init?(sidecar bytes: [UInt8]) {
        guard let packet = SidecarText.packet(bytes).map(Self.packet),
            let opened = safelight_metadata_open_xmp(packet, packet.count)
        else { return nil }
        pointer = opened
        present = Set(Self.names(opened, .xmp))
    }

    deinit { safelight_metadata_close(pointer) }

    private static func open(_ bytes: [UInt8]) -> OpaquePointer? { safelight_metadata_open(bytes, bytes.count) }

    /// Opens blocks of metadata. Those that are too long for a JPEG are added to the others.
    private static func open(exif: [UInt8]?, xmp: [UInt8]?, iptc: [UInt8]?) -> OpaquePointer? {
        let maxBytes = JPEGMetadataWriter.maxSegmentBytes - 64
        if let exif, exif.count > maxBytes {
            guard let opened = open(exif) else { return nil }
            safelight_metadata_add(opened, xmp ?? [], xmp?.count ?? 0, iptc ?? [], iptc?.count ?? 0)
            return opened
        }
        let (isLongXMP, isLongIPTC) = (xmp?.count ?? 0 > maxBytes, iptc?.count ?? 0 > maxBytes)
        let carrier = carrier(exif: exif, xmp: isLongXMP ? nil : xmp, iptc: isLongIPTC ? nil : iptc)
        guard let opened = open(carrier) else { return nil }
        let (added, addedIPTC) = (isLongXMP ? xmp ?? [] : [], isLongIPTC ? iptc ?? [] : [])
        safelight_metadata_add(opened, added, added.count, addedIPTC, addedIPTC.count)
        return opened
    }

    /// Returns an XMP packet without the bytes after its end, because of which the library would refuse the whole
    /// packet.
    private static func packet(_ bytes: [UInt8]) -> [UInt8] {
        let text = Array("<?xpacket end".utf8)
        guard let end = bytes.ranges(of: text).last,
            let close = bytes[end.upperBound...].firstRange(of: Array("?>".utf8))
        else { return bytes }
        return Array(bytes[..<close.upperBound])
    }

    private static func carrier(exif: [UInt8]?, xmp: [UInt8]?, iptc: [UInt8]?) -> [UInt8] {
        // The library does not read IPTC in a file without a scan.
        let file: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDA, 0, 2, 0xFF, 0xD9]
        return JPEGMetadataWriter.replacing(in: file, exif: exif, xmp: xmp, iptc: iptc)
    }

    private static func present(_ pointer: OpaquePointer) -> Set<String> {
        Set([.exif, .xmp, .iptc].flatMap { (standard: Standard) in names(pointer, standard) })
    }

    private static func names(_ pointer: OpaquePointer, _ standard: Standard) -> [String] {
        guard let names = safelight_metadata_names(pointer, standard.number) else { return [] }
        defer { safelight_metadata_free(names) }
        return String(cString: names).split(separator: "\n").map(String.init)
    }

    /// A standard of metadata.
    enum Standard {
        case exif, xmp, iptc

        fileprivate var number: safelight_metadata_standard {
            switch self {
            case .exif: SAFELIGHT_METADATA_EXIF
            case .xmp: SAFELIGHT_METADATA_XMP
            case .iptc: SAFELIGHT_METADATA_IPTC
            }
        }
    }

    /// Returns true if a field whose name begins with a prefix has a value.
    func hasField(startingWith prefix: String) -> Bool { present.contains { $0.hasPrefix(prefix) } }

    /// Returns true if there is an XMP field, even without a value.
    func hasField(_ tag: String) -> Bool { safelight_metadata_has_field(pointer, tag) != 0 }

    /// Returns the raw text of a field without surrounding white space; `nil` if it is missing or empty.
    func text(_ tag: String) -> String? {
        guard present.contains(tag), let pointer = safelight_metadata_text(pointer, tag) else { return nil }
        defer { safelight_metadata_free(pointer) }
        return Self.clean(pointer)
    }

    /// Returns the bytes of an EXIF field; `nil` if it is missing. As text, each byte would be a number.
    func bytes(_ tag: String) -> [UInt8]? {
        var count = 0
        guard present.contains(tag), let bytes = safelight_metadata_bytes(pointer, tag, &count) else { return nil }
        defer { safelight_metadata_free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }

    /// Returns the value of a field in words, such as the name of a lens for its number; `nil` if the library has none.
    func interpretation(_ tag: String) -> String? {
        guard present.contains(tag), let pointer = safelight_metadata_interpretation(pointer, tag) else { return nil }
        defer { safelight_metadata_free(pointer) }
        return Self.clean(pointer)
    }

    /// Returns the text of an XMP field with one text for each language: in the user's language, else the default.
    func localizedText(_ tag: String) -> String? { text(tag).flatMap { LanguageAlternatives($0).text() } }

    /// Returns the values of a repeated field, at most 1,024, which is the maximum number of keywords.
    func texts(_ tag: String) -> [String] {
        var result: [String] = []
        guard present.contains(tag) else { return [] }
        while result.count < AssetMetadata.maxKeywords,
            let element = safelight_metadata_element(pointer, tag, result.count)
        {
            defer { safelight_metadata_free(element) }
            result.append(Self.clean(element) ?? "")
        }
        return result.filter { !$0.isEmpty }
    }

    func number(_ tag: String) -> Int? { text(tag).flatMap { Int($0.prefix { $0 != " " }) } }

    /// Returns a rating 0...5, which some programs write as "4.0"; a rejected image (-1) is 0.
    func rating(_ tag: String) -> Int? {
        guard let text = text(tag), let number = Double(text), number.isFinite else { return nil }
        return Int(min(5, max(0, number)).rounded())
    }

    /// Returns the names of all fields of a standard.
    func names(_ standard: Standard) -> [String] { Self.names(pointer, standard) }

    func remove(_ tag: String) { safelight_metadata_remove(pointer, tag) }
    func set(_ tag: String, _ value: String) { _ = safelight_metadata_set(pointer, tag, value) }
    func set(_ tag: String, _ values: [String]) {
        let pointer = pointer
        Self.withCopies(of: values) { _ = safelight_metadata_set_list(pointer, tag, $0) }
    }

    /// Calls a body with a null-terminated list of texts, which is valid until it returns.
    private static func withCopies(of texts: [String], _ body: ([UnsafePointer<CChar>?]) -> Void) {
        let copies = texts.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        body(copies.map { $0.map { UnsafePointer($0) } } + [nil])
    }

    func removeThumbnail() { safelight_metadata_remove_thumbnail(pointer) }

    /// Returns the EXIF fields as a TIFF structure.
    func exif() -> [UInt8]? {
        var count = 0
        guard let bytes = safelight_metadata_exif(pointer, &count) else { return nil }
        defer { safelight_metadata_free(bytes) }
        return count > 0 ? Array(UnsafeBufferPointer(start: bytes, count: count)) : nil
    }

    /// Returns the XMP fields as a packet.
    func xmp() -> [UInt8]? {
        guard let packet = safelight_metadata_xmp(pointer) else { return nil }
        defer { safelight_metadata_free(packet) }
        let bytes = Array(String(cString: packet).utf8)
        return bytes.isEmpty ? nil : bytes
    }

    /// Returns the character of a byte of Windows-1252: that of Latin-1, except in the range in which Latin-1 has
    /// control characters.
    static func windows1252(_ byte: UInt8) -> Unicode.Scalar {
        guard (0x80...0x9F).contains(byte) else { return Unicode.Scalar(byte) }
        return windows1252[Int(byte) - 0x80]
    }

    private static let windows1252 = Array(
        "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars
    )

    /// Returns the text of one of the fields `XP…` of Windows, which is UTF-16 in bytes; `nil` if it is missing or
    /// empty.
    func windowsText(_ tag: String) -> String? {
        guard let bytes = bytes(tag) else { return nil }
        let units = stride(from: 0, to: bytes.count - 1, by: 2).map { UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8 }
        let text = String(decoding: units.prefix { $0 != 0 }, as: UTF16.self)
        return text.withCString { Self.clean($0) }
    }

    /// Decodes UTF-8, or Windows-1252, which old cameras and programs write. Control characters and surrounding white
    /// space are dropped.
    private static func clean(_ pointer: UnsafePointer<CChar>) -> String? {
        let length = strlen(pointer)
        let bytes = UnsafeBufferPointer(start: pointer, count: min(length, 65_536))
        if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) {
            // Nearly all texts are printable ASCII and only need to be trimmed.
            guard let first = bytes.firstIndex(where: { $0 != 0x20 }), let last = bytes.lastIndex(where: { $0 != 0x20 })
            else { return nil }
            return String(
                decoding: UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[first...last])),
                as: UTF8.self
            )
        }
        var raw = bytes.map(UInt8.init(bitPattern:))
        // An incomplete UTF-8 character at the end would make the whole text invalid.
        if length > raw.count, UInt8(bitPattern: pointer[raw.count]) & 0xC0 == 0x80 {
            raw.removeSubrange((raw.lastIndex { $0 & 0xC0 != 0x80 } ?? 0)...)
        }
        let text = String(validating: raw, as: UTF8.self) ?? String(raw.map { Character(windows1252($0)) })
        let kept = text.unicodeScalars.filter { $0.value >= 0x20 || $0 == "\n" || $0 == "\t" }
        let trimmed = String(String.UnicodeScalarView(kept)).drop { $0.isWhitespace }
        let end = trimmed.lastIndex(where: { !$0.isWhitespace }).map { trimmed.index(after: $0) } ?? trimmed.startIndex
        return end > trimmed.startIndex ? String(trimmed[..<end]) : nil
    }
}
