import ImageFormats
import Foundation
@testable import Imaging
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct HostileBytesTests {
    private let options = RenditionOptions(target: .size(width: 32, height: 32), resizeMode: .exact)

    private func error(_ bytes: [UInt8]) -> ImagingError? {
        do throws(ImagingError) {
            _ = try RenditionRenderer.render(bytes, options)
            return nil
        } catch {
            return error
        }
    }

    @Test func `formats that ImageMagick would execute are refused by their first bytes`() {
        let files: [(String, [UInt8])] = [
            ("empty", []), ("text", Array("a picture of a cat.jpg".utf8)),
            (
                "SVG",
                Array(
                    "<?xml version=\"1.0\"?><svg><image href=\"text:/etc/passwd\"/></svg>"
                        .utf8
                )
            ),
            (
                "text",
                Array(
                    "push graphic-context\nimage over 0,0 0,0 'https://example.com/'\npop graphic-context"
                        .utf8
                )
            ),
            ("markup", Array("<image><read filename=\"/etc/passwd\"/><write filename=\"/tmp/x\"/></image>".utf8)),
            ("PostScript", Array("%!PS-Adobe-3.0\n".utf8)), ("PDF", Array("%PDF-1.4\n".utf8)),
            ("Windows cursor", [0, 0, 2, 0, 1, 0, 16, 16]),
            ("an ISO media file (isom)", [0, 0, 0, 24] + Array("ftypisom0000isomiso2".utf8)),
            ("OpenEXR", [0x76, 0x2F, 0x31, 0x01]), ("JPEG 2000", [0xFF, 0x4F, 0xFF, 0x51, 0, 47]),
            ("JPEG 2000", [0, 0, 0, 12, 0x6A, 0x50, 0x20, 0x20, 13, 10, 0x87, 10]),
        ]
        for (found, bytes) in files {
            #expect(ImageFormat.sniff(bytes) == nil)
            guard case .unsupportedFormat(let what, let supported)? = error(bytes) else {
                Issue.record("\(found) was not refused")
                continue
            }
            #expect(what == found)
            #expect(supported.count == 14)
        }
    }

    @Test func `the policy disables every other coder`() throws {
        ImagingLibrary.start()
        for (format, bytes) in [
            ("SVG", "<svg width='9' height='9'/>"), ("TEXT", "hello"), ("MVG", "viewbox 0 0 9 9"), ("PS", "%!PS"),
            ("MSL", "<msl/>"),
        ] {
            let wand = try Wand()
            let isRead = wand.read(Array(bytes.utf8), by: format)
            #expect(!isRead, "\(format)")
        }
        let wand = try Wand()
        let isRead = wand.read(TestImages.jpeg(width: 9, height: 9), by: "JPEG")
        #expect(isRead)
        #expect(ImagingLibrary.versions["imagemagick"]?.hasPrefix("6.9") == true)
    }

    @Test func `a PNG with a header of 60000 by 60000 is refused before decoding`() {
        let bytes = TestImages.pngStart(width: 60_000, height: 60_000) + TestImages.chunk("IEND", [])
        let start = ContinuousClock.now
        #expect(error(bytes) == .tooLarge(width: 60_000, height: 60_000, limit: 100_000_000))
        #expect(ContinuousClock.now - start < .seconds(1))
        let longest = TestImages.pngStart(width: 2_147_483_647, height: 1) + TestImages.chunk("IEND", [])
        #expect(error(longest) == .tooLarge(width: 2_147_483_647, height: 1, limit: 65_500))
        let none = TestImages.pngStart(width: 0, height: 5) + TestImages.chunk("IEND", [])
        #expect(error(none)?.name == "invalid_resource")
    }

    @Test func `the caller sets the limits of each format`() throws {
        let bytes = TestImages.jpeg(width: 100, height: 100)
        var limits = PixelLimits()
        limits.jpegPixels = 9999
        #expect(throws: ImagingError.tooLarge(width: 100, height: 100, limit: 9999)) {
            try ImageProbe.info(of: bytes, limits: limits)
        }
        limits.jpegPixels = 10_000
        limits.decodedPixels = 5000
        #expect(throws: ImagingError.tooLarge(width: 100, height: 100, limit: 5000)) {
            try RenditionRenderer.render(bytes, RenditionOptions(), limits: limits)
        }
        let small = try RenditionRenderer.render(
            bytes,
            RenditionOptions(target: .size(width: 20, height: 20), resizeMode: .exact),
            limits: limits
        )
        #expect(small.pixelWidth == 20, "a fraction of a JPEG fits below the same limit")
    }

    @Test func `frames of an animation are counted, and only the first is decoded`() throws {
        let info = try ImageProbe.info(of: TestImages.gif(frames: 900))
        #expect((info.frameCount, info.pixelWidth, info.pixelHeight) == (900, 1, 1))
        #expect(error(TestImages.gif(frames: 900)) == nil)
        #expect(error(TestImages.gif(frames: 1001))?.name == "limit_exceeded")
    }

    @Test func `a first frame that covers part of the canvas is drawn at its offset`() throws {
        // A canvas of 6 by 4 with one white pixel at (4, 1), then a frame that reaches beyond the canvas.
        var gif = Array("GIF89a".utf8) + [6, 0, 4, 0, 0x80, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF]
        gif += [0x2C, 4, 0, 1, 0, 1, 0, 1, 0, 0, 2, 2, 0x4C, 1, 0]
        gif += [0x2C, 7, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B]
        let info = try ImageProbe.info(of: gif)
        #expect((info.pixelWidth, info.pixelHeight, info.frameCount) == (8, 4, 2))
        let image = try RenditionRenderer.render(gif, RenditionOptions(format: .png))
        #expect((image.pixelWidth, image.pixelHeight) == (8, 4))
        let pixels = try TestPixels(image.bytes)
        #expect(pixels[4, 1] == [255, 255, 255])
        #expect(pixels[3, 1] != [255, 255, 255])
    }

    @Test func `a truncated image is refused, and one that is damaged inside is not`() throws {
        let whole = TestImages.jpeg(width: 200, height: 160) { x, y in
            (UInt8(truncatingIfNeeded: x &* y), UInt8(truncatingIfNeeded: x), UInt8(truncatingIfNeeded: y))
        }
        #expect(error(whole) == nil)
        for fraction in [0.3, 0.6, 0.9] {
            let part = Array(whole.prefix(Int(Double(whole.count) * fraction)))
            #expect(error(part) == .truncated, "\(fraction)")
            #expect(error(part + [0xFF, 0xD9]) == nil, "\(fraction) with an end marker")
            #expect(try ImageProbe.info(of: part).isComplete == false)
        }
        #expect(error(Array(whole.prefix(30))) == .truncated)
        #expect(error([0xFF, 0xD8, 0xFF, 0xD9]) != nil)
        let png = TestImages.png(width: 20, height: 20) { x, y in (UInt8(x), UInt8(y), 0, 255) }
        #expect(error(Array(png.prefix(png.count - 400))) == .truncated)
        for format in [ImageFormat.tiff, .webp, .bmp] {
            let image = try RenditionRenderer.render(whole, RenditionOptions(format: format)).bytes
            #expect(error(image) == nil)
            #expect(error(Array(image.prefix(image.count / 2)))?.name == "invalid_resource", "\(format)")
        }
        let gif = TestImages.gif(frames: 2)
        #expect(error(Array(gif.dropLast(3))) == .truncated)
    }

    @Test func `a BMP with all its rows is decoded whatever size its header declares, else it is truncated`() throws {
        let jpeg = TestImages.jpeg(width: 40, height: 30)
        let whole = try RenditionRenderer.render(jpeg, RenditionOptions(format: .bmp)).bytes
        for size in [whole.count + 1, 10 * whole.count, 0] {
            var bytes = whole
            bytes.replaceSubrange(2..<6, with: (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * $0)) })
            #expect(error(bytes) == nil, "\(size)")
            #expect(error(Array(bytes.dropLast(1000))) == .truncated, "\(size)")
        }
    }

    @Test func `damaged files give an error or an image and never crash`() throws {
        let base = TestImages.jpeg(width: 40, height: 30)
        let formats = try ImageFormat.allCases.filter(\.canEncode).map {
            try RenditionRenderer.render(base, RenditionOptions(format: $0)).bytes
        }
        for seed in UInt64(1)...40 {
            var generator = SeededRandom(seed: seed)
            for bytes in formats + [TestImages.gif(frames: 4)] {
                var damaged = bytes
                for _ in 0..<Int.random(in: 1...8, using: &generator) {
                    damaged[Int.random(in: 4..<damaged.count, using: &generator)] = UInt8.random(
                        in: 0...255,
                        using: &generator
                    )
                }
                if let error = error(damaged) { #expect(!error.message.isEmpty, "seed \(seed)") }
            }
        }
    }

    @Test func `random bytes after every magic number are refused`() {
        let starts: [[UInt8]] = [
            [], [0xFF, 0xD8, 0xFF, 0xE0], Array(TestImages.pngStart(width: 8, height: 8).prefix(8)),
            Array("GIF89a".utf8),
            Array("RIFF\u{40}\0\0\0WEBPVP8 ".utf8), Array("II*\0\u{8}\0\0\0".utf8), Array("MM\0*\0\0\0\u{8}".utf8),
            Array("BM".utf8) + [64, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0],
            Array("\0\0\0\u{18}ftypheic\0\0\0\0mif1heic".utf8), Array("\0\0\0\u{18}ftypavif\0\0\0\0mif1avif".utf8),
        ]
        for seed in UInt64(1)...25 {
            var generator = SeededRandom(seed: seed)
            for start in starts {
                let noise = generator.bytes(Int.random(in: 0...600, using: &generator))
                let error = error(start + noise)
                #expect(error?.message.isEmpty == false, "seed \(seed) after \(start.prefix(8))")
            }
        }
    }
}
