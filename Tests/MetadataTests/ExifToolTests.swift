import Foundation
import JSONValue
import Metadata
import TestSupport
import Testing

enum ExifTool {
    static func run(_ path: String, _ arguments: [String]) throws -> String {
        String(decoding: try ExternalTool.run(path, arguments), as: UTF8.self)
    }
}

/// Compares the metadata of every real photograph with the metadata that exiftool reads.
@Suite(.timeLimit(.minutes(3)))
struct ExifToolTests {
    /// The known differences and their reasons. A new difference fails the test, and so does one that no longer exists.
    static let differences: [String: String] = [
        "exif-samples/jpg/tests/87_OSError.jpg altitude":
            "no GPSAltitudeRef: EXIF's default is above the sea, exiftool's composite needs the reference"
    ]

    @Test func `metadata equals that of exiftool, except for the listed differences`() throws {
        let (folder, exiftool) = (try Needed.photographs(), try Needed.program("exiftool"))
        let files = SharedPhotos.files(["jpg", "jpeg", "tif", "tiff", "heic", "heif"])
        let text = try ExifTool.run(exiftool, ["-json", "-n", "-r", "-G1", "-api", "largefilesupport=1", folder.path])
        let table = try #require(try JSON(parsing: text).arrayValue)
        var reported: [String: JSON] = [:]
        for entry in table { reported[entry["SourceFile"]?.stringValue ?? ""] = entry }
        var found: [String: String] = [:]
        for file in files {
            let name = SharedPhotos.name(file)
            guard let entry = reported[file.path] else {
                found[name] = "exiftool reports nothing"
                continue
            }
            do throws(MetadataError) {
                let facts = try MetadataReader.facts(of: SharedPhotos.bytes(file))
                for (fact, ours, theirs) in Self.compare(facts, ReportedMetadata(entry)) where ours != theirs {
                    found["\(name) \(fact)"] = "\(ours), exiftool \(theirs)"
                }
            } catch {
                found[name] = error.message
            }
        }
        for (key, difference) in found.sorted(by: { $0.key < $1.key }) {
            #expect(Self.differences[key] != nil, "\(key): \(difference)")
        }
        for key in Self.differences.keys where found[key] == nil {
            Issue.record("this difference no longer exists: \(key)")
        }
        #expect(files.count > 90)
    }

    private static func compare(_ facts: PhotoMetadata, _ reported: ReportedMetadata) -> [(String, String, String)] {
        func rounded(_ value: Double?, _ digits: Double) -> String {
            value.map { String(Int(($0 * digits).rounded())) } ?? "none"
        }
        // The time of GPS is UTC, whatever the zone of its place.
        let offset = facts.captureDateSource == .gps ? 0 : facts.captureOffset ?? 0
        let date = facts.captureDate.map { $0 + Int64(offset) * 1_000_000 }
        return [
            ("size", "\(facts.pixelWidth)x\(facts.pixelHeight)", reported.size),
            ("orientation", "\(facts.orientation)", "\(reported.orientation)"),
            ("date", date.map(String.init) ?? "none", reported.localDate.map(String.init) ?? "none"),
            // Exiftool does not derive offsets from locations.
            (
                "offset", facts.isOffsetDerived ? "none" : facts.captureOffset.map(String.init) ?? "none",
                reported.offset.map(String.init) ?? "none"
            ),
            ("latitude", rounded(facts.location?.latitude, 1e6), rounded(reported.latitude, 1e6)),
            ("longitude", rounded(facts.location?.longitude, 1e6), rounded(reported.longitude, 1e6)),
            ("altitude", rounded(facts.location?.altitude, 100), rounded(reported.altitude, 100)),
            ("make", facts.cameraMake ?? "none", reported.text("IFD0:Make")),
            ("model", facts.cameraModel ?? "none", reported.text("IFD0:Model")),
            ("rating", "\(facts.rating)", "\(reported.rating)"),
            ("lens", facts.lensModel ?? "none", reported.lens ?? facts.lensModel ?? "none"),
        ]
    }
}

/// The values of exiftool in the form of the reader. Exiftool prints sizes before rotation.
private struct ReportedMetadata {
    private let entry: JSON

    init(_ entry: JSON) { self.entry = entry }

    private func number(_ names: String...) -> Double? {
        for name in names { if let value = entry[name]?.doubleValue { return value } }
        return nil
    }

    func text(_ name: String) -> String {
        let value = entry[name]
        let text = value?.stringValue ?? value.map(\.text) ?? ""
        let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return trimmed.isEmpty ? "none" : trimmed
    }

    var isHEIC: Bool { entry["File:FileType"]?.stringValue.map { $0 == "HEIC" || $0 == "HEIF" } ?? false }
    var orientation: Int {
        let value = Int(number("IFD0:Orientation", "XMP-tiff:Orientation") ?? 1)
        return (1...8).contains(value) ? value : 1
    }

    var size: String {
        let width = Int(number("File:ImageWidth", "IFD0:ImageWidth", "Meta:ImageWidth", "Composite:ImageWidth") ?? 0)
        let height = Int(
            number("File:ImageHeight", "IFD0:ImageHeight", "Meta:ImageHeight", "Composite:ImageHeight") ?? 0
        )
        let isTurned = isHEIC ? Int(number("QuickTime:Rotation") ?? 0) % 180 == 90 : orientation >= 5
        return isTurned ? "\(height)x\(width)" : "\(width)x\(height)"
    }

    /// The first date in the order of the documented table.
    private var stamp: (date: String, subsec: String, offset: String)? {
        exif("ExifIFD:DateTimeOriginal", "ExifIFD:SubSecTimeOriginal", "ExifIFD:OffsetTimeOriginal")
            ?? exif("ExifIFD:CreateDate", "ExifIFD:SubSecTimeDigitized", "ExifIFD:OffsetTimeDigitized")
            ?? xmp("XMP-exif:DateTimeOriginal", "XMP-photoshop:DateCreated", "XMP-xmp:CreateDate")
            ?? xmp("Composite:GPSDateTime").map { ($0.date, $0.subsec, "none") }
            ?? exif("IFD0:ModifyDate", "ExifIFD:SubSecTime", "ExifIFD:OffsetTime") ?? xmp("XMP-xmp:ModifyDate")
    }

    private func exif(_ date: String, _ subsec: String, _ offset: String) -> (String, String, String)? {
        let value = text(date)
        guard value != "none", !value.hasPrefix("0000") else { return nil }
        let isOnly = text("ExifIFD:OffsetTimeOriginal") == "none" && text("ExifIFD:OffsetTimeDigitized") == "none"
        let own = text(offset)
        return (value, text(subsec), own == "none" && isOnly ? text("ExifIFD:OffsetTime") : own)
    }

    /// Returns the first of these dates. XMP has date, time and time zone in one text; a day means midnight.
    private func xmp(_ dates: String...) -> (date: String, subsec: String, offset: String)? {
        for date in dates {
            let value = text(date).replacing("Z", with: "+00:00")
            if value.count >= 19 { return (String(value.prefix(19)), "0", String(value.dropFirst(19))) }
            if value.count == 10 { return (value + " 00:00:00", "0", "none") }
        }
        return nil
    }

    /// Microseconds by the camera's clock, computed with Foundation's calendar.
    var localDate: Int64? {
        guard let stamp else { return nil }
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "yyyy:MM:dd HH:mm:ss"
        guard let date = formatter.date(from: stamp.date) else { return nil }
        let fraction = Double("0.\(stamp.subsec)") ?? 0
        return Int64(date.timeIntervalSince1970) * 1_000_000 + Int64((fraction * 1_000_000).rounded())
    }

    var offset: Int? {
        guard let text = stamp?.offset, text != "none", let sign = text.first, text.count == 6 else { return nil }
        let parts = text.dropFirst().split(separator: ":").compactMap { Int($0) }
        return parts.count == 2 ? (sign == "-" ? -1 : 1) * (parts[0] * 3600 + parts[1] * 60) : nil
    }

    var rating: Int { min(5, max(0, Int(number("XMP-xmp:Rating", "IFD0:Rating") ?? 0))) }
    /// The name of the lens, but not from maker notes, because exiftool names those lenses differently.
    var lens: String? {
        ["ExifIFD:LensModel", "XMP-exifEX:LensModel", "XMP-aux:Lens"].map(text).first { $0 != "none" }
    }
    var latitude: Double? { number("Composite:GPSLatitude") }
    var longitude: Double? { number("Composite:GPSLongitude") }
    var altitude: Double? { number("Composite:GPSAltitude") }
}
