import Foundation
import ImageFormats
import PhotoModel
import SamplePhotos
import Synchronization
import TestSupport

@testable import Imaging

/// Test images that are large enough to take some time to decode.
enum LargeImageFixtures {
    /// The images without metadata, by their width; images of one width have the same pixels.
    private static let images = Mutex<[Int: [UInt8]]>([:])

    private static func plainImage(width: Int) throws -> [UInt8] {
        try images.withLock { images in
            if let image = images[width] { return image }
            let small = TestImages.jpeg(width: 300, height: 200, orientation: 0)
            let options = RenditionOptions(
                target: .size(width: width, height: width),
                resizeMode: .exact,
                format: .jpeg,
                quality: 85
            )
            let image = try RenditionRenderer.render(small, options).bytes
            images[width] = image
            return image
        }
    }

    /// Returns a large JPEG of the ratio 3:2, with an EXIF preview if requested. It is fast in debug builds too.
    ///
    /// - Parameter seed: makes the bytes different, in a comment; the pixels stay the same
    static func large(
        width: Int = 1500,
        seed: UInt64,
        preview: Bool,
        orientation: Int = 1,
        previewPixels: [UInt8]? = nil
    ) throws -> [UInt8] {
        var bytes = try plainImage(width: width)
        var exif = ExifBlock()
        exif.main.append(.short(0x0112, orientation))
        if preview { exif.thumbnail = try previewPixels ?? plainImage(width: 160) }
        let comment: [UInt8] = [0xFF, 0xFE, 0, 10] + withUnsafeBytes(of: seed.bigEndian) { Array($0) }
        bytes.insert(contentsOf: exif.segment + comment, at: 2)
        return bytes
    }

    /// Returns a test image that contains itself as its preview.
    static func withItselfAsPreview(_ bytes: [UInt8], orientation: Int) -> [UInt8] {
        // The first segment is the EXIF block of the image itself.
        var plain = bytes
        let length = Int(plain[4]) << 8 | Int(plain[5])
        plain.removeSubrange(2..<4 + length)
        var exif = ExifBlock()
        exif.main.append(.short(0x0112, orientation))
        exif.thumbnail = plain
        plain.insert(contentsOf: exif.segment, at: 2)
        return plain
    }
}

/// The decoded pixels of a delivered image.
struct DeliveredPixels {
    let width: Int
    let height: Int
    private let rgb: [UInt8]

    init(_ bytes: [UInt8]) throws {
        let header = try ImageHeader.read(bytes)
        let wand = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
        let pixels = try ContactSheet.pixels(of: wand)
        (width, height, rgb) = (pixels.width, pixels.height, pixels.rgb)
    }

    /// Returns the colour at a position given as fractions of width and height.
    func colour(_ x: Double, _ y: Double) -> (red: Int, green: Int, blue: Int) {
        let column = min(width - 1, Int(x * Double(width)))
        let offset = 3 * (min(height - 1, Int(y * Double(height))) * width + column)
        return (Int(rgb[offset]), Int(rgb[offset + 1]), Int(rgb[offset + 2]))
    }
}
