public import ImageFormats

extension ImageFormat {
    /// True if images can be encoded in this format.
    ///
    /// The other formats can only be decoded. AVIF can be encoded if libavif has an AV1 encoder.
    public var canEncode: Bool {
        switch self {
        case .jpeg, .png, .gif, .webp, .tiff, .bmp: true
        case .avif: AvifEncoder.isAvailable
        case .heic, .jxl, .psd, .tga, .ico, .pnm, .raw: false
        }
    }

    /// The names of the formats that can be decoded.
    static let readableNames: [String] = allCases.map(\.rawValue)

    /// The names of the formats that can be encoded.
    public static let encodableNames: [String] = allCases.filter(\.canEncode).map(\.rawValue)

    /// True if the format supports transparency; otherwise images are flattened on white.
    var keepsAlpha: Bool { self != .jpeg && self != .bmp }

    /// True if images in high dynamic range can be encoded in this format.
    var supportsHDR: Bool { self == .jpeg || self == .avif }

    /// The maximum side that the format supports, in pixels.
    var maxSide: Int { self == .webp ? 16_383 : 65_500 }

    /// The name of ImageMagick's coder.
    var coder: String { rawValue.uppercased() }
}
