import CJPEG

/// Writes a JPEG row by row. Only one thread at a time may use it.
final class JPEGWriter: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Starts a JPEG. Chroma is subsampled below quality 90.
    ///
    /// - Parameter isOptimized: true to compute Huffman tables for the image, which takes a third more time and saves a
    ///   few percent of the size; false to use the standard tables
    init(
        width: Int,
        height: Int,
        quality: Int,
        isOptimized: Bool = false,
        profile: [UInt8]
    ) throws(ImagingError) {
        let (halvesChroma, computesTables): (Int32, Int32) = (quality >= 90 ? 0 : 1, isOptimized ? 1 : 0)
        guard
            let pointer = safelight_jpeg_create(
                width,
                height,
                Int32(quality),
                halvesChroma,
                computesTables,
                profile,
                profile.count
            )
        else { throw .encodingFailed("out of memory") }
        self.pointer = pointer
    }

    deinit { safelight_jpeg_discard(pointer) }

    private var failure: ImagingError {
        .encodingFailed("encoding: " + String(cString: safelight_jpeg_writer_message(pointer)))
    }

    func write(_ rows: UnsafePointer<UInt8>, rowBytes: Int, count: Int) throws(ImagingError) {
        guard safelight_jpeg_write(pointer, rows, rowBytes, count) == 1 else { throw failure }
    }

    func finish() throws(ImagingError) -> [UInt8] {
        var count = 0
        guard let bytes = safelight_jpeg_finish(pointer, &count) else { throw failure }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }
}
