import Foundation
@testable import Imaging
import ImageFormats
import PhotoModel
import TestSupport
import Testing

/// Tests of camera RAW files: the preview is used if it is large enough, otherwise the developed sensor data.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(3))))
struct RawTests {
    private static func preview(_ width: Int, _ height: Int, orientation: Int = 1) -> [UInt8] {
        TestImages.jpeg(width: width, height: height, orientation: orientation, exif: nil)
    }

    @Test(.spec("S-49"), arguments: 1...8)
    func `a raw file is developed upright`(orientation: Int) throws {
        let bytes = TestRaw.dng(width: 240, height: 160, orientation: orientation)
        let info = try ImageProbe.info(of: bytes)
        #expect(info.format == .raw && info.format.mimeType == "image/x-dcraw")
        #expect(abs(info.pixelWidth - 240) <= 8 && abs(info.pixelHeight - 160) <= 8)
        #expect(try ImageProbe.info(of: bytes).orientation == orientation)
        for target in [TargetSize.maximum, .size(width: 60, height: 60)] {
            let image = try RenditionRenderer.render(bytes, RenditionOptions(target: target, resizeMode: .exact))
            #expect(Quadrant.all(try TestPixels(image.bytes)) == [.red, .green, .blue, .yellow])
            if target == .maximum { #expect(image.pixelWidth == info.pixelWidth) }
        }
        #expect(try Preview.embedded(in: bytes, RenditionOptions()) == nil)
    }

    @Test(.spec("S-43", "S-45"), arguments: 1...8)
    func `the camera's preview is used if it is large enough`(orientation: Int) throws {
        // The preview has another colour than the image, so that the test can tell which one was used.
        let previewImage = TestImages.jpeg(
            width: orientation >= 5 ? 80 : 120,
            height: orientation >= 5 ? 120 : 80
        ) { _, _ in (20, 20, 220) }
        let bytes = TestRaw.dng(width: 240, height: 160, orientation: orientation, preview: previewImage)
        func middle(_ options: RenditionOptions) throws -> Quadrant {
            Quadrant(try TestPixels(RenditionRenderer.render(bytes, options).bytes).colour(0.2, 0.2))
        }
        #expect(try middle(RenditionOptions(target: .size(width: 100, height: 100), resizeMode: .exact)) == .blue)
        #expect(try middle(RenditionOptions(target: .size(width: 200, height: 200), resizeMode: .exact)) == .red)
        #expect(try middle(RenditionOptions()) == .red, "the full size is developed from the sensor data")
        let low = try #require(try Preview.embedded(in: bytes, RenditionOptions(target: .size(width: 90, height: 90))))
        #expect(Quadrant(try TestPixels(low.bytes).colour(0.2, 0.2)) == .blue)
        #expect((low.pixelWidth, low.pixelHeight) == (90, 60))
    }

    @Test func `a raw file with a damaged preview is developed`() throws {
        let preview = Self.preview(200, 140)
        let bytes = TestRaw.dng(width: 240, height: 160, preview: Array(preview.dropLast(100)))
        let options = RenditionOptions(target: .size(width: 60, height: 60), resizeMode: .exact)
        let image = try RenditionRenderer.render(bytes, options)
        #expect(Quadrant.all(try TestPixels(image.bytes)) == [.red, .green, .blue, .yellow])
    }

    @Test func `a raw file of a sensor without colour filters is grey`() throws {
        let bytes = TestRaw.dng(width: 240, height: 160, hasFilters: false)
        for target in [TargetSize.maximum, .size(width: 60, height: 60)] {
            let options = RenditionOptions(target: target, resizeMode: .exact, format: .png)
            let pixels = try TestPixels(RenditionRenderer.render(bytes, options).bytes)
            let (red, green) = (pixels.colour(0.2, 0.2), pixels.colour(0.8, 0.2))
            for colour in [red, green] { #expect(Set(colour).count == 1, "\(colour)") }
            #expect(green[0] > red[0] + 50, "\(green) \(red)")
        }
    }

    @Test func `pixels that are not square are made square`() throws {
        let bytes = TestRaw.dng(width: 240, height: 160, scale: [2, 1])
        let info = try ImageProbe.info(of: bytes)
        #expect((info.pixelWidth, info.pixelHeight) == (480, 160))
        let whole = try RenditionRenderer.render(bytes, RenditionOptions())
        #expect((whole.pixelWidth, whole.pixelHeight) == (480, 160))
        let options = RenditionOptions(target: .size(width: 60, height: 60), resizeMode: .exact)
        let small = try RenditionRenderer.render(bytes, options)
        #expect((small.pixelWidth, small.pixelHeight) == (60, 20))
        #expect(Quadrant.all(try TestPixels(small.bytes)) == [.red, .green, .blue, .yellow])
    }

    @Test func `a truncated or damaged raw file gives an error or an image`() throws {
        let whole = TestRaw.dng(width: 120, height: 80, preview: Self.preview(60, 40))
        var random = SeededRandom(named: "damaged raw files")
        for _ in 0..<TestEnvironment.rounds(40) {
            var bytes = Array(whole.prefix(Int.random(in: 20...whole.count, using: &random)))
            for _ in 0..<4 {
                bytes[Int.random(in: 8..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            do throws(ImagingError) { _ = try RenditionRenderer.render(bytes, RenditionOptions()) } catch {
                #expect(!error.message.isEmpty)
            }
        }
    }

    @Test func `a TIFF is not a raw file`() throws {
        let tiff = try RenditionRenderer.render(TestImages.jpeg(width: 80, height: 60), RenditionOptions(format: .tiff))
            .bytes
        #expect(try ImageProbe.info(of: tiff).format == .tiff)
    }
}
