import Foundation
import ImageFormats
import Metadata
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

/// Tests of metadata in forms and fields that few programs write.
@Suite(.timeLimit(.minutes(3)))
struct RareFormTests {
    private func magick(_ format: String) throws -> [UInt8] {
        [UInt8](try ExternalTool.run(try Needed.program("convert"), ["-size", "6x4", "xc:gray50", "\(format):-"]))
    }

    @Test func `XMP that is too long for a segment of a JPEG is read from a PNG and a WebP`() throws {
        let history = String(repeating: "A long history of changes. ", count: 4000)
        let tags = ["-XMP-photoshop:History=\(history)", "-XMP-dc:Subject=Alps", "-XMP-xmp:Rating=4"]
        for source in [ExifToolFile.plainPNG, try magick("webp")] {
            let facts = try ExifToolFile.facts(tags, from: source)
            #expect((facts.keywords, facts.rating) == (["Alps"], 4))
            let both = try ExifToolFile.facts(tags + ["-EXIF:Make=Maker"], from: source)
            #expect((both.keywords, both.rating, both.cameraMake) == (["Alps"], 4, "Maker"))
        }
    }

    @Test func `XMP is read beside EXIF that is too long for a segment of a JPEG`() throws {
        let comment = String(repeating: "x", count: 70_000)
        let tags = ["-EXIF:UserComment=\(comment)", "-EXIF:Make=Maker", "-XMP-dc:Subject=Alps"]
        let facts = try ExifToolFile.facts(tags, from: try magick("webp"))
        #expect((facts.keywords, facts.cameraMake) == (["Alps"], "Maker"))
    }

    @Test func `an XMP packet is read without the bytes after its end`() throws {
        let packet = Array(TestImages.xmpPacket("xmp:Rating=\"3\"").utf8) + Array("\n<?xpacket end=\"w\"?>".utf8)
        for appended in [[], [0, 1, 2, 0xFF], Array("<x:xmpmeta><broken".utf8)] as [[UInt8]] {
            let text = Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + packet + appended
            let png = TestImages.png(width: 6, height: 4, chunks: [("iTXt", text)]) { _, _ in (1, 2, 3, 255) }
            #expect(try MetadataReader.facts(of: png).rating == 3, "\(appended.count) bytes")
        }
    }

    @Test func `XMP of a GIF and IPTC of a Photoshop file are read`() throws {
        let gif = try ExifToolFile.facts(["-XMP-dc:Subject=Alps", "-XMP-dc:Description=Sea"], from: try magick("gif"))
        #expect((gif.keywords, gif.caption) == (["Alps"], "Sea"))
        let tags = ["-IPTC:Keywords=Alps", "-IPTC:Caption-Abstract=Sea"]
        let psd = try ExifToolFile.facts(tags, from: try magick("psd"))
        #expect((psd.keywords, psd.caption) == (["Alps"], "Sea"))
    }

    @Test func `texts in Windows-1252 and in UTF-16 with emoji are decoded`() throws {
        let text = "It’s “fine” – 5 €"
        #expect(try ExifToolFile.facts(["-IPTC:Caption-Abstract=\(text)"]).caption == text)
        let units = Array("Holiday 😀\0".utf16).flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        let title = ExifBlock.Field(tag: 0x9C9B, type: 1, count: units.count, value: units)
        #expect(try facts([], main: [title]).metadata?.title == "Holiday 😀")
    }

    // MARK: Dates

    /// 2020-01-02T03:04:05Z in microseconds.
    private static let time: Int64 = 1_577_934_245_000_000

    private func facts(_ fields: [ExifBlock.Field], main: [ExifBlock.Field] = []) throws -> PhotoMetadata {
        var exif = ExifBlock()
        (exif.main, exif.photo) = (main, fields)
        return try MetadataReader.facts(of: TestImages.jpeg(width: 16, height: 8, orientation: 0, exif: exif))
    }

    @Test(
        arguments: [
            ("2020:01:02 03:04:05+02:00", time - 7_200_000_000, 7200), ("2020:01:02 03:04:05Z", time, 0),
            ("2020:01:02 03:04:05.25", time + 250_000, nil),
            ("2020:01:02 03:04:05.25-01:00", time + 3_600_250_000, -3600),
            ("2020:01:02", time - 11_045_000_000, nil), ("2020:01:02 03:04:05 pm", nil, nil), ("    :  :  ", nil, nil),
            ("0000:00:00", nil, nil),
        ] as [(String, Int64?, Int?)]
    )
    func `a date of EXIF may have a fraction and an offset, or no time`(_ text: String, _ date: Int64?, _ offset: Int?)
        throws
    {
        let facts = try facts([.ascii(0x9003, text)])
        #expect((facts.captureDate, facts.captureOffset) == (date, offset))
    }

    @Test func `the date in the main part of EXIF uses the offset too`() throws {
        let date = ExifBlock.Field.ascii(0x9003, "2020:01:02 03:04:05")
        let facts = try facts([.ascii(0x9011, "+05:00")], main: [date])
        #expect((facts.captureDate, facts.captureOffset) == (Self.time - 18_000_000_000, 18_000))
    }

    // MARK: Sizes

    @Test func `an image with a very long side is read, and an impossible side is refused`() throws {
        let png = TestImages.pngStart(width: 1_200_000, height: 1) + TestImages.chunk("IEND", [])
        #expect(try MetadataReader.facts(of: png).pixelWidth == 1_200_000)
        let impossible = TestImages.pngStart(width: 1 << 31, height: 1) + TestImages.chunk("IEND", [])
        #expect(throws: (any Error).self) { try ImageHeader.read(impossible) }
    }
}
