import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Metadata from a file through the services: printed, found, in the render of an edit, and in a sidecar and back.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct MetadataPathTests {
    private static let tags = [
        "-ExifIFD:FNumber=2.8", "-ExifIFD:ExposureTime=1/250", "-ExifIFD:ISO=400", "-ExifIFD:FocalLength=50",
        "-ExifIFD:FocalLengthIn35mmFormat=75", "-ExifIFD:Flash#=25", "-GPS:GPSImgDirection=123.5",
        "-XMP-dc:Title=Waves & \"wind\"", "-IPTC:Headline=Storm", "-IPTC:CopyrightNotice=(c) Ada",
        "-XMP-dc:Creator=Ada",
        "-XMP-dc:Creator=Bob", "-IPTC:Credit=Agency", "-IPTC:City=Oslo", "-XMP-photoshop:State=Oslo county",
        "-XMP-photoshop:Country=Norway", "-XMP-xmp:Label=Red", "-IFD0:Software=Camera 1.0",
        "-XMP-lr:HierarchicalSubject=Places|Europe|Oslo", "-XMP-digiKam:TagsList=Sea/Storm",
        "-XMP-mwg-rs:RegionInfo={AppliedToDimensions={W=320,H=200,Unit=pixel},RegionList=["
            + "{Name=Ada,Type=Face,Area={X=0.5,Y=0.25,W=0.2,H=0.1,Unit=normalized}}]}",
        "-XMP-iptcExt:PersonInImage=Cy",
    ]

    @Test(.spec("S-03", "S-20", "P-28"))
    func `metadata are printed and found, and kept in renders and sidecars`() async throws {
        let exiftool = try Needed.program("exiftool")
        let services = try SafelightFixture("metadata", environment: ["TZ": "UTC"])
        let photo = try services.folder.write(TestImages.jpeg(width: 320, height: 200, seed: 1), to: "in/one.jpg")
        let tagged = try RunningProgram.run(exiftool, ["-q", "-m", "-overwrite_original"] + Self.tags + [photo])
        try #require(tagged.status == 0, "\(tagged.errors)")
        try services.start([.catalog, .editor])
        #expect(try services.safelight(["import", services.folder.file("in")]).status == 0)

        let predicate = "ANY persons == 'Cy' AND aperture == 2.8 AND city ==[c] 'oslo' AND flash == 'fired'"
        let matches = try services.safelight(["fetch", "--ids", "--where", predicate])
        let id = matches.output.trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(!id.isEmpty && matches.status == 0, "\(matches.errors)")
        let shown = try services.safelight(["show", id]).output
        for line in [
            "f/2.8, 1/250 s, ISO 400, 50 mm (75 mm in 35 mm format), flash fired", "123.5°", "Waves & \"wind\"",
            "Storm",
            "(c) Ada", "Ada; Bob", "Agency", "Oslo, Oslo county, Norway", "Red", "Camera 1.0",
            "Places|Europe|Oslo, Sea|Storm", "Ada, Cy",
        ] {
            #expect(shown.contains(line), "\(line) in \(shown)")
        }

        let library = try services.library()
        let asset = try await library.asset(try #require(ObjectID(id)))
        let metadata = try #require(asset.metadata)
        let area = UnitRect(x: 0.4, y: 0.2, width: 0.2, height: 0.1)
        #expect(metadata.persons == [Person(name: "Ada", area: area), Person(name: "Cy")])

        // A sidecar beside an image without metadata gives it all of them.
        let out = services.folder.file("out")
        let exported = try services.safelight(["export", id, "--output", out, "--sidecar"])
        #expect(exported.status == 0, "\(exported.errors)")
        let names = try FileManager.default.contentsOfDirectory(atPath: out)
        let sidecar = try #require(names.first { $0.hasSuffix(".xmp") })
        let packet = try Data(contentsOf: URL(filePath: out).appending(path: sidecar))
        try services.folder.write(TestImages.jpeg(width: 320, height: 200, seed: 2), to: "again/two.jpg")
        try services.folder.write([UInt8](packet), to: "again/two.jpg.xmp")
        #expect(try services.safelight(["import", services.folder.file("again")]).status == 0)
        var fetch = FetchDescription(.assets)
        fetch.predicate = "originalFilename == 'two.jpg'"
        let second = try #require(try await library.assets(fetch).assets.first)
        #expect(second.metadata == metadata)
        #expect(second.lensModel == nil && second.keywords == asset.keywords)

        // The render of an edit has them under exiftool's names too; faces may have been cut off.
        let list = AdjustmentList(operations: [.exposure(0.5)])
        #expect(try await library.editor.ask(ApplyEdit(asset: asset.id, adjustments: list)).result.isChanged)
        let render = try await library.resource(asset: asset.id, type: .fullSizePhoto).readAll(limit: 1 << 20)
        let file = try services.folder.write(render, to: "render.jpg")
        let report = try RunningProgram.run(exiftool, ["-json", "-n", "-G1", file])
        let tags = try #require(try JSON(parsing: Array(report.output.utf8)).arrayValue?.first)
        #expect(tags["ExifIFD:FNumber"]?.doubleValue == 2.8 && tags["ExifIFD:ISO"]?.intValue == 400)
        #expect(tags["XMP-photoshop:Headline"] == "Storm" && tags["XMP-photoshop:City"] == "Oslo")
        #expect(tags["XMP-dc:Rights"] == "(c) Ada" && tags["XMP-photoshop:Credit"] == "Agency")
        #expect(tags["XMP-lr:HierarchicalSubject"] == ["Places|Europe|Oslo", "Sea|Storm"])
        #expect(tags["XMP-iptcExt:PersonInImage"] == ["Ada", "Cy"])
        #expect(tags["XMP-mwg-rs:RegionName"] == nil)
        #expect(try await library.asset(asset.id).metadata == metadata, "an edit changes no metadata")
        await library.close()
        #expect(services.stop() == [])
    }
}
