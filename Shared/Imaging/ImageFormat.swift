import PictureFormats

/// The picture formats that are opened, told by their first bytes.
public enum ImageFormat: String, Sendable, Hashable, CaseIterable {
    case jpeg, png, gif, webp, tiff, bmp, heic, avif, jxl
    /// A camera's raw file, of any maker that LibRaw knows.
    case raw

    /// "image/jpeg" and so on.
    public var mimeType: String { kind.mimeType }

    /// The uniform type identifier, such as "public.jpeg".
    public var contentType: String { kind.contentType }

    /// The format of these bytes by their magic numbers, or `nil` where it is none of these.
    public static func sniff(_ bytes: some Collection<UInt8>) -> ImageFormat? {
        PictureKind.sniff(bytes).map(ImageFormat.init)
    }

    /// Whether pictures can be written in this format.
    ///
    /// HEIC, JPEG XL and raw files are read only; AVIF is written where libheif has an encoder.
    public var canEncode: Bool { self == .avif ? AvifEncoder.isThere : ![.heic, .jxl, .raw].contains(self) }

    /// The formats that can be opened, by name.
    public static let readableNames: [String] = allCases.map(\.rawValue)

    /// The formats that can be written, by name.
    public static let encodableNames: [String] = allCases.filter(\.canEncode).map(\.rawValue)

    init(_ kind: PictureKind) {
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
            case .raw: .raw
            }
    }

    private var kind: PictureKind {
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
        case .raw: .raw
        }
    }

    /// Whether the pixels come turned as the file itself says: then the EXIF orientation only tells.
    public var turnsItself: Bool { kind.turnsItself }

    /// Whether transparency survives; otherwise it is flattened on white.
    var keepsAlpha: Bool { self != .jpeg && self != .bmp }

    /// The longest side that the format can hold.
    var longestSide: Int { self == .webp ? 16_383 : 65_500 }

    /// ImageMagick's name of the coder.
    var coder: String { rawValue.uppercased() }
}
