import Metadata
import ImageFormats
import TestSupport
import Testing

/// Tests of the metadata of JPEG XL files, in boxes written by `cjxl`.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))), .needs("cjxl of libjxl-tools") { TestJXL.isInstalled })
struct JPEGXLTests {
    private static let xmp = """
        <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
        <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="4"/>
        </rdf:RDF></x:xmpmeta>
        """

    private static func jpeg(orientation: Int) -> [UInt8] {
        let plain = TestImages.jpeg(
            width: 160,
            height: 120,
            orientation: orientation,
            date: "2024:06:01 12:30:00",
            offset: "+02:00",
            latitude: -33.75,
            longitude: 151.25
        )
        let packet = Array("http://ns.adobe.com/xap/1.0/\0".utf8) + Array(xmp.utf8)
        let count = packet.count + 2
        return Array(plain[..<2]) + [0xFF, 0xE1, UInt8(count >> 8), UInt8(count & 255)] + packet + plain[2...]
    }

    @Test(arguments: [1, 6], [false, true])
    func `metadata equals that of the source JPEG, compressed or not`(orientation: Int, isCompressed: Bool) throws {
        let jpeg = Self.jpeg(orientation: orientation)
        let exif = try #require(try ImageHeader.read(jpeg).exif)
        let bytes = try #require(
            isCompressed
                ? try TestJXL.encoded(jpeg, fileExtension: "jpg", ["--lossless_jpeg=1"])
                : try TestJXL.boxed(jpeg, fileExtension: "jpg", exif: Array(jpeg[exif]), xmp: Array(Self.xmp.utf8))
        )
        var expected = try MetadataReader.facts(of: jpeg)
        #expect(expected.rating == 4 && expected.location != nil && expected.captureDate == 1_717_237_800_000_000)
        let facts = try MetadataReader.facts(of: bytes)
        #expect(facts.isOrientedByDecoder && facts.contentType == "public.jpeg-xl")
        expected.contentType = facts.contentType
        // Decoders apply the orientation; the stored number is informational.
        expected.orientation = facts.orientation
        #expect(facts == expected)
        try MetadataReader.requireWhole(bytes)
        #expect(throws: MetadataError.truncated) { try MetadataReader.requireWhole(Array(bytes.dropLast(20))) }
    }

    @Test func `a render keeps date and location`() throws {
        let source = try #require(try TestJXL.encoded(Self.jpeg(orientation: 1), fileExtension: "jpg"))
        let render = try MetadataWriter.transfer(
            from: source,
            to: TestImages.jpeg(width: 80, height: 60, orientation: 0, exif: nil),
            width: 80,
            height: 60
        )
        let facts = try MetadataReader.facts(of: render)
        #expect(facts.captureDate == 1_717_237_800_000_000 && facts.location?.latitude == -33.75)
        #expect(facts.rating == 4 && facts.cameraMake == "Safelight")
    }

    @Test func `bytes after a codestream are allowed only if its pixels can be decoded`() throws {
        let png = TestImages.png(width: 60, height: 40) { x, y in
            (UInt8(x * 4), UInt8(y * 6), UInt8((x ^ y) & 255), 255)
        }
        let whole = try #require(try TestJXL.encoded(png, fileExtension: "png", ["--container=0"]))
        try #require(whole.starts(with: [0xFF, 0x0A]))
        let appended = [UInt8](repeating: 7, count: 50)
        try MetadataReader.requireWhole(whole)
        try MetadataReader.requireWhole(whole + appended)
        // The header and the sizes of the parts are intact, the coded pixels are not.
        let damaged = whole.prefix(whole.count / 2) + [UInt8](repeating: 0xA5, count: whole.count - whole.count / 2)
        #expect(throws: MetadataError.self) { try MetadataReader.requireWhole(damaged + appended) }
    }

    @Test func `truncated or damaged boxes are handled`() throws {
        let whole = try #require(try TestJXL.encoded(Self.jpeg(orientation: 1), fileExtension: "jpg"))
        var random = SeededRandom(named: "damaged boxes")
        for _ in 0..<TestEnvironment.rounds(200) {
            var bytes = Array(whole.prefix(Int.random(in: 12...whole.count, using: &random)))
            for _ in 0..<4 where bytes.count > 13 {
                bytes[Int.random(in: 12..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            do throws(MetadataError) { _ = try MetadataReader.facts(of: bytes) } catch {
                #expect(!error.message.isEmpty)
            }
        }
    }
}
