import Foundation
import SamplePhotos
import TestSupport
import Testing

@testable import Metadata

/// Tests of offsets that are derived from the location of a photo.
@Suite(.timeLimit(.minutes(2)))
struct PlaceTimeZoneTests {
    private static func location(_ latitude: Double, _ longitude: Double) -> PhotoMetadata.Coordinates {
        .init(latitude: latitude, longitude: longitude)
    }

    /// Locations that are far from the borders of their zones.
    private static let locations: [(zone: String, location: PhotoMetadata.Coordinates)] = [
        ("Europe/Berlin", location(52.52, 13.4)), ("Europe/London", location(51.5, -0.12)),
        ("Asia/Kolkata", location(28.6, 77.2)),
        ("Asia/Kathmandu", location(27.7, 85.3)), ("America/New_York", location(40.7, -74)),
        ("America/Phoenix", location(33.45, -112.07)), ("America/Los_Angeles", location(37.77, -122.4)),
        ("America/Sao_Paulo", location(-23.55, -46.6)), ("Australia/Sydney", location(-33.86, 151.2)),
        ("Australia/Adelaide", location(-34.93, 138.6)), ("Pacific/Chatham", location(-43.95, -176.55)),
        ("Asia/Tokyo", location(35.7, 139.7)), ("Africa/Nairobi", location(-1.3, 36.8)),
        ("Asia/Shanghai", location(31.2, 121.5)),
        ("Etc/GMT+2", location(35, -30)), ("Pacific/Kiritimati", location(1.87, -157.4)),
    ]

    @Test func `offsets equal those of Foundation's time zones`() throws {
        let table = try #require(PlaceTimeZones.table)
        var random = SeededRandom(named: "time zones")
        for (name, location) in Self.locations {
            let zone = try #require(TimeZone(identifier: name))
            for _ in 0..<500 {
                // 1971 to 2037
                let second = Int64.random(in: 31_536_000...2_114_380_800, using: &random)
                let date = Date(timeIntervalSince1970: Double(second))
                let expected = zone.secondsFromGMT(for: date)
                #expect(table.offset(at: second * 1_000_000, location) == expected, "\(name) \(second)")
                let day = 2 * 86_400.0
                let isStable =
                    zone.secondsFromGMT(for: date - day) == expected && zone.secondsFromGMT(for: date + day) == expected
                guard isStable else { continue }
                #expect(table.offset(local: (second + Int64(expected)) * 1_000_000, location) == expected, "\(name)")
            }
        }
    }

    @Test func `after 2037 the offsets change as in the years before`() throws {
        let table = try #require(PlaceTimeZones.table)
        let (berlin, chatham) = (Self.location(52.52, 13.4), Self.location(-43.95, -176.55))
        for (second, location, expected): (Int64, PhotoMetadata.Coordinates, Int) in [
            (2_224_756_800, Self.location(51.5, -0.12), 3600), (2_224_756_800, Self.location(40.7, -74), -14_400),
            (2_224_756_800, Self.location(-33.86, 151.2), 36_000), (2_210_241_600, chatham, 49_500),
            (2_224_756_800, chatham, 45_900), (2_374_102_799, berlin, 3600), (2_374_102_800, berlin, 7200),
            (4_254_425_940, berlin, 7200), (4_254_426_000, berlin, 3600),
            (7_258_118_400, Self.location(35.7, 139.7), 32_400),
        ] {
            #expect(table.offset(at: second * 1_000_000, location) == expected, "\(second) \(location)")
        }
    }

    @Test func `times that the clock skips or repeats have one of the two offsets`() throws {
        let table = try #require(PlaceTimeZones.table)
        let berlin = Self.location(52.52, 13.4)
        func offset(_ text: String) throws -> Int {
            table.offset(local: try #require(CaptureTime(exif: text)).local, berlin)
        }
        #expect(try offset("2024:03:31 01:59:59") == 3600)
        #expect(try offset("2024:03:31 02:30:00") == 3600, "skipped")
        #expect(try offset("2024:03:31 03:00:00") == 7200)
        #expect(try offset("2024:10:27 01:59:59") == 7200)
        #expect(try offset("2024:10:27 02:30:00") == 7200, "repeated: the first")
        #expect(try offset("2024:10:27 03:00:00") == 3600)
    }

    @Test func `every location has a zone`() throws {
        let table = try #require(PlaceTimeZones.table)
        for (latitude, longitude): (Double, Double) in [
            (90, 180), (-90, -180), (90, -180), (-90, 180), (0, 0), (-90, 0), (90, 179.999),
        ] {
            let offset = table.offset(at: 1_717_245_000_000_000, Self.location(latitude, longitude))
            #expect((-12 * 3600...14 * 3600).contains(offset), "\(latitude) \(longitude)")
        }
        for moment in [Int64.min, -5_000_000_000_000_000, Int64.max] {
            #expect(abs(table.offset(at: moment, Self.location(52.52, 13.4))) <= 15 * 3600)
        }
    }

    @Test func `a date without an offset has the offset of its location, and is marked`() throws {
        func facts(offset: String? = nil, date: String? = "2024:06:01 12:30:00") throws -> PhotoMetadata {
            try MetadataReader.facts(
                of: TestImages.jpeg(date: date, offset: offset, latitude: -33.86, longitude: 151.2),
                fallbackOffset: 3600
            )
        }
        let derived = try facts()
        #expect((derived.captureDate, derived.captureOffset) == (1_717_209_000_000_000, 36_000))
        #expect(derived.isOffsetDerived)
        #expect(try PhotoMetadata(json: derived.json) == derived)
        let own = try facts(offset: "+09:00")
        #expect((own.captureOffset, own.isOffsetDerived) == (32_400, false))
        let none = try facts(date: nil)
        #expect((none.captureOffset, none.isOffsetDerived) == (nil, false))
        let plain = try MetadataReader.facts(of: TestImages.jpeg(date: "2024:06:01 12:30:00"), fallbackOffset: 3600)
        #expect((plain.captureDate, plain.captureOffset, plain.isOffsetDerived) == (1_717_241_400_000_000, nil, false))
    }

    @Test func `times of GPS and of videos have the offset of their location`() throws {
        var exif = ExifBlock()
        exif.gps = [.ascii(29, "2024:06:01"), .rationals(7, [(12, 1), (30, 1), (0, 1)])]
        exif.setLocation(latitude: 40.7, longitude: -74)
        let gps = try MetadataReader.facts(of: TestImages.jpeg(width: 16, height: 8, orientation: 0, exif: exif))
        #expect((gps.captureDate, gps.captureOffset) == (1_717_245_000_000_000, -14_400))
        #expect(gps.isOffsetDerived)
        let video = TestVideos.video(created: 1_717_245_000, values: [("location.ISO6709", "+52.5200+013.4000/")])
        let facts = try #require(
            try MetadataReader.video(size: video.count) { offset, count in Array(video.dropFirst(offset).prefix(count))
            }
        )
        #expect((facts.captureDate, facts.captureOffset) == (1_717_245_000_000_000, 7200))
        #expect(facts.isOffsetDerived)
    }

    @Test func `the location of a video may be in XMP`() throws {
        let packet = TestImages.xmpPacket("exif:GPSLatitude=\"52,30.0N\" exif:GPSLongitude=\"13,24.0E\"")
        let identifier: [UInt8] = [
            0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8, 0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF, 0xAC,
        ]
        let content = Array("uuid".utf8) + identifier + Array(packet.utf8)
        let size = (0..<4).map { UInt8(truncatingIfNeeded: (content.count + 4) >> (24 - 8 * $0)) }
        let video = TestVideos.video(created: 1_717_245_000) + size + content
        let facts = try #require(
            try MetadataReader.video(size: video.count) { offset, count in Array(video.dropFirst(offset).prefix(count))
            }
        )
        #expect((facts.captureDate, facts.captureOffset) == (1_717_245_000_000_000, 7200))
        #expect(facts.isOffsetDerived)
    }

    @Test func `a damaged table is refused`() throws {
        #expect(PlaceTimeZones([]) == nil)
        #expect(PlaceTimeZones([UInt8](repeating: 0, count: 100)) == nil)
        #expect(PlaceTimeZones([32, 0, 0, 0] + [UInt8](repeating: 255, count: 20_000)) == nil)
    }
}
