import CMagickWand
import CRaw
import PictureFormats

/// Camera raw files through LibRaw: by the JPEG that the camera put into them where that is large enough, else developed
/// from the sensor's own numbers.
enum RawDecoder {
    /// Whether LibRaw should look at the bytes.
    static func isCandidate(_ bytes: [UInt8]) -> Bool {
        if RawKind.sniff(bytes, ending: nil) != nil { return true }
        return PictureKind.sniff(bytes) == .tiff && TIFFStructure.isRaw(ByteReader(bytes))
    }

    /// The header of a raw file; nil where LibRaw finds none in the bytes.
    static func header(_ bytes: [UInt8]) -> PictureHeader? {
        withFile(bytes) { file in
            var (width, height, orientation) = (0, 0, Int32(1))
            safelight_raw_size(file, &width, &height, &orientation)
            var header = PictureHeader(kind: .raw, storedWidth: width, storedHeight: height)
            header.orientation = Int(orientation)
            return header
        } ?? nil
    }

    /// The camera's own JPEG, turned; nil where there is none.
    static func preview(_ bytes: [UInt8], _ header: PictureHeader, limits: PixelLimits) throws(ImagingError) -> Wand? {
        let found: [UInt8]?? = withFile(bytes) { file in
            var count = 0
            guard let start = safelight_raw_preview(file, &count) else { return nil }
            return Array(UnsafeBufferPointer(start: start, count: count))
        }
        guard let jpeg = found ?? nil, let inner = try? PictureHeader.read(jpeg), inner.kind == .jpeg else {
            return nil
        }
        try limits.check(inner)
        // It has the turn of the picture that it is of, whatever its own metadata say.
        return try Decoder.decode(
            jpeg,
            inner,
            eighths: DecodeScale.full,
            scale: 1,
            limits: limits,
            orientation: header.orientation
        )
    }

    /// All that the sensor saw, turned; `scale` is the fraction of the picture's size that is needed.
    static func decode(
        _ bytes: [UInt8],
        _ header: PictureHeader,
        scale: Double,
        limits: PixelLimits
    ) throws(ImagingError) -> Wand {
        if scale < 1, let preview = try preview(bytes, header, limits: limits),
            Double(preview.width) >= scale * Double(header.pixelWidth),
            Double(preview.height) >= scale * Double(header.pixelHeight)
        {
            return preview
        }
        let wand = try Wand()
        let outcome: Result<Void, ImagingError>? = withFile(bytes) { file in
            var (width, height) = (0, 0)
            var problem: UnsafePointer<CChar>?
            guard let pixels = safelight_raw_develop(file, scale <= 0.5 ? 1 : 0, &width, &height, &problem) else {
                return .failure(.undecodable(reason: problem.map { String(cString: $0) } ?? "LibRaw failed"))
            }
            return Result { () throws(ImagingError) in
                try wand.constitute(pixels, width: width, height: height)
            }
        }
        guard let outcome else { throw .undecodable(reason: "LibRaw finds no raw file") }
        try outcome.get()
        try wand.obey(orientation: header.orientation)
        return wand
    }

    /// The version of LibRaw.
    static var version: String { safelight_raw_version().map { String(cString: $0) } ?? "" }

    private static func withFile<Value>(_ bytes: [UInt8], _ body: (OpaquePointer) -> Value) -> Value? {
        bytes.withUnsafeBytes { buffer in
            guard let file = safelight_raw_open(buffer.baseAddress, buffer.count) else { return nil }
            defer { safelight_raw_close(file) }
            return body(file)
        }
    }
}
