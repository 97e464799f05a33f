import Foundation
@testable import Imaging
import ImageFormats
import PhotoModel
import TestSupport
import Testing

/// Compares the fast mode with the exact mode, over a grid of sizes and real photos.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct FastModeTests {
    /// Photographs of phones and cameras, 2 to 16 megapixels.
    private static let photos = [
        "HMD_Nokia_8.3_5G.jpg", "iphone_hdr_YES.jpg", "canon_hdr_NO.jpg", "28-hex_value.jpg", "42_IndexError.jpg",
        "Landscape_1.jpg", "Portrait_6.jpg", "samplefilehub.heif",
    ]
    /// Sizes around an eighth, a quarter, three eighths and a half of the photos, and others.
    private static let sides = [64, 120, 225, 256, 380, 408, 450, 504, 816]

    /// Renders as TIFF, because compressing PNG would take most of the time.
    private func render(_ bytes: [UInt8], _ side: Int, _ mode: ImageResizeMode) throws -> RenderedImage {
        try RenditionRenderer.render(
            bytes,
            RenditionOptions(target: .size(width: side, height: side), resizeMode: mode, format: .tiff)
        )
    }

    @Test(.spec("S-43"), arguments: photos) func `an image that is scaled down is the same in both modes`(name: String)
        throws
    {
        let file = try #require(try Needed.photographs(["jpg", "heif"]).first { $0.lastPathComponent == name })
        let bytes = SharedPhotos.bytes(file)
        // Each size is tested with two or three of the photos; the long form has every size with each photo.
        let number = try #require(Self.photos.firstIndex(of: name))
        for (index, side) in Self.sides.enumerated() where TestEnvironment.rounds(1) > 1 || index % 3 == number % 3 {
            let exact = try render(bytes, side, .exact)
            guard !exact.isUpscaled else { continue }
            // The pixels are compared, because a TIFF has undefined bytes between its parts.
            #expect(try TestPixels(render(bytes, side, .fast).bytes) == TestPixels(exact.bytes), "\(side)")
        }
    }

    @Test(.spec("S-45"))
    func `a quick preview has at least a quarter of the requested size, and is not larger than the image`() throws {
        for (width, height) in [(1201, 801), (640, 480), (3000, 2000), (97, 1700)] {
            let bytes = TestImages.jpeg(width: width, height: height)
            for side in [20, 90, 380, 1000, 5000] {
                for mode in [ImageResizeMode.fast, .exact] {
                    let options = RenditionOptions(target: .size(width: side, height: side), resizeMode: mode)
                    guard let preview = try Preview.quick(bytes, options) else {
                        Issue.record("there is no quick preview of \(width) by \(height)")
                        continue
                    }
                    let image = try RenditionRenderer.render(bytes, options)
                    let full = (width: min(width, image.pixelWidth), height: min(height, image.pixelHeight))
                    #expect(
                        4 * preview.pixelWidth >= full.width,
                        "\(width) by \(height) at \(side): \(preview.pixelWidth)"
                    )
                    #expect(
                        4 * preview.pixelHeight >= full.height,
                        "\(width) by \(height) at \(side): \(preview.pixelHeight)"
                    )
                    #expect(preview.pixelWidth <= full.width + 1 && preview.pixelHeight <= full.height + 1)
                }
            }
        }
    }
}
