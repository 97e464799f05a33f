import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Metadata

/// A row of the table of facts, with the tags of exiftool for its fields.
struct SearchedFact: Sendable {
    let name: String
    /// The fields with their tags in the order of the table.
    let tags: [(field: String, tag: String)]
    /// Returns the fact as text, numbers with five digits; nil if it is missing.
    let read: @Sendable (AssetMetadata) -> String?
    /// Returns the n-th value in the form that exiftool writes, and in the form of `read`.
    let value: @Sendable (Int) -> (written: String, read: String)

    static func number(_ number: Double?) -> String? { number.map { String(format: "%.5f", $0) } }

    private static func numbers(
        _ name: String,
        _ tags: [(String, String)],
        _ path: any KeyPath<AssetMetadata, Double?> & Sendable,
        _ value: @escaping @Sendable (Int) -> Double
    ) -> SearchedFact {
        SearchedFact(name: name, tags: tags, read: { number($0[keyPath: path]) }) {
            ("\(value($0))", number(value($0)) ?? "")
        }
    }

    private static func integers(
        _ name: String,
        _ tags: [(String, String)],
        _ path: any KeyPath<AssetMetadata, Int?> & Sendable
    ) -> SearchedFact {
        SearchedFact(name: name, tags: tags, read: { number($0[keyPath: path].map(Double.init)) }) {
            ("\(100 + $0)", number(Double(100 + $0)) ?? "")
        }
    }

    private static func text(
        _ name: String,
        _ tags: [(String, String)],
        _ path: any KeyPath<AssetMetadata, String?> & Sendable
    ) -> SearchedFact {
        SearchedFact(name: name, tags: tags, read: { $0[keyPath: path] }) { ("\(name) \($0)", "\(name) \($0)") }
    }

    static let all: [SearchedFact] = [
        numbers(
            "aperture",
            [
                ("Exif.Photo.FNumber", "ExifIFD:FNumber"), ("Exif.Image.FNumber", "IFD0:FNumber"),
                ("Exif.Photo.ApertureValue", "ExifIFD:ApertureValue"),
                ("Exif.Image.ApertureValue", "IFD0:ApertureValue"), ("Xmp.exif.FNumber", "XMP-exif:FNumber"),
                ("Xmp.exif.ApertureValue", "XMP-exif:ApertureValue"),
            ],
            \.aperture
        ) { [1.4, 1.8, 2.8, 4, 5.6, 8][$0] },
        numbers(
            "exposure time",
            [
                ("Exif.Photo.ExposureTime", "ExifIFD:ExposureTime"), ("Exif.Image.ExposureTime", "IFD0:ExposureTime"),
                ("Exif.Photo.ShutterSpeedValue", "ExifIFD:ShutterSpeedValue"),
                ("Exif.Image.ShutterSpeedValue", "IFD0:ShutterSpeedValue"),
                ("Xmp.exif.ExposureTime", "XMP-exif:ExposureTime"),
                ("Xmp.exif.ShutterSpeedValue", "XMP-exif:ShutterSpeedValue"),
            ],
            \.exposureTime
        ) { [0.004, 0.5, 0.02, 0.001, 2, 4][$0] },
        integers(
            "ISO",
            [
                ("Exif.Photo.ISOSpeedRatings", "ExifIFD:ISO"),
                ("Exif.Photo.RecommendedExposureIndex", "ExifIFD:RecommendedExposureIndex"),
                ("Exif.Photo.ISOSpeed", "ExifIFD:ISOSpeed"),
                ("Exif.Photo.StandardOutputSensitivity", "ExifIFD:StandardOutputSensitivity"),
                ("Exif.Image.ISOSpeedRatings", "IFD0:ISO"),
                ("Xmp.exifEX.PhotographicSensitivity", "XMP-exifEX:PhotographicSensitivity"),
                ("Xmp.exif.ISOSpeedRatings", "XMP-exif:ISO"),
            ],
            \.iso
        ),
        numbers(
            "focal length",
            [
                ("Exif.Photo.FocalLength", "ExifIFD:FocalLength"), ("Exif.Image.FocalLength", "IFD0:FocalLength"),
                ("Xmp.exif.FocalLength", "XMP-exif:FocalLength"),
            ],
            \.focalLength
        ) { [4.25, 50, 18][$0] },
        integers(
            "focal length in 35 mm",
            [
                ("Exif.Photo.FocalLengthIn35mmFilm", "ExifIFD:FocalLengthIn35mmFormat"),
                ("Xmp.exif.FocalLengthIn35mmFilm", "XMP-exif:FocalLengthIn35mmFormat"),
            ],
            \.focalLengthIn35mm
        ),
        SearchedFact(
            name: "flash",
            tags: [
                ("Exif.Photo.Flash", "ExifIFD:Flash"), ("Exif.Image.Flash", "IFD0:Flash"),
                ("Xmp.exif.Flash/exif:Fired", "XMP-exif:FlashFired"),
            ],
            read: { $0.flash?.rawValue },
            value: { [("25", "fired"), ("16", "notFired"), ("True", "fired")][$0] }
        ),
        numbers(
            "direction",
            [
                ("Exif.GPSInfo.GPSImgDirection", "GPS:GPSImgDirection"),
                ("Xmp.exif.GPSImgDirection", "XMP-exif:GPSImgDirection"),
            ],
            \.imageDirection
        ) { [123.5, 270][$0] },
        text(
            "title",
            [
                ("Xmp.dc.title", "XMP-dc:Title"), ("Iptc.Application2.ObjectName", "IPTC:ObjectName"),
                ("Exif.Image.XPTitle", "IFD0:XPTitle"),
            ],
            \.title
        ),
        text(
            "headline",
            [
                ("Xmp.photoshop.Headline", "XMP-photoshop:Headline"), ("Iptc.Application2.Headline", "IPTC:Headline"),
            ],
            \.headline
        ),
        text(
            "copyright",
            [
                ("Xmp.dc.rights", "XMP-dc:Rights"), ("Iptc.Application2.Copyright", "IPTC:CopyrightNotice"),
                ("Exif.Image.Copyright", "IFD0:Copyright"),
            ],
            \.copyright
        ),
        text(
            "creator",
            [
                ("Xmp.dc.creator", "XMP-dc:Creator"), ("Iptc.Application2.Byline", "IPTC:By-line"),
                ("Exif.Image.Artist", "IFD0:Artist"), ("Exif.Image.XPAuthor", "IFD0:XPAuthor"),
                ("Xmp.tiff.Artist", "XMP-tiff:Artist"),
            ],
            \.creator
        ),
        text(
            "credit",
            [("Xmp.photoshop.Credit", "XMP-photoshop:Credit"), ("Iptc.Application2.Credit", "IPTC:Credit")],
            \.credit
        ),
        text(
            "city",
            [
                ("Xmp.photoshop.City", "XMP-photoshop:City"), ("Iptc.Application2.City", "IPTC:City"),
                ("Xmp.iptcExt.LocationCreated[1]/Iptc4xmpExt:City", "XMP-iptcExt:LocationCreatedCity"),
            ],
            \.city
        ),
        text(
            "state",
            [
                ("Xmp.photoshop.State", "XMP-photoshop:State"),
                ("Iptc.Application2.ProvinceState", "IPTC:Province-State"),
                (
                    "Xmp.iptcExt.LocationCreated[1]/Iptc4xmpExt:ProvinceState",
                    "XMP-iptcExt:LocationCreatedProvinceState"
                ),
            ],
            \.state
        ),
        text(
            "country",
            [
                ("Xmp.photoshop.Country", "XMP-photoshop:Country"),
                ("Iptc.Application2.CountryName", "IPTC:Country-PrimaryLocationName"),
                ("Xmp.iptcExt.LocationCreated[1]/Iptc4xmpExt:CountryName", "XMP-iptcExt:LocationCreatedCountryName"),
            ],
            \.country
        ),
        text("label", [("Xmp.xmp.Label", "XMP-xmp:Label")], \.label),
        text(
            "software",
            [
                ("Exif.Image.Software", "IFD0:Software"), ("Xmp.xmp.CreatorTool", "XMP-xmp:CreatorTool"),
                ("Xmp.tiff.Software", "XMP-tiff:Software"), ("Iptc.Application2.Program", "IPTC:OriginatingProgram"),
            ],
            \.software
        ),
    ]

    /// Returns the fact that the table requires for a report of exiftool, in the form of `read`.
    func expected(_ report: JSON) -> String? {
        for (field, tag) in tags {
            guard let value = report[tag], let text = Self.text(value) else { continue }
            if isText { return text }
            if name == "flash" {
                let isFired = value.intValue.map { $0 & 1 != 0 } ?? (text.lowercased() == "true")
                return isFired ? "fired" : "notFired"
            }
            guard let number = Double(text), number != 0, number != 65_535 else { continue }
            // The logarithm 0, which exiftool reports as 1, means that the value is unknown.
            if number == 1, field.hasSuffix("ApertureValue") || field.hasSuffix("ShutterSpeedValue") { continue }
            if field.hasSuffix("ApertureValue") { return Self.number((number * 100).rounded() / 100) }
            if field.hasSuffix("ShutterSpeedValue") {
                return Self.number(number < 0.3 ? 1 / (1 / number).rounded() : (number * 10).rounded() / 10)
            }
            return Self.number(number)
        }
        return nil
    }

    private var isText: Bool { value(0).written.hasPrefix(name) }

    private static func text(_ value: JSON) -> String? {
        let text =
            value.arrayValue.map { list in list.map { $0.stringValue ?? $0.text }.joined(separator: "; ") }
            ?? value.stringValue ?? value.text
        let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return trimmed.isEmpty ? nil : trimmed
    }
}

/// Tests of facts that people search by, from each field alone, from contradictory fields and from real files.
@Suite(.timeLimit(.minutes(3)))
struct SearchedFactsTests {
    @Test func `each fact is read from each of its fields, and from the first in the table if it has several`() throws {
        var lists: [[String]] = []
        var expected: [(SearchedFact, String, String)] = []
        for fact in SearchedFact.all {
            let documented = try #require(MetadataFields.table.first { $0.fact == fact.name }).fields
            #expect(documented.filter { !$0.hasPrefix(MetadataFields.quickTime) } == fact.tags.map(\.field))
            func settings(_ indexes: [Int]) -> [String] {
                indexes.map { "-\(fact.tags[$0].tag)\(fact.name == "flash" ? "#" : "")=\(fact.value($0).written)" }
            }
            for index in fact.tags.indices {
                lists.append(settings([index]))
                expected.append((fact, fact.tags[index].tag, fact.value(index).read))
                guard index + 1 < fact.tags.count else { continue }
                lists.append(settings(Array(index..<fact.tags.count)))
                expected.append((fact, "\(fact.tags[index].tag) and others", fact.value(index).read))
            }
        }
        #expect(lists.count >= 60)
        var read = 0
        for (file, (fact, name, value)) in zip(try ExifToolFile.files(lists), expected) {
            let metadata = try MetadataReader.facts(of: file).metadata ?? AssetMetadata()
            #expect(fact.read(metadata) == value, "\(fact.name) of \(name)")
            if fact.read(metadata) == value { read += 1 }
        }
        TestPaths.report("\(read) of \(lists.count) files written by exiftool are read as the table requires")
    }

    @Test func `the facts of every photograph equal those that exiftool reports`() throws {
        let (folder, exiftool) = (try Needed.photographs(), try Needed.program("exiftool"))
        let text = try ExifTool.run(exiftool, ["-json", "-n", "-r", "-G1", folder.path])
        var reports: [String: JSON] = [:]
        for entry in try JSON(parsing: text).arrayValue ?? [] {
            reports[entry["SourceFile"]?.stringValue ?? ""] = entry
        }
        var counts: [String: Int] = [:]
        let files = SharedPhotos.files(["jpg", "jpeg", "tif", "tiff", "heic", "heif"])
        for file in files {
            let report = try #require(reports[file.path])
            let metadata = try MetadataReader.facts(of: SharedPhotos.bytes(file)).metadata ?? AssetMetadata()
            for fact in SearchedFact.all {
                let (ours, theirs) = (fact.read(metadata), fact.expected(report))
                // Exiftool writes texts like "1.00" as numbers.
                let isSame = ours == theirs || ours.flatMap(Double.init) ?? .nan == theirs.flatMap(Double.init)
                #expect(isSame, "\(fact.name) of \(SharedPhotos.name(file)): \(ours ?? "nil"), \(theirs ?? "nil")")
                if ours != nil { counts[fact.name, default: 0] += 1 }
            }
        }
        let summary = counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        TestPaths.report("\(files.count) photographs agree with exiftool: \(summary)")
        #expect(counts["aperture", default: 0] > 30)
    }

    @Test func `lists and several authors are read completely`() throws {
        let metadata = try #require(
            try ExifToolFile.facts([
                "-XMP-lr:HierarchicalSubject=Places|Europe|Alps", "-XMP-lr:HierarchicalSubject=Sea, sun",
                "-XMP-digiKam:TagsList=Places/Europe/Alps", "-XMP-digiKam:TagsList=People/Ada",
                "-XMP-microsoft:LastKeywordXMP=Work/Plans", "-XMP-dc:Creator=Ada", "-XMP-dc:Creator=Lovelace, B",
            ]).metadata
        )
        #expect(
            metadata.hierarchicalKeywords == ["Places|Europe|Alps", "Sea, sun", "People|Ada", "Work|Plans"]
        )
        #expect(metadata.creator == "Ada; Lovelace, B")
        let long = try ExifToolFile.facts(["-XMP-dc:Title=\(String(repeating: "é", count: 700))"]).metadata
        #expect(long?.title?.utf8.count == AssetMetadata.maxTextBytes)
        for empty in ["-ExifIFD:FNumber=0", "-ExifIFD:FocalLength=0", "-ExifIFD:ISO=0", "-IFD0:Artist=  "] {
            #expect(try ExifToolFile.facts([empty, "-IFD0:Make=A"]).metadata == nil, "\(empty)")
        }
        #expect(try ExifToolFile.facts(["-ExifIFD:ISO=65535", "-ExifIFD:ISOSpeed=102400"]).metadata?.iso == 102_400)
    }

    // MARK: Persons

    private static let region =
        "-XMP-mwg-rs:RegionInfo={AppliedToDimensions={W=16,H=8,Unit=pixel},RegionList=["
        + "{Name=Ada,Type=Face,Area={X=0.5,Y=0.25,W=0.2,H=0.1,Unit=normalized}},"
        + "{Name=Dog,Type=Pet,Area={X=0.5,Y=0.5,W=0.2,H=0.1,Unit=normalized}},"
        + "{Type=Face,Area={X=0.1,Y=0.5,W=0.2,H=0.1,Unit=normalized}}]}"

    @Test func `persons are read with the areas of their faces`() throws {
        let persons = try ExifToolFile.facts([
            Self.region,
            "-XMP-MP:RegionInfoMP={Regions=[{PersonDisplayName=Bob,Rectangle=0.1|, 0.2|, 0.3|, 0.4},"
                + "{PersonDisplayName=Ada,Rectangle=0|, 0|, 1|, 1}]}",
            "-XMP-iptcExt:PersonInImage=Cy, the elder", "-XMP-iptcExt:PersonInImage=Ada",
        ]).metadata?.persons
        #expect(
            persons == [
                Person(name: "Ada", area: UnitRect(x: 0.4, y: 0.2, width: 0.2, height: 0.1)),
                Person(name: "Bob", area: UnitRect(x: 0.1, y: 0.2, width: 0.3, height: 0.4)),
                Person(name: "Cy, the elder"),
            ]
        )
    }

    @Test func `areas of faces refer to the displayed image`() throws {
        let rotated = try ExifToolFile.facts([Self.region, "-IFD0:Orientation#=6"]).metadata?.persons.first?.area
        #expect(rotated == UnitRect(x: 0.7, y: 0.4, width: 0.1, height: 0.2))
        // The dimensions of this region are those of the displayed image.
        let displayed = try ExifToolFile.facts([
            Self.region.replacing("W=16,H=8", with: "W=8,H=16"), "-IFD0:Orientation#=6",
        ]).metadata?.persons.first?.area
        #expect(displayed == UnitRect(x: 0.4, y: 0.2, width: 0.2, height: 0.1))
        let corner = UnitRect(x: 0, y: 0, width: 0.25, height: 0.5)
        let expected: [Int: [Double]] = [
            1: [0, 0, 0.25, 0.5], 2: [0.75, 0, 0.25, 0.5], 3: [0.75, 0.5, 0.25, 0.5], 4: [0, 0.5, 0.25, 0.5],
            5: [0, 0, 0.5, 0.25], 6: [0.5, 0, 0.5, 0.25], 7: [0.5, 0.75, 0.5, 0.25], 8: [0, 0.75, 0.5, 0.25],
        ]
        for (orientation, numbers) in expected {
            let area = PersonReader.displayed(corner, orientation)
            #expect(area.map { [$0.x, $0.y, $0.width, $0.height] } == numbers, "orientation \(orientation)")
        }
        #expect(PersonReader.displayed(UnitRect(x: 1.2, y: 0, width: 0.1, height: 0.1), 1) == nil)
    }

    // MARK: Other files

    @Test func `the facts are also read from a video's keys and from a sidecar`() throws {
        let video = TestVideos.video(values: [
            ("title", "Waves"), ("author", "Ada"), ("copyright", "© Ada"), ("software", "17.4"),
            ("direction.facing", "123.5"),
        ])
        let facts = try MetadataReader.video(size: video.count) { Array(video.dropFirst($0).prefix($1)) }
        let metadata = try #require(facts?.metadata)
        #expect((metadata.title, metadata.creator, metadata.copyright) == ("Waves", "Ada", "© Ada"))
        #expect((metadata.software, metadata.imageDirection) == ("17.4", 123.5))
        #expect(try PhotoMetadata(json: try #require(facts).json) == facts)
        let packet = """
            <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
            <rdf:Description rdf:about="" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"
            xmlns:exif="http://ns.adobe.com/exif/1.0/" photoshop:City="Oslo" exif:FNumber="28/10"/>
            </rdf:RDF></x:xmpmeta>
            """
        let sidecar = try SidecarMetadata(xmp: Array(packet.utf8))
        #expect((sidecar.metadata?.city, sidecar.metadata?.aperture) == ("Oslo", 2.8))
        #expect(try SidecarMetadata(json: sidecar.json) == sidecar)
    }

    @Test func `a render keeps every fact of each standard`() throws {
        var lists: [[String]] = []
        for fact in SearchedFact.all {
            for (index, tag) in fact.tags.enumerated() {
                lists.append(["-\(tag.tag)\(fact.name == "flash" ? "#" : "")=\(fact.value(index).written)"])
            }
        }
        lists.append(["-IPTC:Caption-Abstract=Waves", "-IPTC:Keywords=sea", "-IPTC:Keywords=sun, wind"])
        lists.append(["-XMP-digiKam:TagsList=Places/Europe", "-XMP-iptcExt:PersonInImage=Bob", Self.region])
        let render = TestImages.jpeg(width: 40, height: 20)
        for (tags, file) in zip(lists, try ExifToolFile.files(lists)) {
            let result = try MetadataWriter.transfer(from: file, to: render, width: 40, height: 20)
            let (before, after) = (try MetadataReader.facts(of: file), try MetadataReader.facts(of: result))
            var expected = before.metadata
            for index in (expected?.persons ?? []).indices { expected?.persons[index].area = nil }
            #expect(Self.rounded(after.metadata) == Self.rounded(expected), "\(tags)")
            #expect(after.caption == before.caption && after.keywords == before.keywords, "\(tags)")
        }
    }

    /// Returns metadata with rounded numbers, because fractions have limited digits.
    private static func rounded(_ metadata: AssetMetadata?) -> AssetMetadata? {
        var metadata = metadata
        for path in [\AssetMetadata.aperture, \.exposureTime, \.focalLength, \.imageDirection] {
            let value = metadata?[keyPath: path]
            metadata?[keyPath: path] = (value ?? nil).map { ($0 * 1e6).rounded() / 1e6 }
        }
        return metadata
    }
}
