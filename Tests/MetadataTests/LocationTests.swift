import Metadata
import SamplePhotos
import TestSupport
import Testing

/// Tests of the locations of images with fields of EXIF and of XMP.
@Suite(.timeLimit(.minutes(1)))
struct LocationTests {
    private func location(_ exif: ExifBlock, _ xmp: String) throws -> PhotoMetadata.Coordinates? {
        let bytes = TestImages.jpeg(
            width: 32,
            height: 24,
            orientation: 1,
            exif: exif,
            segments: [TestImages.xmpSegment(xmp)]
        )
        return try MetadataReader.facts(of: bytes).location
    }

    private static let xmp = """
        exif:GPSLatitude="52,30.0N" exif:GPSLongitude="13,24.0E" exif:GPSAltitude="340/10" exif:GPSAltitudeRef="0"
        """
    private static let xmpLocation = PhotoMetadata.Coordinates(latitude: 52.5, longitude: 13.4, altitude: 34)

    @Test func `an invalid location of EXIF does not hide the location of XMP`() throws {
        for (latitude, longitude) in [(0.0, 0.0), (91, 10), (10, 181)] {
            var exif = ExifBlock()
            exif.setLocation(latitude: latitude, longitude: longitude, altitude: 0)
            #expect(try location(exif, Self.xmp) == Self.xmpLocation, "\(latitude) \(longitude)")
        }
    }

    @Test func `a latitude is never combined with the longitude of another standard`() throws {
        var exif = ExifBlock()
        exif.setLocation(latitude: 40, longitude: -70)
        exif.gps.removeAll { $0.tag == 3 || $0.tag == 4 }
        #expect(try location(exif, Self.xmp) == Self.xmpLocation)
        #expect(try location(exif, #"exif:GPSLongitude="13,24.0E""#) == nil)
    }

    @Test func `a valid location of EXIF is used first`() throws {
        var exif = ExifBlock()
        exif.setLocation(latitude: 40, longitude: -70)
        let found = try #require(try location(exif, Self.xmp))
        #expect((found.latitude, found.longitude) == (40, -70))
    }
}
