import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import ImageFormats
import TestSupport
import Testing

/// The metadata of an edited file, as exiftool reads it, and the original, which stays byte for byte as imported.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct EditedFileTests {
    /// Metadata that an edit does not change, under exiftool's tag names without groups.
    private static let unchangedTags = [
        "DateTimeOriginal", "CreateDate", "OffsetTimeOriginal", "SubSecTimeOriginal", "GPSLatitude", "GPSLatitudeRef",
        "GPSLongitude", "GPSLongitudeRef", "GPSAltitude", "GPSAltitudeRef", "GPSDateStamp", "GPSTimeStamp", "Make",
        "Model",
        "LensModel", "ExposureTime", "FNumber", "ISO", "FocalLength",
    ]
    /// Tags of embedded previews that would still show the unedited photo.
    private static let stale = [
        "ThumbnailImage", "PreviewImage", "JpgFromRaw", "MPImage2", "PhotoshopThumbnail", "OtherImage",
    ]

    /// Returns some real photos of each maker and a generated one with all metadata, as JPEG and, if supported, JPEG
    /// XL.
    private static func images() throws -> [(name: String, bytes: [UInt8])] {
        let generated = TestImages.jpeg(
            width: 320,
            height: 200,
            orientation: 6,
            date: "2024:06:01 12:30:00",
            offset: "+02:00",
            subsec: "123",
            latitude: -33.75,
            longitude: 151.25
        )
        let files = SharedPhotos.files(["jpg", "jpeg"]).filter {
            (20_000...4_000_000).contains(SharedPhotos.bytes($0).count)
        }
        if files.isEmpty { try Needed.reportMissingPart("photographs: edited real files") }
        let selected = stride(from: 0, to: files.count, by: max(1, files.count / 15)).map { files[$0] }
        let exif = try #require(try ImageHeader.read(generated).exif)
        let newer = try TestJXL.boxed(generated, fileExtension: "jpg", exif: Array(generated[exif]))
            .map { ("generated.jxl", $0) }
        return [("generated", generated)] + [newer].compactMap { $0 }
            + selected.map { (SharedPhotos.name($0), SharedPhotos.bytes($0)) }
    }

    private static func tags(_ exiftool: String, _ files: [String], _ group: String) throws -> [JSON] {
        let run = try RunningProgram.run(exiftool, ["-json", "-n", group] + files)
        return try #require(try JSON(parsing: Array(run.output.utf8)).arrayValue)
    }

    @Test(.spec("S-85", "S-89"))
    func `an edited file keeps date, location and camera, has its own size, and contains no preview of the original`()
        async throws
    {
        let exiftool = try Needed.program("exiftool")
        let services = try SafelightFixture("files")
        try services.start([.catalog, .editor])
        let library = try services.library()
        let list = AdjustmentList(operations: [
            .crop(UnitRect(x: 0.1, y: 0.2, width: 0.5, height: 0.6)), .rotate(.quarter), .exposure(0.3),
        ])
        var (before, after, assets): ([String], [String], [Asset]) = ([], [], [])
        for (index, image) in try Self.images().enumerated() {
            let result = try await library.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
                attachments: [image.bytes]
            )
            let id = try #require(result.id("a"))
            let original = try await library.asset(id)
            _ = try await library.editor.ask(ApplyEdit(asset: id, adjustments: list), deadline: .seconds(60))
            let asset = try await library.asset(id)
            let render = try await library.resource(asset: id, type: .fullSizePhoto).readAll(limit: 64 << 20)
            let downloaded = try await library.resource(asset: id).readAll(limit: 64 << 20)
            #expect(downloaded == image.bytes, "\(image.name): the original is the imported file")
            // A crop, then a rotation by 90 degrees.
            let (across, down) = (Double(original.pixelHeight) * 0.6, Double(original.pixelWidth) * 0.5)
            #expect(abs(Double(asset.pixelWidth) - across) <= 1 && abs(Double(asset.pixelHeight) - down) <= 1)
            #expect(asset.creationDate == original.creationDate && asset.location == original.location)
            assets.append(asset)
            before.append(try services.folder.write(image.bytes, to: "before/\(index).jpg"))
            after.append(try services.folder.write(render, to: "after/\(index).jpg"))
        }
        // Maker notes repeat values with other rounding; only EXIF is compared.
        let (tagsBefore, tagsAfter) = (
            try Self.tags(exiftool, before, "-EXIF:all"), try Self.tags(exiftool, after, "-EXIF:all")
        )
        let allTags = try Self.tags(exiftool, after, "-all")
        #expect(tagsBefore.count == before.count && allTags.count == after.count)
        var compared = 0
        for (index, asset) in assets.enumerated() {
            let (old, new) = (tagsBefore[index], allTags[index])
            let name = "\(index) \(asset.cameraMake ?? "")"
            for tag in Self.unchangedTags where old[tag] != nil {
                compared += 1
                #expect(old[tag] == tagsAfter[index][tag], "\(name): \(tag)")
            }
            for tag in Self.stale { #expect(new[tag] == nil, "\(name) holds a \(tag)") }
            #expect(new["ImageWidth"]?.intValue == Int64(asset.pixelWidth), "\(name)")
            #expect(new["ImageHeight"]?.intValue == Int64(asset.pixelHeight), "\(name)")
            #expect((new["Orientation"]?.intValue ?? 1) == 1, "\(name) is upright")
            for (tag, size) in [("ExifImageWidth", asset.pixelWidth), ("ExifImageHeight", asset.pixelHeight)] {
                if let value = new[tag]?.intValue { #expect(value == Int64(size), "\(name): \(tag)") }
            }
        }
        #expect(compared >= 6)
        TestPaths.report("\(compared) metadata values of \(assets.count) photos are equal before and after an edit")
        await library.close()
        #expect(services.stop() == [])
    }
}
