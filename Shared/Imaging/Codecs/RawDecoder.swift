import CMagickWand
import CRaw
import ImageFormats

/// Decodes camera raw files with LibRaw: from the JPEG that the camera embedded if it is large enough, otherwise by
/// developing the sensor data.
enum RawDecoder {
    /// Returns true if the bytes may be a raw file and should be opened with LibRaw.
    static func isCandidate(_ bytes: [UInt8]) -> Bool {
        if RawFileType.sniff(bytes, fileExtension: nil) != nil { return true }
        return ImageFormat.sniff(bytes) == .tiff && TIFFStructure.isRaw(ByteReader(bytes))
    }

    /// Returns the header of a raw file; nil if LibRaw cannot open the bytes.
    static func header(_ bytes: [UInt8]) -> ImageHeader? {
        withFile(bytes) { file in
            var (width, height, orientation) = (0, 0, Int32(1))
            safelight_raw_size(file, &width, &height, &orientation)
            var header = ImageHeader(kind: .raw, storedWidth: width, storedHeight: height)
            header.orientation = Int(orientation)
            return header
        } ?? nil
    }

    /// Returns the camera's own JPEG with orientation applied; nil if there is none.
    static func preview(_ bytes: [UInt8], _ header: ImageHeader, limits: PixelLimits) throws(ImagingError) -> Wand? {
        let found: [UInt8]?? = withFile(bytes) { file in
            var count = 0
            guard let start = safelight_raw_preview(file, &count) else { return nil }
            return Array(UnsafeBufferPointer(start: start, count: count))
        }
        guard let jpeg = found ?? nil, let inner = try? ImageHeader.read(jpeg), inner.kind == .jpeg else {
            return nil
        }
        try limits.check(inner)
        // The embedded JPEG has the orientation of the main image, regardless of its own metadata.
        return try Decoder.decode(
            jpeg,
            inner,
            eighths: DecodeScale.full,
            scale: 1,
            limits: limits,
            orientation: header.orientation
        )
    }

    /// Decodes the image with orientation applied. `scale` is the fraction of its size that is needed.
    static func decode(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        scale: Double,
        limits: PixelLimits
    ) throws(ImagingError) -> Wand {
        if scale < 1 {
            do throws(ImagingError) {
                if let preview = try preview(bytes, header, limits: limits),
                    Double(preview.width) >= scale * Double(header.pixelWidth),
                    Double(preview.height) >= scale * Double(header.pixelHeight)
                {
                    return preview
                }
            } catch {
                // The sensor data of a file with a damaged preview may be intact.
            }
        }
        let wand = try Wand()
        let outcome: Result<Void, ImagingError>? = withFile(bytes) { file in
            var (width, height, colours) = (0, 0, Int32(0))
            var reason: UnsafePointer<CChar>?
            let isHalf: Int32 = scale <= 0.5 ? 1 : 0
            guard let pixels = safelight_raw_develop(file, isHalf, &width, &height, &colours, &reason) else {
                return .failure(.undecodable(reason: reason.map { String(cString: $0) } ?? "LibRaw failed"))
            }
            return Result { () throws(ImagingError) -> Void in
                guard colours == 1 else { return try wand.constitute(pixels, width: width, height: height) }
                let grey = UnsafeBufferPointer(start: pixels, count: width * height)
                try wand.constitute(colour(grey), width: width, height: height)
            }
        }
        guard let outcome else { throw .undecodable(reason: "LibRaw cannot open the file") }
        try outcome.get()
        try wand.apply(orientation: header.orientation)
        return wand
    }

    /// Returns the pixels of a sensor without colour filters as red, green and blue.
    private static func colour(_ grey: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 3 * grey.count) { target, count in
            for (index, value) in grey.enumerated() {
                target[3 * index] = value
                target[3 * index + 1] = value
                target[3 * index + 2] = value
            }
            count = 3 * grey.count
        }
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
