import Foundation
import ImageFormats
import Metadata
import SamplePhotos
import TestSupport
import Testing

/// Tests of the metadata in the text chunks of a PNG, plain, compressed and in hexadecimal digits.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(2))))
struct PNGTextTests {
    private static let exif: [UInt8] = {
        var exif = ExifBlock()
        exif.main = [.short(0x0112, 6), .ascii(0x010F, "Maker")]
        exif.photo = [.ascii(0x9003, "2024:06:01 12:30:00")]
        exif.setLocation(latitude: 1, longitude: 2)
        return exif.bytes
    }()

    private func png(_ chunks: [(name: String, content: [UInt8])]) -> [UInt8] {
        TestImages.png(width: 6, height: 4, chunks: chunks) { _, _ in (1, 2, 3, 255) }
    }

    private func text(_ keyword: String, _ content: [UInt8]) -> (name: String, content: [UInt8]) {
        ("tEXt", Array(keyword.utf8) + [0] + content)
    }

    private func compressed(_ keyword: String, _ content: [UInt8]) -> (name: String, content: [UInt8]) {
        ("zTXt", Array(keyword.utf8) + [0, 0] + TestImages.stored(content))
    }

    private func profile(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let digits = content.map { String(format: "%02x", $0) }
        let lines = stride(from: 0, to: digits.count, by: 36).map { digits[$0..<min($0 + 36, digits.count)].joined() }
        return Array("\n\(name)\n    \(content.count)\n\(lines.joined(separator: "\n"))\n".utf8)
    }

    @Test(arguments: [false, true])
    func `a raw profile of EXIF gives its facts and its orientation`(isCompressed: Bool) throws {
        let chunk = isCompressed ? compressed : text
        for (name, content) in [
            ("exif", Array("Exif\0\0".utf8) + Self.exif), ("APP1", Array("Exif\0\0".utf8) + Self.exif),
            ("exif", Self.exif),
        ] {
            let file = png([chunk("Raw profile type \(name)", profile(name.lowercased(), content))])
            let facts = try MetadataReader.facts(of: file)
            #expect((facts.orientation, facts.pixelWidth, facts.pixelHeight) == (6, 4, 6))
            #expect((facts.cameraMake, facts.location?.longitude) == ("Maker", 2))
            #expect(facts.captureDate == 1_717_245_000_000_000)
            #expect(try ImageHeader.read(file).orientation == 6)
        }
    }

    @Test func `plain and compressed XMP gives its facts and its orientation`() throws {
        let xmp = Array(TestImages.xmpPacket("xmp:Rating=\"3\" tiff:Orientation=\"8\"").utf8)
        let international = Array("XML:com.adobe.xmp\0\u{1}\0en\0XMP\0".utf8) + TestImages.stored(xmp)
        for chunk in [
            compressed("XML:com.adobe.xmp", xmp), ("iTXt", international),
            text("Raw profile type xmp", profile("xmp", xmp)),
            text("Raw profile type APP1", profile("app1", Array("http://ns.adobe.com/xap/1.0/\0".utf8) + xmp)),
            ("iTXt", Array("XML:com.adobe.xmp\0\0\0en\0XMP\0".utf8) + xmp),
        ] {
            let facts = try MetadataReader.facts(of: png([chunk]))
            #expect((facts.rating, facts.orientation, facts.pixelWidth) == (3, 8, 4))
        }
    }

    @Test func `files of exiftool and ImageMagick are read`() throws {
        // Exiftool compresses the profile of IPTC.
        let tags = ["-z", "-IPTC:Caption-Abstract=Sea, sun", "-IPTC:Keywords=beach"]
        let described = try ExifToolFile.facts(tags, from: ExifToolFile.plainPNG)
        #expect((described.caption, described.keywords) == ("Sea, sun", ["beach"]))

        let (convert, folder) = (try Needed.program("convert"), try TemporaryFolder("convert"))
        let source = try ExifToolFile.bytes([
            "-Make=Maker", "-Orientation#=6", "-XMP:Rating=2", "-IPTC:Keywords=beach",
            "-DateTimeOriginal=2024:06:01 12:30:00",
        ])
        let input = try folder.write(source, to: "input.jpg")
        _ = try ExternalTool.run(convert, [input, folder.file("output.png")])
        let output = [UInt8](try Data(contentsOf: folder.url.appending(path: "output.png")))
        #expect(ByteReader(output).find("Raw profile type iptc") != nil)
        let facts = try MetadataReader.facts(of: output)
        #expect((facts.cameraMake, facts.orientation, facts.rating, facts.keywords) == ("Maker", 6, 2, ["beach"]))
        #expect(facts.captureDate == 1_717_245_000_000_000)
    }

    @Test func `the chunks of the standard are used first`() throws {
        let facts = try MetadataReader.facts(
            of: png([
                text("Raw profile type exif", profile("exif", Self.exif)),
                ("eXIf", TestImages.orientationOnly(3)),
            ])
        )
        #expect(facts.orientation == 3)
    }

    @Test func `no text is decompressed after three of the maximum size`() throws {
        let whole = compressed("Raw profile type exif", profile("exif", Self.exif))
        func broken(_ keyword: String) -> (name: String, content: [UInt8]) {
            ("zTXt", Array(keyword.utf8) + [0, 0] + [1, 2, 3])
        }
        // A text that cannot be decompressed counts as one of the maximum size.
        for (keyword, orientation) in [("Raw profile type exif", 1), ("Raw profile type other", 6)] {
            let file = png([broken(keyword), broken(keyword), broken(keyword), whole])
            #expect(try ImageHeader.read(file).orientation == orientation, "\(keyword)")
        }
        let file = png([broken("Raw profile type exif"), whole])
        #expect(try ImageHeader.read(file).orientation == 6)
    }

    @Test func `damaged text chunks are ignored`() throws {
        let good = profile("exif", Self.exif)
        for (index, content) in [
            Array("exif".utf8), Array("\nexif\n 99999999999999999999\n00".utf8), Array("\nexif\n 40\nzz".utf8),
            Array(good.dropLast(40)), [],
        ].enumerated() {
            let facts = try MetadataReader.facts(of: png([text("Raw profile type exif", content)]))
            #expect(facts.orientation == 1, "\(index)")
        }
        var random = SeededRandom(named: "text chunks")
        let whole = compressed("Raw profile type exif", good)
        for _ in 0..<TestEnvironment.rounds(300) {
            var content = Array(whole.content.prefix(Int.random(in: 24...whole.content.count, using: &random)))
            for _ in 0..<3 {
                content[Int.random(in: 0..<content.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = try MetadataReader.facts(of: png([("zTXt", content)]))
        }
    }
}

extension TestImages {
    /// Returns an EXIF block with an orientation only.
    fileprivate static func orientationOnly(_ orientation: Int) -> [UInt8] {
        var exif = ExifBlock()
        exif.main = [.short(0x0112, orientation)]
        return exif.bytes
    }
}
