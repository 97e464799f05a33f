import Metadata
import TestSupport
import Testing

/// Tests of the dates of sidecars.
@Suite(.timeLimit(.minutes(1)))
struct SidecarDateTests {
    private let location = #"exif:GPSLatitude="40,42.0N" exif:GPSLongitude="74,0.0W""#

    @Test(arguments: ["exif:DateTimeOriginal", "photoshop:DateCreated", "xmp:CreateDate", "exif:DateTimeDigitized"])
    func `a date has the offset at the end of its text, also beside a location`(_ name: String) throws {
        for others in ["", location] {
            let text = TestImages.xmpPacket("\(name)=\"2011-01-01T00:00:00+02:00\" \(others)")
            let facts = try SidecarMetadata(xmp: Array(text.utf8))
            #expect((facts.captureDate, facts.captureOffset) == (1_293_832_800_000_000, 7200), "\(name) \(others)")
            #expect(!facts.isOffsetDerived)
        }
    }

    @Test(
        arguments: [
            ("photoshop:DateCreated=\"2019\"", 1_546_300_800), ("exif:DateTimeOriginal=\"2019-03\"", 1_551_398_400),
            ("photoshop:DateCreated=\"2019\" xmp:CreateDate=\"2019-03-05\"", 1_551_744_000),
            ("photoshop:DateCreated=\"1965\" xmp:CreateDate=\"2019-03-05T10:00:00\"", -157_766_400),
        ] as [(String, Int64)]
    )
    func `a year or a month is read as its beginning, unless another field has a date in it`(
        _ fields: String,
        _ date: Int64
    )
        throws
    {
        let facts = try SidecarMetadata(xmp: Array(TestImages.xmpPacket(fields).utf8))
        #expect((facts.captureDate, facts.captureOffset) == (date * 1_000_000, nil))
    }

    @Test func `a date without an offset has the offset of its location`() throws {
        let text = TestImages.xmpPacket("photoshop:DateCreated=\"2011-01-01T00:00:00\" \(location)")
        let facts = try SidecarMetadata(xmp: Array(text.utf8))
        #expect((facts.captureDate, facts.captureOffset) == (1_293_858_000_000_000, -18_000))
        #expect(facts.isOffsetDerived)
    }
}
