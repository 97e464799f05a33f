import Foundation
import Metadata
import SamplePhotos
import TestSupport
import Testing

/// Tests of facts that are easily misread. Each test creates its own files.
@Suite(.timeLimit(.minutes(3)))
struct FactSourceTests {
    /// 2024-06-01T12:30:00Z in microseconds.
    private static let halfPastTwelve: Int64 = 1_717_245_000_000_000

    private func facts(
        main: [ExifBlock.Field] = [],
        photo: [ExifBlock.Field] = [],
        gps: [ExifBlock.Field] = []
    ) throws -> PhotoMetadata {
        var exif = ExifBlock()
        (exif.main, exif.photo, exif.gps) = (main, photo, gps)
        return try MetadataReader.facts(of: TestImages.jpeg(width: 16, height: 8, orientation: 0, exif: exif))
    }

    // MARK: Descriptions

    @Test func `a description with commas is read completely`() throws {
        let text = "Waves, wind, and sun; lang=\"en\" or not, both"
        #expect(try ExifToolFile.facts(["-XMP-dc:Description=\(text)"]).caption == text)
        let both = try ExifToolFile.facts(["-XMP-dc:Description=Waves, wind", "-XMP-dc:Description-fr=Vagues, vent"])
        #expect(both.caption == "Waves, wind")
        let screenshot = try ExifToolFile.facts(["-XMP-exif:UserComment=Made by hand, Screenshot"])
        #expect(screenshot.mediaSubtypes == 4)
    }

    @Test func `an empty description or a camera's default is not a caption`() throws {
        let make = ExifBlock.Field.ascii(0x010F, "Maker")
        for count in [0, 1, 3] {
            let empty = ExifBlock.Field(tag: 0x010E, type: 2, count: count, value: [UInt8](repeating: 0, count: count))
            let facts = try facts(main: [empty, make])
            #expect((facts.caption, facts.cameraMake) == (nil, "Maker"), "\(count) bytes")
        }
        let blank = try ExifToolFile.facts(["-ImageDescription=OLYMPUS DIGITAL CAMERA", "-IPTC:Caption-Abstract=Sea"])
        #expect(blank.caption == "Sea")
        for text in [
            "default", "DCIM\\100MEDIA\\DJI_0076.JPG", "SANYO DIGITAL CAMERA", "<Digimax i50 MP3, Samsung #1 MP3>",
        ] {
            #expect(try facts(main: [.ascii(0x010E, text)]).caption == nil, "\(text)")
        }
        let own = "My first DIGITAL CAMERA"
        #expect(try facts(main: [.ascii(0x010E, own)]).caption == own)
    }

    // MARK: Dates

    @Test func `the offset of the last change is used for the capture date only if it is the only one`() throws {
        let date = ExifBlock.Field.ascii(0x9003, "2024:06:01 12:30:00")
        let single = try facts(photo: [date, .ascii(0x9010, "+02:00")])
        #expect((single.captureDate, single.captureOffset) == (Self.halfPastTwelve - 7_200_000_000, 7200))
        let other = try facts(photo: [date, .ascii(0x9010, "+02:00"), .ascii(0x9012, "+03:00")])
        #expect((other.captureDate, other.captureOffset) == (Self.halfPastTwelve, nil))
    }

    @Test func `the time of GPS is UTC`() throws {
        let gps = try facts(gps: [.ascii(29, "2024:06:01"), .rationals(7, [(12, 1), (30, 1), (1, 2)])])
        #expect((gps.captureDate, gps.captureOffset) == (Self.halfPastTwelve + 500_000, nil))
        let impossible = try facts(gps: [.ascii(29, "2024:06:01"), .rationals(7, [(25, 1), (30, 1), (0, 1)])])
        #expect(impossible.captureDate == nil)
    }

    @Test(arguments: [
        ("Sat, 01 Jun 2024 14:30:00 +0200", 7200), ("1 June 2024 12:30:00 GMT", 0), ("2024-06-01T14:30:00+02:00", 7200),
        ("2024:06:01 12:30:00", nil),
    ])
    func `the creation time of a PNG is read in its common formats`(text: String, offset: Int?) throws {
        let chunk = Array("Creation Time\0\(text)".utf8)
        let png = TestImages.png(width: 6, height: 4, chunks: [("tEXt", chunk)]) { _, _ in (1, 2, 3, 255) }
        let facts = try MetadataReader.facts(of: png)
        #expect((facts.captureDate, facts.captureOffset) == (Self.halfPastTwelve, offset))
    }

    @Test func `a day without a time is completed by the time of a later field on the same day`() throws {
        let day = "-XMP-photoshop:DateCreated=2024:06:01"
        #expect(try ExifToolFile.facts([day]).captureDate == Self.halfPastTwelve - 45_000_000_000)
        let refined = try ExifToolFile.facts([day, "-XMP-xmp:CreateDate=2024:06:01 12:30:00Z"])
        #expect((refined.captureDate, refined.captureOffset) == (Self.halfPastTwelve, 0))
        let other = try ExifToolFile.facts([day, "-XMP-xmp:CreateDate=2024:06:02 12:30:00Z"])
        #expect((other.captureDate, other.captureOffset) == (Self.halfPastTwelve - 45_000_000_000, nil))
    }

    // MARK: Lens

    @Test func `the lens is read from maker notes if its model is missing`() throws {
        // A Nikon note contains a TIFF structure of its own.
        func nikon(_ fields: [ExifBlock.Field]) -> [UInt8] {
            var block = ExifBlock()
            block.main = fields
            return Array("Nikon\0\u{2}\u{10}\0\0".utf8) + block.bytes
        }
        func lens(_ note: [UInt8], make: String = "NIKON CORPORATION") throws -> String? {
            let field = ExifBlock.Field(tag: 0x927C, type: 7, count: note.count, value: note)
            return try facts(main: [.ascii(0x010F, make)], photo: [field]).lensModel
        }
        let version = ExifBlock.Field(tag: 1, type: 7, count: 4, value: Array("0210".utf8))
        let kind = ExifBlock.Field.byte(0x83, 6)
        let range = ExifBlock.Field.rationals(0x84, [(180, 10), (700, 10), (35, 10), (45, 10)])
        let data =
            Array("0101".utf8) + [0, 0, 0, 0, 0, 0, 0, 0x7F, 0x40, 0x2D, 0x5C, 0x2C, 0x34, 0x84, 0, 0, 0, 0, 0, 0]
        let number = ExifBlock.Field(tag: 0x98, type: 7, count: data.count, value: data)
        #expect(try lens(nikon([version, kind, range, number]))?.contains("18-70mm f/3.5-4.5G IF-ED") == true)
        #expect(try lens(nikon([version, kind, range])) == "18-70mm f/3.5-4.5")
        // Olympus: offsets count from the beginning of the note, and the equipment has a directory of its own.
        let lensType: [UInt8] = [0, 0, 0x13, 0x10, 0, 0]
        var olympus = Array("OLYMPUS\0II\u{3}\0".utf8) + [1, 0, 0x10, 0x20, 4, 0, 1, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0]
        olympus += [1, 0, 1, 2, 1, 0, 6, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0] + lensType
        #expect(try lens(olympus, make: "OLYMPUS CORPORATION")?.contains("14-42mm") == true)
    }

    @Test func `placeholders are not lens names, and the range of the lens is used last`() throws {
        #expect(try ExifToolFile.facts(["-LensModel=----"]).lensModel == nil)
        #expect(try ExifToolFile.facts(["-XMP-aux:Lens=0.0 mm f/0.0"]).lensModel == nil)
        #expect(try ExifToolFile.facts(["-LensInfo=24 70 2.8 2.8"]).lensModel == "24-70mm f/2.8")
        #expect(try ExifToolFile.facts(["-LensInfo=4.15 4.15 2.2 2.2"]).lensModel == "4.15mm f/2.2")
        let named = try ExifToolFile.facts(["-LensInfo=24 70 2.8 2.8", "-XMP-exifEX:LensModel=Standard zoom"])
        #expect(named.lensModel == "Standard zoom")
    }

    @Test func `a lens number that several lenses have is ignored`() throws {
        func lens(_ number: Int, _ more: [ExifBlock.Field] = []) throws -> String? {
            // The directory has one field, LensID, and offsets from the beginning of EXIF.
            var note = Array("SONY DSC \0\0\0".utf8)
            note += [1, 0, 0x27, 0xB0, 4, 0, 1, 0, 0, 0]
            note += [UInt8(number & 255), UInt8(number >> 8), 0, 0, 0, 0, 0, 0]
            let field = ExifBlock.Field(tag: 0x927C, type: 7, count: note.count, value: note)
            return try facts(main: [.ascii(0x010F, "SONY")], photo: [field] + more).lensModel
        }
        #expect(try lens(0)?.contains("28-85mm") == true)
        let several = try lens(65_535)
        #expect(several == nil)
        let range = ExifBlock.Field.rationals(0xA432, [(50, 1), (50, 1), (14, 10), (14, 10)])
        #expect(try lens(65_535, [range]) == "50mm f/1.4")
    }

    @Test func `a render keeps the lens of a maker note`() throws {
        var block = ExifBlock()
        block.main = [
            ExifBlock.Field(tag: 1, type: 7, count: 4, value: Array("0210".utf8)), .byte(0x83, 6),
            .rationals(0x84, [(180, 10), (700, 10), (35, 10), (45, 10)]),
        ]
        let note = Array("Nikon\0\u{2}\u{10}\0\0".utf8) + block.bytes
        var exif = ExifBlock()
        exif.main = [.ascii(0x010F, "NIKON CORPORATION")]
        exif.photo = [ExifBlock.Field(tag: 0x927C, type: 7, count: note.count, value: note)]
        let source = TestImages.jpeg(width: 16, height: 8, orientation: 0, exif: exif)
        let render = try MetadataWriter.transfer(from: source, to: ExifToolFile.plainJPEG, width: 16, height: 8)
        #expect(try MetadataReader.facts(of: render).lensModel == "18-70mm f/3.5-4.5")
    }

    // MARK: Rating, location, subtypes

    @Test func `zeros of cameras are unknown values, also as logarithms and as 0/0`() throws {
        for denominator in [1, 0] {
            let tags: [UInt16] = [0x829A, 0x829D, 0x9201, 0x9202]
            let exposure = try facts(photo: tags.map { ExifBlock.Field.rationals($0, [(0, denominator)]) })
            #expect(exposure.metadata == nil, "0/\(denominator)")
        }
        var exif = ExifBlock()
        exif.setLocation(latitude: 52.5, longitude: 13.4)
        exif.gps += [.byte(5, 0), .rationals(6, [(0, 0)]), .rationals(17, [(0, 0)])]
        let located = try facts(gps: exif.gps)
        #expect(located.location == .init(latitude: 52.5, longitude: 13.4))
        #expect(located.metadata == nil)
    }

    @Test func `a rating may be written as a decimal number`() throws {
        for (text, rating) in [("4.0", 4), ("5", 5), ("-1.0", 0), ("3.5", 4), ("x", 0), ("nan", 0), ("1e300", 5)] {
            let bytes = TestImages.jpeg(
                width: 16,
                height: 8,
                orientation: 0,
                exif: nil,
                segments: [TestImages.xmpSegment("xmp:Rating=\"\(text)\"")]
            )
            #expect(try MetadataReader.facts(of: bytes).rating == rating, "\(text)")
        }
    }

    @Test func `coordinates written as text are read`() throws {
        func coordinates(_ latitude: String, _ longitude: String, refs: Bool = true) throws -> PhotoMetadata
            .Coordinates?
        {
            let signs: [ExifBlock.Field] = refs ? [.ascii(1, "S"), .ascii(3, "E")] : []
            return try facts(gps: signs + [.ascii(2, latitude), .ascii(4, longitude)]).location
        }
        let expected = PhotoMetadata.Coordinates(latitude: -33.5125, longitude: 151.25)
        #expect(try coordinates("33.5125", "151.25") == expected)
        #expect(try coordinates("33 30 45", "151 15 0") == expected)
        #expect(try coordinates("33 deg 30' 45.0\"", "151 deg 15'") == expected)
        #expect(try coordinates("33°30'45\" S", "E 151°15'", refs: false) == expected)
        #expect(try coordinates("-33.5125", "+151.25", refs: false) == expected)
        #expect(try coordinates("33,30.75", "151,15") == expected)
        for text in ["", "33.5125", "33 75 0", "north", "33-30", "1.2.3", "33 30 45 10 N"] {
            #expect(try coordinates(text, "+151.25", refs: false) == nil, "\(text)")
        }
    }

    @Test func `an altitude in XMP belongs to a location in XMP`() throws {
        let facts = try ExifToolFile.facts([
            "-XMP:GPSLatitude=52.5", "-XMP:GPSLongitude=13.4", "-XMP:GPSAltitude=34.5", "-XMP:GPSAltitudeRef#=1",
        ])
        #expect(facts.location?.altitude == -34.5)
    }

    @Test func `the original of an HDR image is not an HDR image`() throws {
        #expect(try facts(photo: [.short(0xA401, 4)]).mediaSubtypes == 0)
        #expect(try facts(photo: [.short(0xA401, 3)]).mediaSubtypes == 2)
    }
}
