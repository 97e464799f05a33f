import Foundation
import JSONValue
import Metadata
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(2))))
struct VideoAndSidecarTests {
    private func facts(_ bytes: [UInt8]) throws -> PhotoMetadata? {
        try MetadataReader.video(size: bytes.count) { offset, count in Array(bytes.dropFirst(offset).prefix(count)) }
    }

    @Test func `size, duration, time, location and identifier are read from a video's container`() throws {
        let video = TestVideos.video(
            duration: 2500,
            isRotated: true,
            created: 1_700_000_000,
            values: [
                ("content.identifier", "8A3C"), ("creationdate", "2024-06-01T12:30:00+0200"),
                ("location.ISO6709", "+52.5000+013.4000+034.5/"), ("make", "Apple"),
            ],
            padding: 100_000
        )
        let facts = try #require(try facts(video))
        #expect(facts.isVideo)
        #expect((facts.pixelWidth, facts.pixelHeight) == (480, 640))
        #expect(facts.duration == 2_500_000)
        #expect(facts.captureDate == 1_717_237_800_000_000)
        #expect(facts.captureOffset == 7200)
        #expect(facts.location == .init(latitude: 52.5, longitude: 13.4, altitude: 34.5))
        #expect((facts.contentIdentifier, facts.cameraMake) == ("8A3C", "Apple"))
        #expect(facts.contentType == "com.apple.quicktime-movie")
        #expect(try PhotoMetadata(json: facts.json) == facts)
    }

    @Test func `a location may name its reference system, or have minutes and seconds`() throws {
        func coordinates(_ text: String) throws -> PhotoMetadata.Coordinates? {
            try facts(TestVideos.video(values: [("location.ISO6709", text)]))?.location
        }
        #expect(
            try coordinates("+27.5916+086.5640+8850CRSWGS_84/")
                == .init(latitude: 27.5916, longitude: 86.564, altitude: 8850)
        )
        #expect(try coordinates("+5230.0+01324.0/") == .init(latitude: 52.5, longitude: 13.4))
        #expect(try coordinates("-523000.0-0132400-12/") == .init(latitude: -52.5, longitude: -13.4, altitude: -12))
        #expect(try coordinates("+52.5+13.4") == .init(latitude: 52.5, longitude: 13.4))
        for text in ["+5275.0+01324.0/", "+12345678+013.4/", "+52.5/", "+91+013/", "+0+000/", "north+013/"] {
            #expect(try coordinates(text) == nil, "\(text)")
        }
    }

    @Test func `the header's time is UTC, and nil if the clock was never set`() throws {
        let dated = try facts(TestVideos.video(brand: "mp42", created: 1_700_000_000))
        #expect(dated?.captureDate == 1_700_000_000_000_000)
        #expect(dated?.contentType == "public.mpeg-4")
        #expect(try facts(TestVideos.video())?.captureDate == nil)
        // Some programs count from 1970, where this fixture counts from 1904.
        let epoch = 2_082_844_800
        let other = try facts(TestVideos.video(created: 1_700_000_000 - epoch))
        #expect(other?.captureDate == 1_700_000_000_000_000)
        #expect(try facts(TestVideos.video(created: 3600 - epoch))?.captureDate == nil, "the clock was never set")
    }

    @Test func `the lens is read from the values of the video and from those of its track`() throws {
        let lens = ("camera.lens_model", "iPhone 15 front TrueDepth camera 2.69mm f/1.9")
        #expect(try facts(TestVideos.video(values: [("make", "Apple"), lens]))?.lensModel == lens.1)
        let ofTrack = try facts(TestVideos.video(values: [("make", "Apple")], trackValues: [lens]))
        #expect((ofTrack?.cameraMake, ofTrack?.lensModel) == ("Apple", lens.1))
        #expect(try facts(TestVideos.video())?.lensModel == nil)
    }

    @Test func `images are not videos, and truncated videos are refused as invalid_resource`() throws {
        #expect(try facts(TestImages.jpeg()) == nil)
        #expect(try facts([]) == nil)
        let video = TestVideos.video(values: [("make", "Apple")])
        for count in stride(from: 16, to: video.count, by: 7) {
            let error = #expect(throws: MetadataError.self) { try facts(Array(video.prefix(count))) }
            #expect(error?.name == "invalid_resource")
        }
    }

    @Test func `bytes after the last box of a complete video are ignored`() throws {
        let video = TestVideos.video(values: [("make", "Apple")])
        let notText = [UInt8](repeating: 0xFF, count: 40)
        let tooShort: [UInt8] = [0, 0, 0, 3] + Array("trailer of a camera".utf8)
        for trailer in [notText, tooShort, [1, 2, 3], Array("8db42d694ccc418790edff439fe026bf".utf8)] {
            #expect(try facts(video + trailer)?.cameraMake == "Apple")
        }
        // A box that is incomplete was truncated.
        #expect(throws: MetadataError.self) { try facts(video + [0, 0, 1, 0] + Array("mdat".utf8)) }
    }

    @Test func `random bytes in a video are handled`() throws {
        var random = SeededRandom(named: "films")
        let video = TestVideos.video(values: [("make", "Apple"), ("content.identifier", "X")])
        for _ in 0..<TestEnvironment.rounds(2000) {
            var damaged = video
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if let facts = try? facts(damaged) { _ = try PhotoMetadata(json: facts.json) }
        }
    }

    private static let sidecar = """
        <?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
        <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
        <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
          xmlns:exif="http://ns.adobe.com/exif/1.0/" xmp:Rating="4" exif:GPSLatitude="52,30.0N"
          exif:GPSLongitude="13,24.0E" exif:DateTimeOriginal="2024-06-01T12:30:00+02:00">
        <dc:title><rdf:Alt><rdf:li xml:lang="x-default">The title</rdf:li></rdf:Alt></dc:title>
        DESCRIPTION
        <dc:subject><rdf:Bag><rdf:li>sea</rdf:li><rdf:li>Küste</rdf:li><rdf:li>sea</rdf:li></rdf:Bag></dc:subject>
        </rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>
        """

    @Test func `rating, keywords, caption, location and date are read from a sidecar`() throws {
        let described = Self.sidecar.replacing(
            "DESCRIPTION",
            with: #"<dc:description><rdf:Alt><rdf:li xml:lang="x-default">Waves</rdf:li></rdf:Alt></dc:description>"#
        )
        let facts = try SidecarMetadata(xmp: Array(described.utf8))
        #expect((facts.rating, facts.caption) == (4, "Waves"))
        #expect(facts.keywords == ["sea", "Küste"])
        #expect(facts.location.map { abs($0.latitude - 52.5) < 0.001 && abs($0.longitude - 13.4) < 0.001 } == true)
        #expect((facts.captureDate, facts.captureOffset) == (1_717_237_800_000_000, 7200))
        #expect(try SidecarMetadata(json: facts.json) == facts)
        // A title is not used as the caption.
        let titled = try SidecarMetadata(xmp: Array(Self.sidecar.replacing("DESCRIPTION", with: "").utf8))
        #expect(titled.caption == nil)
        #expect(titled.metadata?.title == "The title")
        let ofCamera = described.replacing("Waves", with: "OLYMPUS DIGITAL CAMERA")
        #expect(try SidecarMetadata(xmp: Array(ofCamera.utf8)).caption == nil)
    }

    @Test func `hundreds of keywords are read, and a long caption is cut between two characters`() throws {
        let words = (0..<300).map { "<rdf:li>word \($0)</rdf:li>" }.joined()
        // With one of the two beginnings, the limit is inside a character.
        for beginning in ["", "a"] {
            let caption = beginning + String(repeating: "я", count: 40_000)
            let text = Self.sidecar.replacing("<rdf:li>sea</rdf:li>", with: words)
                .replacing(
                    "DESCRIPTION",
                    with: "<dc:description><rdf:Alt><rdf:li xml:lang=\"x-default\">\(caption)</rdf:li></rdf:Alt>"
                        + "</dc:description>"
                )
            let facts = try SidecarMetadata(xmp: Array(text.utf8))
            #expect(facts.keywords?.count == 301)
            let read = try #require(facts.caption)
            #expect(read.count > 32_000 && caption.hasPrefix(read), "\(read.prefix(8))")
        }
    }

    @Test func `values missing from a sidecar are nil, and other text is refused`() throws {
        let bare = try SidecarMetadata(xmp: Array(TestImages.xmpPacket("").utf8))
        #expect(bare == SidecarMetadata())
        for bytes in [Array("no XMP".utf8), [], [0, 1, 2]] {
            #expect(throws: MetadataError.self) { try SidecarMetadata(xmp: bytes) }
        }
    }

    @Test func `the burst identifier is found next to the content identifier`() throws {
        func entry(_ tag: UInt8, _ text: String, at offset: UInt8) -> [UInt8] {
            [0, tag, 0, 2, 0, 0, 0, UInt8(text.utf8.count + 1), 0, 0, 0, offset]
        }
        let (burst, content) = ("BURST-1", "CONTENT-2")
        var note = Array("Apple iOS\0\0\u{1}MM".utf8) + [0, 2]
        note += entry(0x0B, burst, at: 44) + entry(0x11, content, at: 52) + [0, 0, 0, 0]
        note += Array(burst.utf8) + [0] + Array(content.utf8) + [0]
        let image = TestImages.appleImage(note: note)
        let facts = try MetadataReader.facts(of: image)
        #expect((facts.burstIdentifier, facts.contentIdentifier) == (burst, content))
    }

    @Test func `raw files are detected by their bytes, and by extension if based on TIFF`() {
        let tiff: [UInt8] = [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0] + [UInt8](repeating: 0, count: 40)
        #expect(MetadataReader.raw(tiff, fileExtension: "NEF")?.contentType == "com.nikon.raw-image")
        #expect(MetadataReader.raw(tiff, fileExtension: "jpg") == nil)
        let raf = Array("FUJIFILMCCD-RAW 0201FF383501".utf8) + [UInt8](repeating: 0, count: 100)
        #expect(MetadataReader.raw(raf, fileExtension: "anything")?.contentType == "com.fuji.raw-image")
        #expect(MetadataReader.raw(TestImages.jpeg(), fileExtension: "nef") == nil)
    }

    @Test func `the date of a raw file without a known image has its offset`() {
        var exif = ExifBlock()
        exif.photo = [.ascii(0x9003, "2024:06:01 14:30:00"), .ascii(0x9011, "+02:00")]
        let facts = MetadataReader.raw(exif.bytes, fileExtension: "nef")
        #expect((facts?.captureDate, facts?.captureOffset) == (1_717_245_000_000_000, 7200))
    }

    @Test(.spec("S-33")) func `a raw file based on TIFF has the type and the size of its image, not of its preview`()
        throws
    {
        let preview = TestImages.jpeg(width: 60, height: 40)
        let files: [([UInt8], String)] = [
            (TestRaw.dng(width: 120, height: 80), "com.adobe.raw-image"),
            (TestRaw.dng(width: 120, height: 80, orientation: 6, preview: preview), "com.adobe.raw-image"),
            (TestRaw.dng(width: 120, height: 80, maker: "NIKON CORPORATION"), "com.nikon.raw-image"),
            (TestRaw.dng(width: 120, height: 80, maker: "SONY"), "com.sony.arw-raw-image"),
            (TestRaw.dng(width: 120, height: 80, maker: "Unknown"), "public.camera-raw-image"),
        ]
        for (bytes, type) in files {
            let facts = try MetadataReader.facts(of: bytes)
            #expect((facts.contentType, facts.pixelWidth, facts.pixelHeight) == (type, 120, 80))
            // The bytes also decide for a file beside a photo, whose extension can be another maker's.
            #expect(MetadataReader.raw(bytes, fileExtension: "pef")?.contentType == type)
        }
    }

    @Test(.spec("S-38"))
    func `sharpness is larger for finer structures of equal contrast, and only computed for JPEG`() throws {
        func stripes(_ period: Double) -> [UInt8] {
            TestImages.jpeg(width: 128, height: 96) { x, _ in
                let tone = UInt8(128 + 100 * sin(Double(x) * 2 * .pi / period))
                return (tone, tone, tone)
            }
        }
        let found = try [4.0, 8, 16, 32].map { try #require(MetadataReader.sharpness(of: stripes($0))) }
        #expect(found == found.sorted(by: >) && found[0] > 100 * found[3], "\(found)")
        #expect(
            try #require(MetadataReader.sharpness(of: TestImages.jpeg(width: 64, height: 48) { _, _ in (90, 90, 90) }))
                < 1
        )
        #expect(MetadataReader.sharpness(of: TestRaw.dng(width: 32, height: 32)) == nil)
        #expect(MetadataReader.sharpness(of: Array(stripes(4).prefix(200))) == nil)
    }
}
