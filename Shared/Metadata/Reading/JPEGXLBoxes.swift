import CJXL
import ImageFormats

/// The EXIF and XMP boxes of a JPEG XL file, which libjxl has to decompress if they are `brob` boxes (ISO/IEC 18181-2).
struct JPEGXLBoxes {
    /// The TIFF structure.
    private(set) var exif: [UInt8]?
    private(set) var xmp: [UInt8]?

    /// The maximum size of one box in bytes.
    private static let maxBoxBytes = 16 << 20

    /// Reads the boxes that can be read. Both are nil for a bare codestream.
    init(_ bytes: [UInt8]) {
        guard let decoder = JxlDecoderCreate(nil) else { return }
        defer { JxlDecoderDestroy(decoder) }
        guard JxlDecoderSubscribeEvents(decoder, Int32(JXL_DEC_BOX.rawValue)) == JXL_DEC_SUCCESS,
            JxlDecoderSetDecompressBoxes(decoder, JXL_TRUE) == JXL_DEC_SUCCESS
        else { return }
        bytes.withUnsafeBufferPointer { buffer in
            JxlDecoderSetInput(decoder, buffer.baseAddress, buffer.count)
            JxlDecoderCloseInput(decoder)
            read(decoder)
        }
    }

    private mutating func read(_ decoder: OpaquePointer) {
        var next = JxlDecoderProcessInput(decoder)
        while next == JXL_DEC_BOX {
            var type: (CChar, CChar, CChar, CChar) = (0, 0, 0, 0)
            let status = withUnsafeMutablePointer(to: &type) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 4) { JxlDecoderGetBoxType(decoder, $0, JXL_TRUE) }
            }
            guard status == JXL_DEC_SUCCESS else { return }
            let name = [type.0, type.1, type.2, type.3].map(UInt8.init(bitPattern:))
            if name == Array("Exif".utf8), exif == nil {
                let box: [UInt8]
                (box, next) = Self.content(decoder)
                // The box begins with the offset of the TIFF structure.
                if let offset = ByteReader(box).big32(0) {
                    exif = ByteReader(box).slice(4 + offset, box.count - 4 - offset).map { Array($0) }
                }
            } else if name == Array("xml ".utf8), xmp == nil {
                (xmp, next) = Self.content(decoder)
            } else {
                next = JxlDecoderProcessInput(decoder)
            }
        }
    }

    /// Returns the bytes of a box and the next decoder status; no bytes if the box is too long.
    private static func content(_ decoder: OpaquePointer) -> (bytes: [UInt8], next: JxlDecoderStatus) {
        var content: [UInt8] = []
        var next = JXL_DEC_BOX_NEED_MORE_OUTPUT
        while next == JXL_DEC_BOX_NEED_MORE_OUTPUT {
            guard content.count < maxBoxBytes else { return ([], JXL_DEC_ERROR) }
            let size = max(16 << 10, content.count)
            content += [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                guard JxlDecoderSetBoxBuffer(decoder, buffer.baseAddress, size) == JXL_DEC_SUCCESS else {
                    next = JXL_DEC_ERROR
                    return
                }
                next = JxlDecoderProcessInput(decoder)
                count = size - JxlDecoderReleaseBoxBuffer(decoder)
            }
        }
        return (content, next)
    }
}
