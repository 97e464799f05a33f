import CMetadata
import Glibc
import ImageFormats

/// The metadata of one image, opened by the metadata library and freed by `deinit`.
struct MetadataBlock: ~Copyable {
    private let pointer: OpaquePointer

    /// Opens the metadata of an image file.
    ///
    /// The file itself is opened if the library handles its format well, otherwise a small JPEG made of the file's EXIF
    /// and XMP: the library supports neither a PNG's eXIf chunk nor the newest HEIC files, and one broken block makes
    /// it refuse the whole file.
    init?(_ bytes: [UInt8], _ header: ImageHeader) {
        var (exif, xmp) = (header.exif.map { Array(bytes[$0]) }, header.xmp.map { Array(bytes[$0]) })
        if header.kind == .jxl {
            let boxes = JPEGXLBoxes(bytes)
            (exif, xmp) = (boxes.exif, boxes.xmp)
        }
        if header.kind == .jpeg || header.kind == .tiff, let opened = Self.open(bytes) {
            pointer = opened
        } else if let opened = Self.open(Self.carrier(exif: exif, xmp: xmp)) {
            pointer = opened
        } else if let opened = Self.open(Self.carrier(exif: exif, xmp: nil)) {
            pointer = opened
        } else if let opened = Self.open(Self.carrier(exif: nil, xmp: xmp)) {
            pointer = opened
        } else {
            return nil
        }
    }

    /// Opens a file that the library can read directly: a stand-alone XMP packet or a camera raw file.
    init?(sidecar bytes: [UInt8]) {
        guard let opened = Self.open(bytes) else { return nil }
        pointer = opened
    }

    deinit { safelight_metadata_close(pointer) }

    private static func open(_ bytes: [UInt8]) -> OpaquePointer? { safelight_metadata_open(bytes, bytes.count) }

    private static func carrier(exif: [UInt8]?, xmp: [UInt8]?) -> [UInt8] {
        if let exif, exif.count > JPEGMetadataWriter.longestSegment - 6, xmp == nil { return exif }
        return JPEGMetadataWriter.replacing(in: [0xFF, 0xD8, 0xFF, 0xD9], exif: exif, xmp: xmp)
    }

    /// Returns the raw text of a field without surrounding white space; `nil` if it is missing or empty.
    func text(_ tag: String) -> String? {
        guard let pointer = safelight_metadata_text(pointer, tag) else { return nil }
        defer { safelight_metadata_free(pointer) }
        return Self.clean(pointer)
    }

    /// Returns the values of a repeated field, at most 256.
    func texts(_ tag: String) -> [String] {
        var result: [String] = []
        while result.count < 256, let element = safelight_metadata_element(pointer, tag, result.count) {
            defer { safelight_metadata_free(element) }
            result.append(Self.clean(element) ?? "")
        }
        return result.filter { !$0.isEmpty }
    }

    func number(_ tag: String) -> Int? { text(tag).flatMap { Int($0.prefix { $0 != " " }) } }

    /// Returns the names of all fields.
    func names(isXMP: Bool) -> [String] {
        guard let names = safelight_metadata_names(pointer, isXMP ? 1 : 0) else { return [] }
        defer { safelight_metadata_free(names) }
        return String(cString: names).split(separator: "\n").map(String.init)
    }

    func remove(_ tag: String) { safelight_metadata_remove(pointer, tag) }
    func set(_ tag: String, _ value: String) { _ = safelight_metadata_set(pointer, tag, value) }
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

    /// Decodes UTF-8, or Latin-1, which old cameras and programs write. Control characters and surrounding white space
    /// are dropped.
    private static func clean(_ pointer: UnsafePointer<CChar>) -> String? {
        let bytes = UnsafeBufferPointer(start: pointer, count: min(strlen(pointer), 65_536))
        let raw = bytes.map(UInt8.init(bitPattern:))
        let text = String(validating: raw, as: UTF8.self) ?? String(raw.map { Character(Unicode.Scalar($0)) })
        let kept = text.unicodeScalars.filter { $0.value >= 0x20 || $0 == "\n" || $0 == "\t" }
        let trimmed = String(String.UnicodeScalarView(kept)).drop { $0.isWhitespace }
        let end = trimmed.lastIndex(where: { !$0.isWhitespace }).map { trimmed.index(after: $0) } ?? trimmed.startIndex
        return end > trimmed.startIndex ? String(trimmed[..<end]) : nil
    }
}
