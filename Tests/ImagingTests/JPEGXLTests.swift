import Foundation
@testable import Imaging
import ImageFormats
import PhotoModel
import TestSupport
import Testing

/// Compares JPEG XL with the files of `cjxl` and the output of `djxl`.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(3))), .needs("cjxl of libjxl-tools") { TestJXL.isInstalled })
struct JPEGXLTests {
    private static let quadrants: [Quadrant] = [.red, .green, .blue, .yellow]

    private func encoded(_ bytes: [UInt8], _ fileExtension: String, _ arguments: String...) throws -> [UInt8] {
        try #require(try TestJXL.encoded(bytes, fileExtension: fileExtension, arguments))
    }

    @Test func `lossless pixels equal the source, with eight and with sixteen bits`() throws {
        for bits in [8, 16] as [UInt8] {
            let png = TestImages.png(width: 90, height: 61, bits: bits) { x, y in
                (UInt8(x * 2), UInt8(y * 4), UInt8((x * y) & 255), UInt8(255 - y))
            }
            for container in ["0", "1"] {
                let bytes = try encoded(png, "png", "-d", "0", "--container=\(container)")
                let info = try ImageProbe.info(of: bytes)
                #expect(info.format == .jxl && (info.pixelWidth, info.pixelHeight) == (90, 61))
                #expect(info.format.mimeType == "image/jxl" && !info.format.canEncode)
                func decode(_ bytes: [UInt8]) throws -> [UInt8] {
                    let header = try ImageHeader.read(bytes)
                    let wand = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
                    return try Encoder.encode(wand, format: .png, quality: 90, keepsDepth: true)
                }
                let (ours, theirs) = (try decode(bytes), try decode(png))
                #expect(try TestPixels(ours).rgb == TestPixels(theirs).rgb)
                #expect(ours.count == theirs.count, "the same depth and transparency: \(bits) bits")
            }
        }
    }

    @Test func `a lossy image equals the output of djxl, a grey one too`() throws {
        let colour = TestImages.jpeg(width: 300, height: 200)
        let grey = TestImages.png(width: 64, height: 48) { x, y in (UInt8(x + y), UInt8(x + y), UInt8(x + y), 255) }
        for (bytes, fileExtension) in [(colour, "jpg"), (grey, "png")] {
            let jxl = try encoded(bytes, fileExtension, "-d", "1", "--lossless_jpeg=0")
            let reference = try TestPixels(try #require(try TestJXL.decoded(jxl)))
            let image = try RenditionRenderer.render(jxl, RenditionOptions(format: .png))
            let distance = try TestPixels(image.bytes).psnr(reference)
            #expect(distance > 50, "\(distance) dB")
        }
    }

    @Test func `the profile of a grey image is applied`() throws {
        // With a gamma of 1.8, 128 is 146 in sRGB.
        let chunks = [(name: "gAMA", content: [0, 0, 0xD9, 0x03] as [UInt8])]
        let png = TestImages.png(width: 64, height: 48, chunks: chunks) { _, _ in (128, 128, 128, 255) }
        let jxl = try encoded(png, "png", "-d", "0")
        let image = try RenditionRenderer.render(jxl, RenditionOptions(format: .png))
        let colour = try TestPixels(image.bytes)[20, 20]
        for value in colour { #expect(abs(value - 146) <= 2, "\(colour)") }
        // A photo that is only moved has three components, to which a profile of grey does not apply.
        let moved = try AdjustmentRendering.render(jxl, AdjustmentList(operations: [.rotate(.quarter)]))
        let pixels = try TestPixels(moved.bytes)[20, 20]
        for value in pixels { #expect(abs(value - 146) <= 3, "\(pixels)") }
    }

    @Test(arguments: 1...8)
    func `every orientation is applied exactly once`(orientation: Int) throws {
        let jpeg = TestImages.jpeg(width: 160, height: 120, orientation: orientation)
        for lossless in ["0", "1"] {
            let bytes = try encoded(jpeg, "jpg", "--lossless_jpeg=\(lossless)")
            let info = try ImageProbe.info(of: bytes)
            #expect((info.pixelWidth, info.pixelHeight) == (160, 120))
            for target in [TargetSize.maximum, .size(width: 80, height: 80)] {
                let image = try RenditionRenderer.render(bytes, RenditionOptions(target: target, resizeMode: .exact))
                #expect(Quadrant.all(try TestPixels(image.bytes)) == Self.quadrants, "\(orientation) \(target)")
                if target == .maximum { #expect((image.pixelWidth, image.pixelHeight) == (160, 120)) }
            }
        }
    }

    @Test func `every encoding of sizes is read from the header`() throws {
        for (width, height) in [(8, 8), (256, 256), (255, 1), (1, 511), (1600, 900), (700, 513), (9000, 2)] {
            let png = TestImages.png(width: width, height: height) { _, _ in (1, 2, 3, 255) }
            let header = try ImageHeader.read(try encoded(png, "png", "-d", "0", "-e", "1"))
            #expect((header.kind, header.storedWidth, header.storedHeight) == (.jxl, width, height))
        }
    }

    @Test func `truncated or damaged files give an error or an image, within the limits`() throws {
        let jpeg = TestImages.jpeg(width: 200, height: 150, date: "2024:06:01 12:30:00")
        let whole = [
            try encoded(jpeg, "jpg", "-d", "2", "--lossless_jpeg=0", "--container=0"),
            try encoded(jpeg, "jpg", "--container=1"),
        ]
        for bytes in whole {
            var limits = PixelLimits()
            limits.decodedPixels = 200 * 150 - 1
            let error = #expect(throws: ImagingError.self) { _ = try JPEGXLDecoder.decode(bytes, limits: limits) }
            #expect(error?.name == "limit_exceeded")
            for part in [0.1, 0.5, 0.9] {
                #expect(throws: ImagingError.self) {
                    try RenditionRenderer.render(
                        Array(bytes.prefix(Int(Double(bytes.count) * part))),
                        RenditionOptions()
                    )
                }
            }
            var random = SeededRandom(named: "damaged JPEG XL")
            for _ in 0..<TestEnvironment.rounds(40) {
                var damaged = bytes
                for _ in 0..<4 {
                    damaged[Int.random(in: 2..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
                }
                do throws(ImagingError) { _ = try RenditionRenderer.render(damaged, RenditionOptions()) } catch {
                    #expect(!error.message.isEmpty)
                }
            }
        }
    }

    @Test func `an embedded profile is applied`() throws {
        let red = TestImages.png(width: 32, height: 32) { _, _ in (200, 40, 30, 255) }
        let plain = try TestPixels(
            try RenditionRenderer.render(try encoded(red, "png", "-d", "0"), RenditionOptions()).bytes
        )
        let bytes = try encoded(red, "png", "-d", "0", "-x", "color_space=RGB_D65_DCI_Rel_SRG")
        let wide = try TestPixels(try RenditionRenderer.render(bytes, RenditionOptions()).bytes)
        // Display P3's red is more saturated than that of sRGB: the same numbers are a stronger colour.
        #expect(wide.colour(0.5, 0.5)[0] > plain.colour(0.5, 0.5)[0] + 8, "\(wide.colour(0.5, 0.5))")
    }

    @Test func `the shadows of a lossy image with a profile have all their steps`() throws {
        let profile = (name: "iCCP", content: Array("colour\0\0".utf8) + TestImages.stored(TestProfiles.colour))
        // Values up to 63, a twelfth of the light of white. Eight bits proportional to light would have 21 steps there.
        let png = TestImages.png(width: 256, height: 32, chunks: [profile]) { x, _ in
            (UInt8(x / 4), UInt8(x / 4), UInt8(x / 4), 255)
        }
        let bytes = try encoded(png, "png", "-d", "1")
        let pixels = try TestPixels(RenditionRenderer.render(bytes, RenditionOptions(format: .png)).bytes)
        let steps = Set((0..<256).map { pixels[$0, 16][1] })
        #expect(steps.count > 40, "\(steps.sorted())")
    }
}
