import Foundation
import TestSupport
import Testing

@testable import Metadata

/// Tests of the order of the fields, in the documentation and in files with one or more of them.
@Suite(.timeLimit(.minutes(3)))
struct MetadataFieldsTests {
    /// A date field, and the tags of exiftool that write it.
    private struct Case: Sendable {
        let field: String
        /// The format of the file: PNG for its own fields.
        var isPNG = false
        /// The tags for the n-th date, 2001-02-03 04:05:06 in the year 2000 + n.
        let tags: @Sendable (Int) -> [String]
    }

    private static func stamp(_ n: Int) -> String { "\(2000 + n):02:03 04:05:06" }

    private static let dates: [Case] = [
        Case(field: "Exif.Photo.DateTimeOriginal") { ["-ExifIFD:DateTimeOriginal=\(stamp($0))"] },
        Case(field: "Exif.Image.DateTimeOriginal") { ["-IFD0:DateTimeOriginal=\(stamp($0))"] },
        Case(field: "Exif.Photo.DateTimeDigitized") { ["-ExifIFD:CreateDate=\(stamp($0))"] },
        Case(field: "Xmp.exif.DateTimeOriginal") { ["-XMP-exif:DateTimeOriginal=\(stamp($0))"] },
        Case(field: "Xmp.photoshop.DateCreated") { ["-XMP-photoshop:DateCreated=\(stamp($0))"] },
        Case(field: "Xmp.xmp.CreateDate") { ["-XMP-xmp:CreateDate=\(stamp($0))"] },
        Case(field: "Xmp.exif.DateTimeDigitized") { ["-XMP-exif:DateTimeDigitized=\(stamp($0))"] },
        Case(field: "Iptc.Application2.DateCreated") {
            ["-IPTC:DateCreated=\(2000 + $0):02:03", "-IPTC:TimeCreated=04:05:06+00:00"]
        },
        Case(field: "Iptc.Application2.DigitizationDate") {
            ["-IPTC:DigitalCreationDate=\(2000 + $0):02:03", "-IPTC:DigitalCreationTime=04:05:06+00:00"]
        },
        Case(field: "PNG.CreationTime", isPNG: true) { ["-PNG:CreationTime=\(stamp($0))"] },
        Case(field: "Exif.GPSInfo.GPSDateStamp") {
            ["-GPS:GPSDateStamp=\(2000 + $0):02:03", "-GPS:GPSTimeStamp=04:05:06"]
        },
        Case(field: "Xmp.exif.GPSTimeStamp") { ["-XMP-exif:GPSDateTime=\(stamp($0))Z"] },
        Case(field: "Exif.Image.DateTime") { ["-IFD0:ModifyDate=\(stamp($0))"] },
        Case(field: "Xmp.xmp.ModifyDate") { ["-XMP-xmp:ModifyDate=\(stamp($0))"] },
        Case(field: "PNG.tIME", isPNG: true) { ["-PNG:ModifyDate=\(stamp($0))"] },
    ]

    private func check(_ cases: [[(Int, Case)]]) throws {
        for isPNG in [false, true] {
            let selected = cases.filter { $0.contains { $0.1.isPNG } == isPNG }
            let source = isPNG ? ExifToolFile.plainPNG : ExifToolFile.plainJPEG
            let files = try ExifToolFile.files(selected.map { $0.flatMap { $0.1.tags($0.0) } }, from: source)
            for (parts, file) in zip(selected, files) {
                let names = parts.map(\.1.field).joined(separator: ", ")
                let facts = try MetadataReader.facts(of: file)
                let (n, first) = try #require(parts.min { $0.0 < $1.0 })
                #expect(facts.captureDateSource?.rawValue == first.field, "\(names)")
                let expected = try #require(CaptureTime(exif: Self.stamp(n))).local
                let local = facts.captureDate.map { $0 + Int64(facts.captureOffset ?? 0) * 1_000_000 }
                #expect(local == expected, "\(names)")
            }
        }
    }

    @Test func `every date is read if it is the only one, and marked if it is the date of the last change`() throws {
        #expect(Self.dates.map(\.field) == CaptureDateSource.allCases.map(\.rawValue))
        try check(Self.dates.enumerated().map { [($0, $1)] })
        let modifications = CaptureDateSource.allCases.filter(\.isModification).map(\.rawValue)
        #expect(modifications == ["Exif.Image.DateTime", "Xmp.xmp.ModifyDate", "PNG.tIME"])
    }

    @Test func `of any two dates the first in the table is used`() throws {
        let all = Array(Self.dates.enumerated().map { ($0, $1) })
        let pairs = all.indices.flatMap { first in all.indices.dropFirst(first + 1).map { [all[first], all[$0]] } }
        try check(pairs)
        // The same is true for more than two fields.
        try check(all.indices.map { Array(all[$0...]) })
    }

    @Test func `other facts are read from each of their fields, in the order of the table`() throws {
        let tags: [(fact: String, tags: [String], read: (PhotoMetadata) -> String?)] = [
            ("caption", ["XMP-dc:Description", "IPTC:Caption-Abstract", "IFD0:ImageDescription"], { $0.caption }),
            ("rating", ["XMP-xmp:Rating", "IFD0:Rating"], { "\($0.rating)" }),
            ("camera make", ["IFD0:Make", "XMP-tiff:Make"], { $0.cameraMake }),
            ("camera model", ["IFD0:Model", "XMP-tiff:Model"], { $0.cameraModel }),
            ("lens", ["ExifIFD:LensModel", "XMP-exifEX:LensModel", "XMP-aux:Lens"], { $0.lensModel }),
        ]
        for (fact, tags, read) in tags {
            let fields = try #require(MetadataFields.table.first { $0.fact == fact }).fields
            #expect(fact == "lens" || fields.count == tags.count)
            // Files with the n-th field alone, and with all fields after it.
            func setting(_ index: Int) -> String { "-\(tags[index])\(fact == "rating" ? "#=" : "=")\(index + 1)" }
            let alone = tags.indices.map { [setting($0)] }
            let following = tags.indices.map { tags.indices[$0...].map(setting) }
            for (index, file) in zip(
                Array(tags.indices) + Array(tags.indices),
                try ExifToolFile.files(alone + following)
            ) {
                #expect(read(try MetadataReader.facts(of: file)) == "\(index + 1)", "\(tags[index])")
            }
        }
        let words = try ExifToolFile.facts([
            "-XMP-dc:Subject=sea, sun", "-IPTC:Keywords=beach", "-XMP-dc:Subject=beach",
        ])
        #expect(words.keywords == ["sea, sun", "beach"])
    }

    @Test func `the documented table equals the table of the reader`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "Shared/docs/metadata.md"), encoding: .utf8)
        let section = try #require(page.split(separator: "\n## ").first { $0.hasPrefix("Fields") })
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2)
        let documented = rows.map { row in
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let fields = cells[1].matches(of: /`([^`]+)`/).map { String($0.1) }
            return "\(cells[0]): \(fields.joined(separator: ", "))"
        }
        #expect(documented == MetadataFields.table.map { "\($0.fact): \($0.fields.joined(separator: ", "))" })
    }

    // MARK: Languages

    @Test func `the text in the user's language is used, else the default, else the first`() {
        let value = "lang=\"x-default\" Waves, wind, lang=\"de-AT\" Wellen, Wind, lang=\"fr\" Vagues, vent"
        let texts = LanguageAlternatives(value)
        #expect(texts.texts.map(\.text) == ["Waves, wind", "Wellen, Wind", "Vagues, vent"])
        #expect(texts.text([]) == "Waves, wind")
        #expect(texts.text(["it", "fr"]) == "Vagues, vent")
        #expect(texts.text(["de-DE", "de"]) == "Wellen, Wind")
        #expect(texts.text(["DE-at"]) == "Wellen, Wind")
        #expect(LanguageAlternatives("lang=\"fr\" Vagues, lang=\"it\" Onde").text([]) == "Vagues")
        #expect(LanguageAlternatives("lang=\"x-default\" , lang=\"it\" Onde").text([]) == "Onde")
        #expect(LanguageAlternatives("lang=\"x-default\" A, lang=\"no tag\" B").text([]) == "A, lang=\"no tag\" B")
        #expect(LanguageAlternatives("plain, text").text([]) == "plain, text")
        #expect(LanguageAlternatives("lang=\"x-default\"").text([]) == nil)
        #expect(LanguageAlternatives("").text([]) == nil)
    }

    @Test func `the language of a locale is found`() {
        #expect(LanguageAlternatives.languages(ofLocale: "de_AT.UTF-8") == ["de-AT", "de"])
        #expect(LanguageAlternatives.languages(ofLocale: "fr") == ["fr"])
        for locale in ["C", "POSIX", "C.UTF-8", ""] { #expect(LanguageAlternatives.languages(ofLocale: locale) == []) }
    }

    // MARK: Times

    @Test func `a day, a month and a year contain their times, and no others`() throws {
        let day = try #require(CaptureTime(xmp: "1969-12-31"))
        let month = try #require(CaptureTime(xmpPeriod: "1969-12"))
        let year = try #require(CaptureTime(xmpPeriod: "1968"))
        #expect(day.contains(try #require(CaptureTime(exif: "1969:12:31 23:59:59"))))
        #expect(!day.contains(try #require(CaptureTime(exif: "1970:01:01 00:00:00"))))
        #expect(!day.contains(day) && month.contains(day) && !day.contains(month))
        #expect(!month.contains(try #require(CaptureTime(xmp: "1970-01-01"))))
        #expect(year.contains(try #require(CaptureTime(xmp: "1968-12-31"))))
        #expect(!year.contains(month))
        #expect(month.utc(fallbackOffset: 0) == -31 * 86_400_000_000)
        for text in ["2024-13", "2024-00", "24", "20240", "2024-6", "2024-", "-2024", "0000", "2024-06-01", ""] {
            #expect(CaptureTime(xmpPeriod: text) == nil, "\(text)")
        }
        for text in ["2024-06", "2024", "2024-06-01T", "2024-02-30", "20240601", "2024-6-1"] {
            #expect(CaptureTime(xmp: text) == nil, "\(text)")
        }
    }
}
