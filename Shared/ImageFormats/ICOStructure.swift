/// The largest image of a Windows icon.
public struct ICOStructure: Sendable, Hashable {
    /// The bytes of the image: a PNG file, or a bitmap without a file header.
    public let content: Range<Int>
    public let isPNG: Bool
    public let width: Int
    public let height: Int
    /// Bits of a pixel of a bitmap; 32 for a PNG.
    public let depth: Int

    static let magic: [UInt8] = [0, 0, 1, 0]
    private static let bitmapHeaderBytes = 40

    public init(_ reader: ByteReader) throws(ImageHeader.Failure) {
        guard let count = reader.little16(4) else { throw .truncated }
        guard (1...256).contains(count) else { throw .invalid("an icon of \(count) images") }
        var best: (area: Int, depth: Int, content: Range<Int>)?
        for index in 0..<count {
            let at = 6 + 16 * index
            guard let width = reader.byte(at), let height = reader.byte(at + 1), let reserved = reader.byte(at + 3),
                let depth = reader.little16(at + 6), let size = reader.little32(at + 8),
                let offset = reader.little32(at + 12)
            else { throw .truncated }
            guard reserved == 0 || reserved == 255, offset >= 6 + 16 * count, size > 0, depth <= 32 else {
                throw .invalid("an icon with an impossible list of images")
            }
            let area = (width == 0 ? 256 : width) * (height == 0 ? 256 : height)
            if let best, (best.area, best.depth) >= (area, depth) { continue }
            best = (area, depth, offset..<(offset + size))
        }
        guard let best, let bytes = reader.slice(best.content.lowerBound, best.content.count) else { throw .truncated }
        content = best.content
        let image = ByteReader(bytes)
        isPNG = image.byte(0) == 0x89
        if isPNG {
            guard ImageFormat.sniff(bytes.prefix(16)) == .png else { throw .invalid("an icon of unknown content") }
            let inner = try PNGStructure.read(image)
            guard inner.isComplete else { throw .truncated }
            (width, height, depth) = (inner.storedWidth, inner.storedHeight, 32)
            return
        }
        guard let length = image.little32(0), let across = image.little32(4), let down = image.little32(8),
            let planes = image.little16(12), let bits = image.little16(14), let compression = image.little32(16)
        else { throw .truncated }
        // The height counts the mask too.
        guard length >= Self.bitmapHeaderBytes, length < 256, planes <= 1, [1, 4, 8, 16, 24, 32].contains(bits),
            compression == 0, (1...1024).contains(across), (2...2048).contains(down), down % 2 == 0
        else { throw .invalid("an icon with an impossible bitmap") }
        (width, height, depth) = (across, down / 2, bits)
    }

    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        let icon = try ICOStructure(reader)
        var header = ImageHeader(kind: .ico, storedWidth: icon.width, storedHeight: icon.height)
        header.hasAlpha = true
        return header
    }
}
