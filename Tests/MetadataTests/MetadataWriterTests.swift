import Foundation
import Metadata
import SamplePhotos
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct MetadataWriterTests {
    private func source(orientation: Int = 6) -> [UInt8] {
        var exif = ExifBlock()
        exif.main = [
            .ascii(0x010F, "Safelight"), .ascii(0x0110, "Camera"), .short(0x0112, orientation),
            .ascii(0x8298, "A. Person"),
        ]
        exif.photo = [
            .ascii(0x9003, "2024:06:01 14:30:00"), .ascii(0x9011, "+02:00"), .ascii(0x9291, "25"), .long(0xA002, 120),
            .long(0xA003, 80), .rationals(0x829A, [(1, 250)]),
            ExifBlock.Field(tag: 0x927C, type: 7, count: 24, value: Array("MAKERNOTE_WITH_A_SECRET!".utf8)),
        ]
        exif.setLocation(latitude: -33.8568, longitude: 151.2153, altitude: 12)
        exif.thumbnail = TestImages.jpeg(width: 16, height: 12, seed: 9)
        let xmp = TestImages.xmpSegment(
            "hdrgm:Version=\"1.0\" tiff:Orientation=\"6\" xmp:Rating=\"4\" GPano:ProjectionType=\"equirectangular\" "
                + "photoshop:City=\"Sydney\""
        )
        return TestImages.jpeg(width: 80, height: 120, orientation: orientation, exif: exif, segments: [xmp])
    }

    private func contains(_ bytes: [UInt8], _ text: String) -> Bool { Data(bytes).range(of: Data(text.utf8)) != nil }

    @Test func `a render keeps metadata that still applies and omits the rest`() throws {
        let render = TestImages.jpeg(width: 40, height: 60)
        let result = try MetadataWriter.transfer(from: source(), to: render, width: 40, height: 60)
        let before = try MetadataReader.facts(of: source())
        let after = try MetadataReader.facts(of: result)
        #expect((after.pixelWidth, after.pixelHeight, after.orientation) == (40, 60, 1))
        #expect((after.captureDate, after.captureOffset) == (before.captureDate, 7200))
        #expect(after.location == before.location)
        #expect((after.cameraMake, after.cameraModel, after.rating) == ("Safelight", "Camera", 4))
        for expected in ["A. Person", "Sydney"] { #expect(contains(result, expected), "\(expected)") }
        for omitted in ["SECRET", "hdrgm", "GPano", "tiff:Orientation"] {
            #expect(!contains(result, omitted), "\(omitted)")
        }
        // A file with only one start of an image has no thumbnail.
        #expect(result.indices.filter { result[$0...].starts(with: [0xFF, 0xD8, 0xFF]) }.count == 1)
        let exiftool = try Needed.program("exiftool")
        let file = FileManager.default.temporaryDirectory.appending(path: "safelight-\(UUID().uuidString).jpg")
        try Data(result).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let text = try ExifTool.run(
            exiftool,
            [
                "-n", "-s", "-ExifImageWidth", "-ExifImageHeight", "-Orientation", "-ColorSpace", "-ExposureTime",
                "-validate", "-warning", file.path,
            ]
        )
        #expect(text.contains("ExifImageWidth                  : 40"), "\(text)")
        #expect(text.contains("ExifImageHeight                 : 60"))
        #expect(text.contains("Orientation                     : 1"))
        #expect(text.contains("ColorSpace                      : 1"))
        #expect(text.contains("ExposureTime                    : 0.004"))
    }

    @Test func `the render's own pixels and profile are copied byte for byte`() throws {
        let profile = JPEGEncoder.segment(
            0xE2,
            Array("ICC_PROFILE\0".utf8) + [1, 1] + [UInt8](repeating: 3, count: 300)
        )
        let render = TestImages.jpeg(
            width: 24,
            height: 24,
            orientation: 1,
            exif: ExifBlock(),
            segments: [profile, TestImages.xmpSegment("xmp:Label=\"OLD\"")]
        )
        let result = try MetadataWriter.transfer(from: source(), to: render, width: 24, height: 24)
        let scan = try #require(render.indices.first { render[$0...].starts(with: [0xFF, 0xDB]) })
        #expect(result.suffix(render.count - scan).elementsEqual(render[scan...]))
        #expect(contains(result, "ICC_PROFILE"))
        #expect(!contains(result, "OLD"))
    }

    @Test func `metadata is written to PNG renders too, and other formats are refused`() throws {
        let png = TestImages.png(width: 10, height: 5) { _, _ in (9, 9, 9, 255) }
        let result = try MetadataWriter.transfer(from: source(), to: png, width: 10, height: 5)
        let facts = try MetadataReader.facts(of: result)
        #expect(
            (facts.pixelWidth, facts.pixelHeight, facts.orientation, facts.captureOffset, facts.rating) == (
                10, 5, 1, 7200, 4
            )
        )
        #expect(facts.location != nil)
        let error = #expect(throws: MetadataError.self) {
            try MetadataWriter.transfer(from: source(), to: TestImages.gif(frames: 1), width: 1, height: 1)
        }
        #expect(error?.name == "unsupported_format")
    }

    @Test func `a JPEG render keeps the facts of XMP that is too long for a JPEG`() throws {
        let text = String(repeating: "x", count: 70_000)
        for field in ["History", "Instructions"] {
            let packet = TestImages.xmpPacket(
                "xmp:Rating=\"4\" photoshop:City=\"Oslo\" photoshop:\(field)=\"\(text)\""
            )
            let chunk = Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + Array(packet.utf8)
            let png = TestImages.png(width: 6, height: 4, chunks: [("iTXt", chunk)]) { _, _ in (1, 2, 3, 255) }
            let render = TestImages.jpeg(width: 6, height: 4)
            let result = try MetadataWriter.transfer(from: png, to: render, width: 6, height: 4)
            #expect(try MetadataReader.facts(of: result).rating == 4, "\(field)")
            #expect(contains(result, "Oslo") && !contains(result, "xxxxxxxx"), "\(field)")
        }
    }

    @Test func `a JPEG render keeps the first keywords if not all of them fit into it`() throws {
        let words = (0..<900).map { "<rdf:li>word \($0) \(String(repeating: "x", count: 100))</rdf:li>" }.joined()
        let packet = """
            <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
            <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
            xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="4"><dc:subject><rdf:Bag>\(words)</rdf:Bag></dc:subject>
            </rdf:Description></rdf:RDF></x:xmpmeta>
            """
        let chunk = Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + Array(packet.utf8)
        let png = TestImages.png(width: 6, height: 4, chunks: [("iTXt", chunk)]) { _, _ in (1, 2, 3, 255) }
        let render = TestImages.jpeg(width: 6, height: 4)
        let result = try MetadataWriter.transfer(from: png, to: render, width: 6, height: 4)
        let facts = try MetadataReader.facts(of: result)
        #expect(facts.rating == 4 && (300..<900).contains(facts.keywords.count))
        #expect(facts.keywords.first?.hasPrefix("word 0 ") == true)
    }

    @Test func `a source without metadata gives a render without metadata`() throws {
        let bare = TestImages.jpeg(width: 8, height: 8) { _, _ in (1, 2, 3) }
        let result = try MetadataWriter.transfer(from: bare, to: bare, width: 8, height: 8)
        let facts = try MetadataReader.facts(of: result)
        #expect((facts.captureDate, facts.orientation, facts.pixelWidth) == (nil, 1, 8))
    }
}
