import Foundation
@testable import Imaging
import PhotoModel
import ImageFormats
import SamplePhotos
import TestSupport
import Testing

/// Tests of errors that decoders do not report, each reproduced by a file. They were found in other software.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(3))))
struct DecoderPitfallTests {
    private let small = RenditionOptions(target: .size(width: 24, height: 24), resizeMode: .exact, format: .png)

    private func error(_ bytes: [UInt8]) -> ImagingError? {
        do throws(ImagingError) {
            _ = try RenditionRenderer.render(bytes, small)
            return nil
        } catch {
            return error
        }
    }

    /// ImageMagick reads these "successfully" and returns an image of 0 by 0.
    @Test func `a JPEG of a header and garbage is an error, not an image without pixels`() {
        let whole = TestImages.jpeg(width: 64, height: 48)
        let scan = whole.firstRange(of: [0xFF, 0xDA])?.lowerBound ?? whole.count / 2
        var random = SeededRandom(seed: 11)
        let garbage = (0..<400).map { _ in UInt8.random(in: 0...254, using: &random) }
        for bytes in [
            [0xFF, 0xD8, 0xFF, 0xD9], [0xFF, 0xD8, 0xFF, 0xE0] + garbage, Array(whole.prefix(scan)),
            Array(whole.prefix(scan)) + [0xFF, 0xD9], Array(whole.prefix(20)) + garbage,
        ] {
            let failure = error(bytes)
            #expect(failure?.name == "invalid_resource", "\(bytes.count) bytes: \(String(describing: failure))")
        }
    }

    /// ImageMagick fills the missing part with grey.
    @Test func `a truncated JPEG is an error, not an image with a grey part`() {
        let whole = TestImages.jpeg(width: 320, height: 240)
        for length in [whole.count / 13, whole.count / 2, whole.count - 3] {
            #expect(error(Array(whole.prefix(length))) == .truncated)
        }
    }

    /// Decoders sometimes fail without a message.
    @Test func `every failure has a message`() {
        var random = SeededRandom(named: "files that fail")
        let base = TestImages.jpeg(width: 60, height: 40)
        var failures = 0
        for _ in 0..<TestEnvironment.rounds(150) {
            var bytes = base
            for _ in 0..<12 {
                bytes[Int.random(in: 2..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let failure = error(bytes) else { continue }
            failures += 1
            #expect(failure.message.count > 20, "\(failure)")
            #expect(["invalid_resource", "limit_exceeded", "unsupported_format"].contains(failure.name))
        }
        #expect(failures > 10)
    }

    /// The name `msl:x` ends ImageMagick's process, and `text:/etc/passwd` reveals a file.
    @Test func `format prefixes in a file are never interpreted`() throws {
        for text in ["msl:x", "text:/etc/passwd", "label:@/etc/passwd", "ephemeral:x", "https://example.com/a.jpg"] {
            #expect(error(Array(text.utf8))?.name == "unsupported_format")
            let image = TestImages.jpeg(
                width: 30,
                height: 20,
                orientation: 1,
                exif: nil,
                segments: [JPEGEncoder.segment(0xFE, Array(text.utf8))]
            )
            #expect(error(image) == nil, "\(text) is only a comment")
        }
    }

    /// ImageMagick keeps the uncropped preview, the location and the old size in the EXIF block.
    @Test func `a cropped image contains no preview of the uncropped one`() throws {
        var exif = ExifBlock()
        exif.setLocation(latitude: 52.5, longitude: 13.4)
        exif.thumbnail = TestImages.jpeg(width: 160, height: 120)
        let bytes = TestImages.jpeg(width: 640, height: 480, orientation: 1, exif: exif)
        var options = RenditionOptions(target: .size(width: 100, height: 100), resizeMode: .exact)
        options.crop = UnitRect(x: 0, y: 0, width: 0.5, height: 0.5)
        let image = try RenditionRenderer.render(bytes, options)
        let header = try ImageHeader.read(image.bytes)
        #expect(header.exif == nil && header.xmp == nil)
        #expect(image.bytes.indices.filter { image.bytes[$0...].starts(with: [0xFF, 0xD8, 0xFF]) }.count == 1)
        #expect(Data(image.bytes).range(of: Data("GPS".utf8)) == nil)
    }

    /// ImageMagick drops the gain map and keeps its description, so that viewers apply a map that does not exist.
    @Test func `a gain map is removed together with its description`() throws {
        let xmp = TestImages.xmpSegment("hdrgm:Version=\"1.0\" hdrgm:GainMapMax=\"3\"")
        let index = JPEGEncoder.segment(
            0xE2,
            Array("MPF\0II*\0".utf8) + [8, 0, 0, 0] + [UInt8](repeating: 0, count: 40)
        )
        let main = TestImages.jpeg(width: 64, height: 48, orientation: 1, exif: nil, segments: [xmp, index])
        let image = try RenditionRenderer.render(main + TestImages.jpeg(width: 16, height: 12), small)
        #expect(Quadrant.all(try TestPixels(image.bytes)) == [.red, .green, .blue, .yellow])
        for trace in ["hdrgm", "MPF", "GainMap"] {
            #expect(Data(image.bytes).range(of: Data(trace.utf8)) == nil, "\(trace)")
        }
    }

    /// ImageMagick's HEIF reader drops transparency.
    @Test func `transparency of a HEIF file is kept`() throws {
        _ = try Needed.found(ImageFormat.avif.canEncode ? true : nil, "an encoder of libheif")
        let png = TestImages.png(width: 64, height: 64) { x, _ in (200, 30, 30, x < 32 ? 255 : 0) }
        let avif = try RenditionRenderer.render(png, RenditionOptions(format: .avif, quality: 90)).bytes
        #expect(try ImageProbe.info(of: avif).hasAlpha)
        let back = try RenditionRenderer.render(avif, small)
        #expect(try ImageProbe.info(of: back.bytes).hasAlpha)
        var flat = small
        flat.format = .jpeg
        let pixels = try TestPixels(RenditionRenderer.render(avif, flat).bytes)
        #expect(Quadrant(pixels.colour(0.2, 0.5)) == .red)
        #expect(pixels.colour(0.8, 0.5).allSatisfy { $0 > 240 }, "only the background is visible")
    }

    /// libheif of Debian 12 cannot read some files of new phones, and ImageMagick reports nothing about it.
    @Test func `a HEIC that libheif cannot read is an error with libheif's message`() throws {
        let file = try Needed.photographs(["heic"])[0]
        let whole = SharedPhotos.bytes(file)
        let offset = try #require(whole.firstRange(of: Array("ipma".utf8))?.lowerBound)
        var broken = whole
        // Missing properties: "not correctly assigned" in libheif's message.
        for index in (offset + 12)..<(offset + 40) { broken[index] = 0x7F }
        let failure = try #require(error(broken))
        #expect(failure.name == "invalid_resource")
        #expect(failure.message.count > 20, "\(failure)")
    }

    /// ImageMagick 6 has no decoder for JPEG XL; libjxl is used instead.
    @Test func `the error for an unsupported format lists the supported ones`() {
        let container: [UInt8] = [0, 0, 0, 12, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]
        for cut in [[0xFF, 0x0A] + [UInt8](repeating: 0, count: 40), container + [0, 0, 0, 20], [0xFF, 0x0A]] {
            #expect(error(cut)?.name == "invalid_resource", "a broken JPEG XL is not an unknown format")
        }
        for (found, bytes) in [
            ("OpenEXR", [0x76, 0x2F, 0x31, 0x01]), ("PDF", Array("%PDF-1.7".utf8)),
        ] {
            guard case .unsupportedFormat(let what, let offered)? = error(bytes) else {
                Issue.record("\(found) was not refused as such")
                continue
            }
            #expect(what == found)
            for format in ["jpeg", "png", "heic", "avif", "jxl"] { #expect(offered.contains(format)) }
        }
    }

    /// libjpeg rounds sizes up, and ImageMagick enlarges without being asked.
    @Test func `images are enlarged only in the exact mode`() throws {
        for side in [1, 2, 3, 5] {
            let bytes = TestImages.jpeg(width: side, height: side)
            for targetSide in [1, 2, 106, 120] {
                var options = RenditionOptions(target: .size(width: targetSide, height: targetSide))
                let fast = try RenditionRenderer.render(bytes, options)
                #expect(fast.pixelWidth <= side && fast.pixelHeight <= side && !fast.isUpscaled)
                options.resizeMode = .exact
                let exact = try RenditionRenderer.render(bytes, options)
                #expect((exact.pixelWidth, exact.pixelHeight) == (targetSide, targetSide))
                #expect(exact.isUpscaled == (targetSide > side))
            }
        }
    }
}
