/// The supported image formats. They are detected by their first bytes only, because file names can be wrong.
public enum ImageFormat: String, Sendable, Hashable, CaseIterable {
    case jpeg, png, gif, webp, tiff, bmp, heic, avif, jxl, psd, tga, ico, pnm
    /// A camera's raw file. Its first bytes cannot be distinguished from TIFF, so ``sniff(_:)`` never returns it.
    case raw

    /// Returns the format of these bytes, or `nil` if they begin no supported format.
    public static func sniff(_ bytes: some Collection<UInt8>) -> ImageFormat? {
        let head = Array(bytes.prefix(512))
        func has(_ text: StaticString, at offset: Int = 0) -> Bool {
            let expected = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
            return head.dropFirst(offset).starts(with: expected)
        }
        if head.starts(with: [0xFF, 0xD8, 0xFF]) { return .jpeg }
        if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return .png }
        if has("GIF87a") || has("GIF89a") { return .gif }
        if has("RIFF"), has("WEBP", at: 8) { return .webp }
        if tiffMagic.contains(where: head.starts) { return .tiff }
        if has("BM"), head.count >= 18, head[14] >= 12, head[15] == 0 { return .bmp }
        if has("ftyp", at: 4) { return brand(head) }
        if head.starts(with: [0xFF, 0x0A]) || head.starts(with: JPEGXLStructure.container) { return .jxl }
        if has("8BPS") { return .psd }
        if head.starts(with: ICOStructure.magic) { return .ico }
        if PNMStructure.sniff(head) { return .pnm }
        // TGA is tested last, because it has no magic number.
        return TGAStructure(ByteReader(head)) == nil ? nil : .tga
    }

    /// TIFF and BigTIFF, in both byte orders.
    private static let tiffMagic: [[UInt8]] = [
        [0x49, 0x49, 0x2A, 0x00], [0x4D, 0x4D, 0x00, 0x2A], [0x49, 0x49, 0x2B, 0x00], [0x4D, 0x4D, 0x00, 0x2B],
    ]

    /// Returns HEIC or AVIF by the major brand, then by the compatible brands.
    private static func brand(_ head: [UInt8]) -> ImageFormat? {
        let reader = ByteReader(head)
        guard let size = reader.big32(0), size >= 16, size % 4 == 0 else { return nil }
        let offsets = [8] + Array(stride(from: 16, to: min(size, head.count - 3), by: 4))
        let brands = offsets.compactMap { reader.text($0, 4) }
        for brand in brands {
            switch brand {
            case "avif", "avis": return .avif
            case "heic", "heix", "heim", "heis", "hevc", "hevx": return .heic
            default: continue
            }
        }
        return brands.contains("mif1") || brands.contains("msf1") ? .heic : nil
    }

    /// Image formats that are recognized but not opened.
    private static let unsupportedMagic: [(name: String, magic: [UInt8])] =
        [
            // OpenJPEG 2.5.0 ended the process with a failed assertion on a damaged file; the cause is not known.
            ("JPEG 2000", [0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20]), ("JPEG 2000", [0xFF, 0x4F, 0xFF, 0x51]),
            ("OpenEXR", [0x76, 0x2F, 0x31, 0x01]), ("JPEG XR", [0x49, 0x49, 0xBC]),
            ("Radiance HDR", Array("#?RADIANCE".utf8)), ("DirectDraw surface", Array("DDS ".utf8)),
            ("Windows cursor", [0, 0, 2, 0]), ("PFM", Array("PF\n".utf8)), ("PFM", Array("Pf\n".utf8)),
        ]

    /// Describes the apparent type of the bytes for an error message. The bytes themselves are never included.
    public static func describe(_ bytes: some Collection<UInt8>) -> String {
        let head = Array(bytes.prefix(256))
        if head.isEmpty { return "empty" }
        if let kind = sniff(head) { return kind.rawValue }
        let reader = ByteReader(head)
        if reader.text(4, 4) == "ftyp" { return "an ISO media file (\(reader.text(8, 4) ?? "unknown brand"))" }
        for (name, magic) in unsupportedMagic where head.starts(with: magic) { return name }
        if head.starts(with: Array("%!".utf8)) { return "PostScript" }
        if head.starts(with: Array("%PDF".utf8)) { return "PDF" }
        let isText = head.allSatisfy { $0 >= 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        if isText,
            let text = String(validating: head, as: UTF8.self) ?? String(validating: head.dropLast(3), as: UTF8.self)
        {
            let start = text.drop { $0.isWhitespace }
            if start.hasPrefix("<svg") || text.contains("<svg") { return "SVG" }
            return start.hasPrefix("<") ? "markup" : "text"
        }
        return "unknown bytes"
    }

    /// The names of the supported formats for error messages.
    public static let supportedNames: [String] = allCases.filter { $0 != .raw }.map(\.rawValue)

    /// True if decoders apply the file's own orientation, in which case the EXIF orientation is informational.
    public var isOrientedByDecoder: Bool { self == .heic || self == .avif || self == .jxl }

    /// The media type, for example "image/jpeg".
    public var mimeType: String {
        switch self {
        case .raw: "image/x-dcraw"
        case .psd: "image/vnd.adobe.photoshop"
        case .tga: "image/x-tga"
        case .ico: "image/vnd.microsoft.icon"
        case .pnm: "image/x-portable-anymap"
        default: "image/\(rawValue)"
        }
    }

    /// The uniform type identifier.
    public var contentType: String {
        switch self {
        case .jpeg: "public.jpeg"
        case .png: "public.png"
        case .gif: "com.compuserve.gif"
        case .webp: "org.webmproject.webp"
        case .tiff: "public.tiff"
        case .bmp: "com.microsoft.bmp"
        case .heic: "public.heic"
        case .avif: "public.avif"
        case .jxl: "public.jpeg-xl"
        case .psd: "com.adobe.photoshop-image"
        case .tga: "com.truevision.tga-image"
        case .ico: "com.microsoft.ico"
        case .pnm: "public.pbm"
        case .raw: "public.camera-raw-image"
        }
    }
}
