import Foundation
import Metadata
import SamplePhotos
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct MetadataReaderTests {
    /// 2024-06-01T12:30:00Z in microseconds.
    static let halfPastTwelve: Int64 = 1_717_245_000_000_000

    private func facts(
        _ photo: [ExifBlock.Field] = [],
        main: [ExifBlock.Field] = [],
        gps: [ExifBlock.Field] = [],
        xmp: String? = nil,
        fallback: Int = 0
    ) throws -> PhotoMetadata {
        var exif = ExifBlock()
        exif.main = main
        exif.photo = photo
        exif.gps = gps
        let segments = xmp.map { [TestImages.xmpSegment($0)] } ?? []
        let bytes = TestImages.jpeg(width: 16, height: 8, orientation: 1, exif: exif, segments: segments)
        return try MetadataReader.facts(of: bytes, fallbackOffset: fallback)
    }

    @Test func `metadata of a test image equals the values with which it was created`() throws {
        let bytes = TestImages.jpeg(
            width: 40,
            height: 30,
            orientation: 6,
            date: "2024:06:01 14:30:00",
            offset: "+02:00",
            subsec: "25",
            latitude: -33.8568,
            longitude: 151.2153,
            seed: 3
        )
        let facts = try MetadataReader.facts(of: bytes)
        #expect(facts.contentType == "public.jpeg")
        #expect((facts.pixelWidth, facts.pixelHeight, facts.orientation) == (40, 30, 6))
        #expect(facts.captureDate == Self.halfPastTwelve + 250_000)
        #expect(facts.captureOffset == 7200)
        let location = try #require(facts.location)
        #expect(abs(location.latitude + 33.8568) < 1e-6)
        #expect(abs(location.longitude - 151.2153) < 1e-6)
        #expect(location.altitude == nil)
        #expect((facts.cameraMake, facts.cameraModel) == ("Safelight", "Test camera 3"))
        #expect(try PhotoMetadata(json: facts.json) == facts)
    }

    @Test func `each date uses its own offset and sub-seconds`() throws {
        let date = "2024:06:01 12:30:00"
        let original = try facts([
            .ascii(0x9003, date), .ascii(0x9010, "+05:00"), .ascii(0x9290, "9"), .ascii(0x9012, "+04:00"),
        ])
        #expect(
            (original.captureDate, original.captureOffset) == (Self.halfPastTwelve, nil),
            "OffsetTime is not the original's"
        )
        let digitized = try facts([
            .ascii(0x9004, date), .ascii(0x9012, "-01:30"), .ascii(0x9292, "123456789"), .ascii(0x9010, "+05:00"),
            .ascii(0x9011, "+03:00"),
        ])
        #expect(
            (digitized.captureDate, digitized.captureOffset) == (Self.halfPastTwelve + 5_400_000_000 + 123_456, -5400)
        )
        let modified = try facts([.ascii(0x9010, "+01:00"), .ascii(0x9290, "5")], main: [.ascii(0x0132, date)])
        #expect((modified.captureDate, modified.captureOffset) == (Self.halfPastTwelve - 3_600_000_000 + 500_000, 3600))
        let fallback = try facts([.ascii(0x9003, date)], fallback: 7200)
        #expect((fallback.captureDate, fallback.captureOffset) == (Self.halfPastTwelve - 7_200_000_000, nil))
    }

    @Test(arguments: [
        "0000:00:00 00:00:00", "    :  :     :  :  ", "", "2024:02:30 12:00:00", "2024:13:01 12:00:00",
        "2024:06:01 25:00:00", "nonsense", "2024:06", "1023:06:01 12:00:00", "2024:06:01 12:30:-1",
    ])
    func `an invalid date is ignored`(text: String) throws {
        #expect(try facts([.ascii(0x9003, text)]).captureDate == nil)
        let next = try facts([.ascii(0x9003, text), .ascii(0x9004, "2024:06:01 12:30:00")])
        #expect(next.captureDate == Self.halfPastTwelve, "the next date is used")
    }

    @Test func `XMP dates are used after those of EXIF`() throws {
        let xmp = "exif:DateTimeOriginal=\"2024-06-01T14:30:00.5+02:00\" photoshop:DateCreated=\"2020-01-01T00:00:00Z\""
        let only = try facts(xmp: xmp)
        #expect((only.captureDate, only.captureOffset) == (Self.halfPastTwelve + 500_000, 7200))
        let both = try facts([.ascii(0x9003, "2024:06:01 12:30:00")], xmp: xmp)
        #expect((both.captureDate, both.captureOffset) == (Self.halfPastTwelve, nil))
        let created = try facts(xmp: "photoshop:DateCreated=\"2024-06-01T12:30:00\"")
        #expect((created.captureDate, created.captureOffset) == (Self.halfPastTwelve, nil))
        let month = try facts(xmp: "photoshop:DateCreated=\"2024-06\"")
        #expect(month.captureDate == Self.halfPastTwelve - 45_000_000_000, "the first day of the month")
    }

    @Test func `a location needs hemispheres and plausible numbers`() throws {
        func coordinates(_ latitude: Double, _ longitude: Double, altitude: Double? = nil) throws -> PhotoMetadata
            .Coordinates?
        {
            var exif = ExifBlock()
            exif.setLocation(latitude: latitude, longitude: longitude, altitude: altitude)
            return try facts(gps: exif.gps).location
        }
        #expect(try coordinates(0, 0) == nil, "0, 0 means no GPS fix")
        #expect(try coordinates(0, 12)?.latitude == 0)
        #expect(try coordinates(51.5, 0)?.longitude == 0)
        #expect(try coordinates(-12.5, -77.25) == PhotoMetadata.Coordinates(latitude: -12.5, longitude: -77.25))
        #expect(try coordinates(10, 20, altitude: -12.5)?.altitude == -12.5)
        #expect(try coordinates(91, 10) == nil)
        #expect(try coordinates(10, 181) == nil)
        var exif = ExifBlock()
        exif.setLocation(latitude: 10, longitude: 20)
        #expect(try facts(gps: exif.gps.filter { $0.tag != 1 }).location == nil, "there is no hemisphere")
        exif.gps = exif.gps.map { $0.tag == 2 ? .rationals(2, [(10, 1), (30, 0), (0, 1)]) : $0 }
        #expect(try facts(gps: exif.gps).location == nil, "a division by zero gives no location")
        exif.gps = exif.gps.map { $0.tag == 2 ? .rationals(2, [(10, 1), (30, 1), (0, 0)]) : $0 }
        #expect(try facts(gps: exif.gps).location?.latitude == 10.5, "a missing part is zero")
    }

    @Test func `subtypes are derived from Apple's values and GPano`() throws {
        let expected = [0: 0, 1: 0, 2: 2, 3: 2, 4: 0, 6: 1, 7: 18, 8: 16]
        for (value, mask) in expected {
            #expect(try facts([.short(0xA401, value)]).mediaSubtypes == mask, "CustomRendered \(value)")
        }
        #expect(try facts(xmp: "GPano:ProjectionType=\"equirectangular\"").mediaSubtypes == 1)
        let comment = Array("ASCII\0\0\0Screenshot".utf8)
        #expect(
            try facts([ExifBlock.Field(tag: 0x9286, type: 7, count: comment.count, value: comment)]).mediaSubtypes == 4
        )
        let animation = try MetadataReader.facts(of: TestImages.gif(frames: 3))
        #expect((animation.mediaSubtypes, animation.isAnimated) == (64, true))
        #expect(try MetadataReader.facts(of: TestImages.gif(frames: 1)).mediaSubtypes == 0)
    }

    @Test func `a GIF frame must have an area within a canvas, and valid codes`() throws {
        let valid = TestImages.gif(frames: 1)
        let frame = try #require(valid.firstIndex(of: 0x2C))
        _ = try MetadataReader.requireWhole(valid)
        for (offset, value) in [(5, 0), (7, 0), (10, 0), (10, 12)] as [(Int, UInt8)] {
            var bytes = valid
            bytes[frame + offset] = value
            #expect(throws: MetadataError.self, "byte \(offset)") { try MetadataReader.requireWhole(bytes) }
        }
        for offset in [1, 3] {
            var bytes = valid
            (bytes[frame + offset], bytes[frame + offset + 1]) = (0xFF, 0xFF)
            #expect(throws: MetadataError.self, "byte \(offset)") { try MetadataReader.requireWhole(bytes) }
        }
    }

    @Test func `padding of text is removed, and Latin-1 is decoded`() throws {
        let latin: [UInt8] = [0x4B, 0xF6, 0x6C, 0x6E, 0]
        let facts = try facts(main: [
            .ascii(0x010F, "  NIKON   "), ExifBlock.Field(tag: 0x010E, type: 2, count: latin.count, value: latin),
            .ascii(0x0110, "   "),
        ])
        #expect((facts.cameraMake, facts.cameraModel, facts.caption) == ("NIKON", nil, "Köln"))
        let described = try self.facts(xmp: "xmp:Rating=\"4\"")
        #expect(described.rating == 4)
        #expect(try self.facts(xmp: "xmp:Rating=\"-1\"").rating == 0)
        #expect(try self.facts(xmp: "xmp:Rating=\"77\"").rating == 5)
        #expect(try self.facts(main: [.ascii(0x010E, "OLYMPUS DIGITAL CAMERA")]).caption == nil)
    }

    @Test func `metadata of PNG is read from its own chunks`() throws {
        var exif = ExifBlock()
        exif.main = [.short(0x0112, 8)]
        exif.photo = [.ascii(0x9003, "2024:06:01 12:30:00")]
        exif.setLocation(latitude: 1, longitude: 2)
        let xmp = Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + Array(TestImages.xmpPacket("xmp:Rating=\"3\"").utf8)
        let png = TestImages.png(width: 6, height: 4, chunks: [("eXIf", exif.bytes), ("iTXt", xmp)]) { _, _ in
            (1, 2, 3, 255)
        }
        let facts = try MetadataReader.facts(of: png)
        #expect((facts.contentType, facts.pixelWidth, facts.pixelHeight, facts.orientation) == ("public.png", 4, 6, 8))
        #expect((facts.captureDate, facts.rating, facts.location?.longitude) == (Self.halfPastTwelve, 3, 2))
    }

    @Test func `Apple's content identifier is found in the maker note`() throws {
        let identifier = "8A3C3F0B-4E36-4B6B-9E1E-9F0C0D3D6B1A"
        var note =
            Array("Apple iOS\0\0\u{1}MM".utf8) + [0, 1, 0, 0x11, 0, 2, 0, 0, 0, UInt8(identifier.utf8.count + 1)]
        note += [0, 0, 0, 32, 0, 0, 0, 0] + Array(identifier.utf8) + [0]
        let facts = try facts([ExifBlock.Field(tag: 0x927C, type: 7, count: note.count, value: note)])
        #expect(facts.contentIdentifier == identifier)
    }

    @Test func `broken metadata in a readable image is not an error`() throws {
        let good = TestImages.jpeg(
            width: 24,
            height: 16,
            orientation: 6,
            date: "2024:06:01 12:30:00",
            latitude: 3,
            longitude: 4
        )
        let end = 4 + (Int(good[4]) << 8 | Int(good[5]))
        for seed in UInt64(1)...400 {
            var random = SeededRandom(seed: seed)
            var bytes = good
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                bytes[Int.random(in: 12..<end, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let facts = try MetadataReader.facts(of: bytes)
            #expect(facts.pixelWidth * facts.pixelHeight == 24 * 16, "seed \(seed)")
        }
    }

    @Test func `files that are not images are refused with their apparent type`() throws {
        let files: [(String, [UInt8], String)] = [
            ("the file is empty", [], "unsupported_format"),
            ("SVG", Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8), "unsupported_format"),
            ("text", Array("hello world".utf8), "unsupported_format"),
            ("PostScript", Array("%!PS".utf8), "unsupported_format"),
        ]
        for (found, bytes, name) in files {
            let error = #expect(throws: MetadataError.self) { try MetadataReader.facts(of: bytes) }
            #expect(error?.name == name)
            #expect(error?.message.contains(found) == true)
        }
        #expect(throws: MetadataError.truncated) { try MetadataReader.facts(of: [0xFF, 0xD8, 0xFF]) }
        for seed in UInt64(1)...300 {
            var random = SeededRandom(seed: seed)
            let randomBytes = random.bytes(200)
            for start: [UInt8] in [
                [], [0xFF, 0xD8, 0xFF], Array("GIF89a".utf8), Array("II*\0".utf8), Array("RIFF1234WEBPVP8X".utf8),
                Array("\0\0\0\u{18}ftypheic\0\0\0\0mif1heic\0\0\0\u{C8}meta".utf8),
            ] {
                _ = try? MetadataReader.facts(of: start + randomBytes)
            }
        }
    }
}
