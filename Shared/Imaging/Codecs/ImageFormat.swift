import ImageFormats

/// The supported image formats, detected by their first bytes.
public enum ImageFormat: String, Sendable, Hashable, CaseIterable {
    case jpeg, png, gif, webp, tiff, bmp, heic, avif, jxl, psd, tga, ico, pnm
    /// A camera raw file of any type that LibRaw supports.
    case raw

    /// The media type, for example "image/jpeg".
    public var mimeType: String { kind.mimeType }

    /// The uniform type identifier, for example "public.jpeg".
    public var contentType: String { kind.contentType }

    /// Detects the format by magic bytes; `nil` if it is not supported.
    public static func sniff(_ bytes: some Collection<UInt8>) -> ImageFormat? {
        ImageFileType.sniff(bytes).map(ImageFormat.init)
    }

    /// True if images can be encoded in this format.
    ///
    /// The others can only be decoded. AVIF can be encoded if libheif has an encoder.
    public var canEncode: Bool {
        switch self {
        case .jpeg, .png, .gif, .webp, .tiff, .bmp: true
        case .avif: AvifEncoder.isThere
        case .heic, .jxl, .psd, .tga, .ico, .pnm, .raw: false
        }
    }

    /// The names of the formats that can be decoded.
    public static let readableNames: [String] = allCases.map(\.rawValue)

    /// The names of the formats that can be encoded.
    public static let encodableNames: [String] = allCases.filter(\.canEncode).map(\.rawValue)

    init(_ kind: ImageFileType) {
        self =
            switch kind {
            case .jpeg: .jpeg
            case .png: .png
            case .gif: .gif
            case .webp: .webp
            case .tiff: .tiff
            case .bmp: .bmp
            case .heic: .heic
            case .avif: .avif
            case .jxl: .jxl
            case .psd: .psd
            case .tga: .tga
            case .ico: .ico
            case .pnm: .pnm
            case .raw: .raw
            }
    }

    private var kind: ImageFileType {
        switch self {
        case .jpeg: .jpeg
        case .png: .png
        case .gif: .gif
        case .webp: .webp
        case .tiff: .tiff
        case .bmp: .bmp
        case .heic: .heic
        case .avif: .avif
        case .jxl: .jxl
        case .psd: .psd
        case .tga: .tga
        case .ico: .ico
        case .pnm: .pnm
        case .raw: .raw
        }
    }

    /// True if decoders apply the file's own orientation, in which case the EXIF orientation is informational.
    public var turnsItself: Bool { kind.turnsItself }

    /// True if the format supports transparency; otherwise images are flattened on white.
    var keepsAlpha: Bool { self != .jpeg && self != .bmp }

    /// The longest side that the format supports, in pixels.
    var longestSide: Int { self == .webp ? 16_383 : 65_500 }

    /// The name of ImageMagick's coder.
    var coder: String { rawValue.uppercased() }
}
