/// The properties of an image file that can be read from its structure without decoding pixels.
///
/// Imaging uses them to refuse images that are too large before a decoder reads them, Metadata to get sizes that the
/// metadata library reports wrongly or not at all.
public struct ImageHeader: Sendable, Hashable {
    public let kind: ImageFormat
    /// The width in pixels as stored, before the EXIF orientation.
    ///
    /// For HEIC, AVIF and JPEG XL it is the width after the file's own rotation and mirroring, because every decoder
    /// applies those.
    public var storedWidth: Int
    /// The height in pixels as stored; see ``storedWidth``.
    public var storedHeight: Int
    /// The EXIF orientation 1...8 as stored; 1 if it is missing or invalid.
    public var orientation = 1
    /// True if `orientation` has to be applied to the decoded pixels.
    public var needsOrientation: Bool { !kind.isOrientedByDecoder }
    /// The number of frames of a GIF, WebP or APNG; at least 1.
    public var frameCount = 1
    /// True if the file may contain transparency.
    public var hasAlpha = false
    /// True if the grey of an AVIF without colours is in limited range, 16...235 of eight bits, which its decoder does
    /// not convert.
    public var hasLimitedGrey = false
    /// True if the file contains its end marker; false if bytes are missing.
    public var isComplete = true
    /// True if the decoder returns the negative: ImageMagick ignores that white is zero at two and four bits.
    public var isNegated = false
    /// The uniform type identifier of a camera raw file with the structure of TIFF; nil for any other file. The size is
    /// that of its image, not of a preview.
    public var rawContentType: String?
    /// The range of the EXIF block's TIFF structure in the file.
    public var exif: Range<Int>?
    /// The range of the XMP packet in the file.
    public var xmp: Range<Int>?
    /// The range of the IPTC records of a Photoshop file.
    public var iptc: Range<Int>?
    /// The metadata in the text chunks of a PNG.
    public var texts = PNGTextChunks()

    /// The colours that a PNG specifies by numbers: by `cICP`, which takes precedence over a profile, or if it has no
    /// profile, by `sRGB` or by `gAMA` and `cHRM`. Nil if it has none of them.
    public var codedColours: CodedColours?

    /// Creates a header from values that were determined by other means than the file's structure.
    public init(kind: ImageFormat, storedWidth: Int, storedHeight: Int) {
        self.kind = kind
        self.storedWidth = storedWidth
        self.storedHeight = storedHeight
    }

    private var swapsSides: Bool { needsOrientation && orientation >= 5 }
    /// The width in pixels as displayed.
    public var pixelWidth: Int { swapsSides ? storedHeight : storedWidth }
    /// The height in pixels as displayed.
    public var pixelHeight: Int { swapsSides ? storedWidth : storedHeight }

    /// The reason why the image is not shown; nil if it is within the bounds.
    public var problem: String? {
        ImageBounds.problem(kind, width: pixelWidth, height: pixelHeight, frames: frameCount)
    }

    /// The maximum side of an image that can be imported, in pixels. The limits of ``ImageBounds`` are much smaller.
    private static let maxSide = Int(Int32.max)

    /// The reason why a header could not be read.
    public enum Failure: Error, Sendable, Hashable {
        case unsupported(found: String)
        /// The file ends inside its header.
        case truncated
        case invalid(String)
    }

    /// Parses the structure of an image file in at most one pass over its chunks.
    public static func read(_ bytes: [UInt8]) throws(Failure) -> ImageHeader {
        guard let kind = ImageFormat.sniff(bytes) else {
            throw .unsupported(found: ImageFormat.describe(bytes))
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
            case .psd: try PSDStructure.read(reader)
            case .tga: try TGAStructure.read(reader)
            case .ico: try ICOStructure.read(reader)
            case .pnm: try PNMStructure.read(reader)
            case .raw: throw .unsupported(found: kind.rawValue)
            }
        guard header.storedWidth > 0, header.storedHeight > 0 else {
            throw .invalid("an image of \(header.storedWidth) by \(header.storedHeight) pixels")
        }
        guard max(header.storedWidth, header.storedHeight) <= maxSide else {
            throw .invalid("an image of \(header.storedWidth) by \(header.storedHeight) pixels, more than is supported")
        }
        let exif = header.exif.map { bytes[$0] } ?? header.texts.exif?[...]
        let xmp = header.xmp.map { bytes[$0] } ?? header.texts.xmp?[...]
        let orientation =
            exif.flatMap { TIFFStructure.orientation(ByteReader($0)) }
            ?? xmp.flatMap { XMPText.orientation(ByteReader($0)) }
        if let orientation, (1...8).contains(orientation) { header.orientation = orientation }
        return header
    }
}
