import CJPEG
public import Foundation
import ImageFormats

/// The name of the type of images in code for Apple's systems.
public typealias UIImage = PHImage

/// An encoded image. It can decode the pixels of a JPEG. Replaces `UIImage` and `NSImage`, which Linux lacks.
public struct PHImage: Sendable, Hashable {
    /// The bytes of the image file.
    public let data: Data
    /// Its uniform type identifier, for example `public.jpeg`.
    public let contentType: String
    /// The size of the upright image in pixels.
    public let size: CGSize

    /// Creates an image from the bytes of a file; nil if they are not those of an image.
    public init?(data: Data) {
        guard let header = try? ImageHeader.read([UInt8](data)) else { return nil }
        self.data = data
        contentType = header.rawContentType ?? header.kind.contentType
        size = CGSize(width: header.pixelWidth, height: header.pixelHeight)
    }

    /// Reads an image file; nil if it cannot be read or is not an image.
    public init?(contentsOfFile path: String) {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return nil }
        self.init(data: data)
    }

    init(data: Data, contentType: String, width: Int, height: Int) {
        self.data = data
        self.contentType = contentType
        size = CGSize(width: width, height: height)
    }

    /// Returns the image as a JPEG of a quality from 0 to 1; nil if its own format is not JPEG, or if it is damaged.
    ///
    /// With quality 1 the bytes of a JPEG are returned unchanged, because encoding them again could only lose detail.
    public func jpegData(compressionQuality: CGFloat) -> Data? {
        guard contentType == "public.jpeg" else { return nil }
        if compressionQuality >= 1 { return data }
        return pixels()?.jpegData(quality: Int((min(max(0, compressionQuality), 1) * 100).rounded()))
    }

    /// Decodes a JPEG; nil for other formats, and for damaged files. The pixels are as stored: the library delivers
    /// images upright.
    public func pixels() -> JPEGPixels? { contentType == "public.jpeg" ? JPEGPixels(data) : nil }
}

/// The pixels of a JPEG.
public struct JPEGPixels: Sendable, Hashable {
    public let width: Int
    public let height: Int
    /// Red, green and blue, one byte each, row by row from the upper left.
    public let bytes: [UInt8]

    /// Returns the red, green and blue of a pixel.
    public subscript(x: Int, y: Int) -> (red: UInt8, green: UInt8, blue: UInt8) {
        let start = (y * width + x) * 3
        return (bytes[start], bytes[start + 1], bytes[start + 2])
    }

    init?(_ data: Data) {
        let file = [UInt8](data)
        let decoded = file.withUnsafeBufferPointer { file -> (Int, Int, [UInt8])? in
            guard let reader = safelight_jpeg_open(file.baseAddress, file.count) else { return nil }
            defer { safelight_jpeg_close(reader) }
            var (width, height) = (0, 0)
            guard safelight_jpeg_begin(reader, 8, &width, &height) == 1, width > 0, height > 0 else { return nil }
            var pixels = [UInt8](repeating: 0, count: width * height * 3)
            let isRead = pixels.withUnsafeMutableBufferPointer { pixels in
                safelight_jpeg_read(reader, pixels.baseAddress, width * 3, height)
            }
            return isRead == 1 ? (width, height, pixels) : nil
        }
        guard let decoded else { return nil }
        (width, height, bytes) = decoded
    }

    /// Encodes the pixels.
    ///
    /// - Parameter quality: 1...100
    func jpegData(quality: Int) -> Data? {
        guard let writer = safelight_jpeg_create(width, height, Int32(min(max(quality, 1), 100)), 1, 0, nil, 0) else {
            return nil
        }
        defer { safelight_jpeg_discard(writer) }
        let isWritten = bytes.withUnsafeBufferPointer { bytes in
            safelight_jpeg_write(writer, bytes.baseAddress, width * 3, height)
        }
        var count = 0
        guard isWritten == 1, let file = safelight_jpeg_finish(writer, &count) else { return nil }
        return Data(bytes: file, count: count)
    }
}

/// The EXIF orientation of a file: Image I/O's type, which Linux lacks.
public enum CGImagePropertyOrientation: UInt32, Sendable, CaseIterable {
    case up = 1
    case upMirrored = 2
    case down = 3
    case downMirrored = 4
    case leftMirrored = 5
    case right = 6
    case rightMirrored = 7
    case left = 8
}
