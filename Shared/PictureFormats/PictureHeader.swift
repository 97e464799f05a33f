/// What the structure of a picture file says, read without decoding a pixel.
///
/// Both trades that open pictures lean on this: Imaging to refuse what is too large before a decoder sees a byte,
/// Metadata for sizes where the metadata library is wrong or fails.
public struct PictureHeader: Sendable, Hashable {
    public let kind: PictureKind
    /// Pixels across as stored, before the EXIF orientation.
    ///
    /// For HEIC, AVIF and JPEG XL after the file's own turns and mirrors, because every decoder applies those.
    public var storedWidth: Int
    public var storedHeight: Int
    /// EXIF 1...8 as stored; 1 where there is none or it is invalid.
    public var orientation = 1
    /// Whether obeying `orientation` turns the decoded pixels.
    public var obeysOrientation: Bool { !kind.turnsItself }
    /// Pictures in the file that follow one another: frames of GIF, WebP, APNG.
    ///
    /// At least 1.
    public var frameCount = 1
    public var hasAlpha = false
    /// Whether the file reaches its own end mark; false means bytes are missing.
    public var isComplete = true
    /// Where the TIFF structure of the EXIF block stands in the file.
    public var exif: Range<Int>?
    /// Where the XMP packet stands in the file.
    public var xmp: Range<Int>?

    /// A header of what is known by other means than the file's structure.
    public init(kind: PictureKind, storedWidth: Int, storedHeight: Int) {
        self.kind = kind
        self.storedWidth = storedWidth
        self.storedHeight = storedHeight
    }

    private var isTurned: Bool { obeysOrientation && orientation >= 5 }
    /// Pixels across as displayed.
    public var pixelWidth: Int { isTurned ? storedHeight : storedWidth }
    /// Pixels down as displayed.
    public var pixelHeight: Int { isTurned ? storedWidth : storedHeight }

    /// Why there is no header.
    public enum Failure: Error, Sendable, Hashable {
        case unsupported(found: String)
        /// The file ends inside its header.
        case truncated
        case invalid(String)
    }

    /// Reads the structure of a picture.
    ///
    /// Costs one pass over the file's chunks at most.
    public static func read(_ bytes: [UInt8]) throws(Failure) -> PictureHeader {
        guard let kind = PictureKind.sniff(bytes) else {
            throw .unsupported(found: PictureKind.describe(bytes))
        }
        let reader = ByteReader(bytes)
        var header =
            switch kind {
            case .jpeg: try JPEGStructure.read(reader)
            case .png: try PNGStructure.read(reader)
            case .gif: try GIFStructure.read(reader)
            case .webp: try WebPStructure.read(reader)
            case .tiff: try TIFFStructure.read(reader)
            case .bmp: try BMPStructure.read(reader)
            case .heic, .avif: try BMFFStructure.read(reader, kind: kind)
            case .jxl: try JPEGXLStructure.read(reader)
            case .raw: throw .unsupported(found: kind.rawValue)
            }
        guard header.storedWidth > 0, header.storedHeight > 0 else {
            throw .invalid("a picture of \(header.storedWidth) by \(header.storedHeight) pixels")
        }
        let stored = header.exif.flatMap { TIFFStructure.orientation(ByteReader(bytes[$0])) }
        let orientation = stored ?? header.xmp.flatMap { XMPText.orientation(ByteReader(bytes[$0])) }
        if let orientation, (1...8).contains(orientation) { header.orientation = orientation }
        return header
    }
}
