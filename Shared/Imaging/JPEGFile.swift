import CJPEG

/// A JPEG that is read row by row; used by one thread at a time.
final class JPEGReader: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// The bytes must live as long as the reader; nil where there is no memory.
    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let pointer = safelight_jpeg_open(bytes.baseAddress, bytes.count) else { return nil }
        self.pointer = pointer
    }

    deinit { safelight_jpeg_close(pointer) }

    /// Whether it has three channels of eight bits that become red, green and blue.
    var isPlain: Bool { safelight_jpeg_is_plain(pointer) == 1 }

    var profile: [UInt8] {
        var count = 0
        guard let bytes = safelight_jpeg_profile(pointer, &count) else { return [] }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }

    /// Begins at eighths of the size; the size that comes, nil where it cannot be decoded.
    func begin(eighths: Int) -> (width: Int, height: Int)? {
        var (width, height) = (0, 0)
        guard safelight_jpeg_begin(pointer, UInt32(eighths), &width, &height) == 1 else { return nil }
        return (width, height)
    }

    func read(_ rows: UnsafeMutablePointer<UInt8>, rowBytes: Int, count: Int) throws(ImagingError) {
        guard safelight_jpeg_read(pointer, rows, rowBytes, count) == 1 else {
            throw .undecodable(reason: "decoding: " + String(cString: safelight_jpeg_reader_message(pointer)))
        }
        if safelight_jpeg_is_cut(pointer) == 1 { throw .truncated }
    }
}

/// A JPEG that is written row by row; used by one thread at a time.
final class JPEGWriter: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// The same quality, and halved chroma below 90, as `Encoder` gives; Huffman tables are the standard's, which takes
    /// a third of the time off and adds a few percent to the size.
    init(width: Int, height: Int, quality: Int, profile: [UInt8]) throws(ImagingError) {
        let isHalved: Int32 = quality >= 90 ? 0 : 1
        guard
            let pointer = safelight_jpeg_create(width, height, Int32(quality), isHalved, profile, profile.count)
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
