import ImageFormats
import PhotoModel
import Testing
import TestSupport

@testable import Imaging

/// Tests of renditions that are refused before anything is decoded, because they would take too long.
@Suite(.timeLimit(.minutes(5)))
struct RenditionCostTests {
    private let photo = TestImages.jpeg(width: 64, height: 48)

    private func error(_ side: Int, _ format: ImageFormat, seconds: Double) -> ImagingError? {
        var limits = PixelLimits()
        limits.seconds = seconds
        let options = RenditionOptions(
            target: .size(width: side, height: side),
            resizeMode: .exact,
            format: format
        )
        do throws(ImagingError) {
            _ = try RenditionRenderer.render(photo, options, limits: limits)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a rendition that would take too long is refused with a possible size and format`() {
        let refused = error(9000, .avif, seconds: 2)
        #expect(refused?.name == "limit_exceeded")
        #expect(
            refused?.message
                == "avif of 9000 by 6750 pixels takes about 25 s, and a worker has 2 s; ask for at most 5 megapixels, "
                + "or for jpeg"
        )
        #expect(error(9000, .png, seconds: 2)?.message.contains("ask for at most 8 megapixels, or for jpeg") == true)
    }

    @Test func `a rendition for which there is time is rendered`() {
        #expect(error(200, .avif, seconds: 1) == nil)
        #expect(error(200, .jpeg, seconds: 1) == nil)
        #expect(error(2000, .jpeg, seconds: 0.05)?.name == "limit_exceeded")
    }

    @Test func `the largest photos of cameras take at most 25 s in each format`() {
        for (megapixels, format) in [(61, ImageFormat.avif), (100, .png), (120, .webp), (250, .jpeg)] {
            #expect(RenditionCost.seconds(pixels: megapixels * 1_000_000, format: format) <= 25, "\(format)")
        }
    }
}
