import Basics
import Contracts
import Foundation
import GRDB
import ImageFormats
import JSONValue
import PhotoClient
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

@testable import Catalog

/// Tests of searchable metadata, from the file to the fetch, and of files of earlier versions that are read again.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct MetadataTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("metadata") }

    private static func photo(_ seed: UInt64, aperture: Int, city: String? = nil, modified: String? = nil) -> Bytes {
        var exif = ExifBlock()
        exif.main = [.ascii(0x0110, "Camera")] + (modified.map { [.ascii(0x0132, $0)] } ?? [])
        exif.photo = [
            .rationals(0x829A, [(1, 250)]), .rationals(0x829D, [(aperture, 10)]), .short(0x8827, 400),
            .rationals(0x920A, [(50, 1)]), .short(0xA405, 75), .short(0x9209, 25),
        ]
        let xmp = city.map { [TestImages.xmpSegment("photoshop:City=\"\($0)\"")] } ?? []
        return TestImages.jpeg(width: 32, height: 24, orientation: 1, exif: exif, segments: xmp, seed: seed)
    }

    private func ids(_ catalog: CatalogFixture, _ predicate: String, sort: String? = nil) async throws -> [ObjectID] {
        var fetch = FetchDescription(.assets)
        fetch.predicate = .string(predicate)
        fetch.sort = sort.map { [SortDescription(key: $0)] } ?? []
        return try await catalog.assets(fetch).map(\.id)
    }

    @Test(.spec("S-03", "S-20", "S-21"))
    func `the metadata of a file is stored, searchable, sortable, and part of the record`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let photos = [
                Self.photo(1, aperture: 28, city: "Zürich"), Self.photo(2, aperture: 14), image(3),
            ]
            let importedIDs = try await catalog.importImages(photos)
            let metadata = try #require(try await catalog.asset(importedIDs[0]).metadata)
            #expect((metadata.aperture, metadata.exposureTime, metadata.iso) == (2.8, 0.004, 400))
            #expect((metadata.focalLength, metadata.focalLengthIn35mm, metadata.flash) == (50, 75, .fired))
            #expect(metadata.city == "Zürich")
            #expect(try await catalog.asset(importedIDs[2]).metadata == nil)
            #expect(try await ids(catalog, "aperture <= 2") == [importedIDs[1]])
            #expect(
                try await ids(catalog, "metadata.exposureTime == 0.004 AND flash == 'fired'") == [
                    importedIDs[0], importedIDs[1],
                ]
            )
            #expect(try await ids(catalog, "city ==[cd] 'zurich'") == [importedIDs[0]])
            #expect(try await ids(catalog, "city == nil") == [importedIDs[1], importedIDs[2]])
            #expect(
                try await ids(catalog, "TRUEPREDICATE", sort: "aperture") == [
                    importedIDs[1], importedIDs[0], importedIDs[2],
                ]
            )
            let record = try #require(try await catalog.history().last)
            #expect(record.assets.contains { $0.after?.metadata == metadata })
            // A change of another property does not change the metadata.
            try await catalog.perform([.updateAsset(.init(id: .id(importedIDs[0]), set: AssetPatch(isFavorite: true)))])
            #expect(try await catalog.asset(importedIDs[0]).metadata == metadata)
            try await catalog.perform([.deleteAssets(.init(ids: [importedIDs[0]]))])
            #expect(try await ids(catalog, "city != nil") == [])
        }
    }

    @Test(.spec("S-03"))
    func `a date that is only a modification date, or whose time zone was derived, is marked until it is set`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let located = TestImages.jpeg(
                width: 32,
                height: 24,
                date: "2024:06:01 12:30:00",
                latitude: 52.5,
                longitude: 13.4,
                seed: 2
            )
            let importedIDs = try await catalog.importImages([
                Self.photo(1, aperture: 28, modified: "2020:01:02 03:04:05"), located,
            ])
            let (modified, derived) = (try await catalog.asset(importedIDs[0]), try await catalog.asset(importedIDs[1]))
            #expect(modified.creationDate != nil && modified.hasOnlyModificationDate)
            #expect(!modified.isCreationOffsetDerived)
            #expect(derived.creationOffset == 7200 && derived.isCreationOffsetDerived)
            #expect(!derived.hasOnlyModificationDate)
            #expect(try await ids(catalog, "hasOnlyModificationDate == TRUE") == [importedIDs[0]])
            #expect(try await ids(catalog, "isCreationOffsetDerived == TRUE") == [importedIDs[1]])
            try await catalog.perform([
                .updateAsset(.init(id: .id(importedIDs[0]), set: AssetPatch(creationDate: .some(7)))),
                .updateAsset(.init(id: .id(importedIDs[1]), set: AssetPatch(creationOffset: .some(3600)))),
            ])
            #expect(try await catalog.asset(importedIDs[0]).hasOnlyModificationDate == false)
            #expect(try await catalog.asset(importedIDs[1]).isCreationOffsetDerived == false)
        }
    }

    // MARK: Libraries of earlier versions

    /// Changes a library back to the schema before metadata.
    private static func downgrade(_ library: String) throws {
        let queue = try DatabaseQueue(path: library + "/library.sqlite")
        try queue.write { database in
            try database.execute(
                sql: """
                    DROP TABLE metadata;
                    ALTER TABLE asset DROP COLUMN marks;
                    UPDATE asset SET camera_model = NULL, camera_model_folded = NULL;
                    DELETE FROM counter WHERE name LIKE 'reread.%';
                    DROP TABLE image_digest;
                    DELETE FROM grdb_migrations WHERE identifier LIKE '% metadata' OR identifier LIKE '% image digests';
                    """
            )
        }
        try queue.close()
    }

    /// Waits until the files of earlier versions were read; returns the metrics.
    private static func waitUntilRead(_ catalog: CatalogFixture) async throws -> JSONObject {
        while true {
            let metrics = catalog.service.rereader.metrics
            if metrics["files"]?.intValue ?? 0 > 0, metrics["files"] == metrics["done"] { return metrics }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    @Test(.onlySQLite, .spec("T-47"))
    func `motion photos of an earlier version get their video as a resource`() async throws {
        let video = TestVideos.video(brand: "mp42", duration: 2000)
        let photo = TestMotionPhotos.jpeg(.container, video: video)
        var id = ObjectID.none
        try await CatalogFixture.with(folder) { catalog in id = try await catalog.importImages([photo.bytes])[0] }
        let queue = try DatabaseQueue(path: folder.file("library/library.sqlite"))
        try await queue.write { database in
            try database.execute(
                sql: """
                    DELETE FROM resource WHERE type = 9;
                    UPDATE asset SET media_subtypes = 0, playback_style = 1;
                    ALTER TABLE resource DROP COLUMN file_offset;
                    DELETE FROM counter WHERE name LIKE 'reread.%';
                    DELETE FROM grdb_migrations WHERE identifier = '12 parts of files';
                    """
            )
        }
        try queue.close()
        try await CatalogFixture.with(folder) { catalog in
            _ = try await Self.waitUntilRead(catalog)
            let asset = try await catalog.asset(id)
            #expect(asset.playbackStyle == .livePhoto && asset.mediaSubtypes.contains(.photoLive))
            let part = try #require(asset.resource(.pairedVideo))
            #expect((part.offset, part.size) == (Int64(photo.range.lowerBound), Int64(video.count)))
            #expect(part.digest == asset.resource(.photo)?.digest && part.duration == 2_000_000)
        }
    }

    @Test(.onlySQLite, .spec("S-33", "T-45"))
    func `of the photos of an earlier version only those with a gain map are marked`() async throws {
        let metadata = try #require(
            GainMapMetadata(channels: [.init(maximum: 2)], baseHeadroom: 0, alternateHeadroom: 2)
        )
        let (image, map) = (TestImages.jpeg(width: 64, height: 48), TestImages.jpeg(width: 16, height: 12))
        let photo = try #require(GainMapJPEG.file(image: image, map: map, metadata))
        var ids: [ObjectID] = []
        try await CatalogFixture.with(folder) { catalog in
            ids = try await catalog.importImages([photo, image])
            #expect(try await catalog.asset(ids[0]).mediaSubtypes == .photoHDR)
        }
        let queue = try DatabaseQueue(path: folder.file("library/library.sqlite"))
        try await queue.write { database in
            try database.execute(
                sql: """
                    UPDATE asset SET media_subtypes = 0;
                    DELETE FROM counter WHERE name LIKE 'reread.%';
                    DELETE FROM grdb_migrations WHERE identifier = '19 gain maps';
                    """
            )
        }
        try queue.close()
        try await CatalogFixture.with(folder) { catalog in
            _ = try await Self.waitUntilRead(catalog)
            #expect(try await catalog.asset(ids[0]).mediaSubtypes == .photoHDR)
            #expect(try await catalog.asset(ids[1]).mediaSubtypes == [])
        }
    }

    @Test(.onlySQLite)
    func `the metadata of a sidecar is kept when a file without metadata is read again`() async throws {
        var id = ObjectID.none
        try await CatalogFixture.with(folder) { catalog in
            let (photo, sidecar) = (NewResource(source: .attachment(0)), NewResource(source: .attachment(1)))
            let packet = Array(TestImages.xmpPacket("photoshop:City=\"Oslo\"").utf8)
            let create = ChangeRequest.createAsset(.init(ref: "a", resources: [photo], sidecar: sidecar))
            id = try #require(try await catalog.perform([create], attachments: [image(1), packet]).id("a"))
            #expect(try await catalog.asset(id).metadata?.city == "Oslo")
        }
        let queue = try DatabaseQueue(path: folder.file("library/library.sqlite"))
        try await queue.write { database in
            try database.execute(
                sql: """
                    DELETE FROM counter WHERE name LIKE 'reread.%';
                    DELETE FROM grdb_migrations WHERE identifier = '19 gain maps';
                    """
            )
        }
        try queue.close()
        try await CatalogFixture.with(folder) { catalog in
            _ = try await Self.waitUntilRead(catalog)
            #expect(try await catalog.asset(id).metadata?.city == "Oslo")
        }
    }

    @Test(.onlySQLite)
    func `files of an earlier version are read again, and values that clients have set are kept`() async throws {
        var importedIDs: [ObjectID] = []
        var before: [Asset] = []
        try await CatalogFixture.with(folder) { catalog in
            importedIDs = try await catalog.importImages([
                Self.photo(1, aperture: 28, modified: "2020:01:02 03:04:05"),
                Self.photo(1, aperture: 14, modified: "2020:01:02 03:04:05"), image(3),
                Self.photo(4, aperture: 56),
            ])
            let set = AssetPatch(creationDate: .some(7), caption: .some("Mine"), rating: 4, keywords: ["own"])
            try await catalog.perform([.updateAsset(.init(id: .id(importedIDs[1]), set: set))])
            for id in importedIDs { before.append(try await catalog.asset(id)) }
        }
        try Self.downgrade(folder.file("library"))
        // A missing file is skipped.
        let missing = try #require(before[3].originalResource).digest
        try FileManager.default.removeItem(
            atPath: folder.file("library/resources/\(missing.prefix(2))/\(missing.dropFirst(2).prefix(2))/\(missing)")
        )
        try await CatalogFixture.with(folder) { catalog in
            let metrics = try await Self.waitUntilRead(catalog)
            #expect(metrics["files"] == 4 && metrics["unreadable"] == 1)
            for (id, old) in zip(importedIDs, before).dropLast() {
                let asset = try await catalog.asset(id)
                var expected = old
                expected.revision = asset.revision
                #expect(asset == expected, "the asset is the same as if it were imported now")
            }
            #expect(try await catalog.asset(importedIDs[1]).metadata?.aperture == 1.4)
            #expect(try await catalog.asset(importedIDs[0]).hasOnlyModificationDate)
            // The first two have the same image.
            #expect(try await catalog.call(FetchDuplicates()).groups.map(\.assets) == [Array(importedIDs.prefix(2))])
            let again = try await catalog.history().filter { $0.origin.identity == "examiner" }
            #expect(again.map { $0.assets.map(\.id) } == [Array(importedIDs.prefix(3))], "one transaction")
            // Newly imported files are not read again.
            _ = try await catalog.importImages([Self.photo(9, aperture: 20)])
            #expect(catalog.service.rereader.metrics["files"] == 4)
        }
        // The next start has no files left to read.
        try await CatalogFixture.with(folder) { catalog in
            _ = try await Self.waitUntilRead(catalog)
            #expect(try await catalog.history().filter { $0.origin.identity == "examiner" }.count == 1)
        }
    }

    /// Waits for the next records after a token.
    private static func records(_ count: Int, after token: ChangeToken, of library: PhotoLibrary) async throws
        -> [ChangeRecord]
    {
        var records: [ChangeRecord] = []
        for try await event in library.catalog.stream(ChangesFollow(token: token), credit: 1 << 20) {
            guard case .notification(_, let params, _) = event else { break }
            records += try (params["records"]?.arrayValue ?? []).map { try ChangeRecord(json: $0) }
            if records.count >= count { break }
        }
        return records
    }

    @Test(.onlySQLite) func `reading again continues after a kill, keeps its rate, and changes each asset once`()
        async throws
    {
        let count = MetadataRereader.batch * 3
        // The first start pauses for 25 seconds after each batch, so that it is killed in its first pause.
        let services = try SafelightFixture("reread", environment: ["SAFELIGHT_REREAD_RATE": "1"])
        try services.start([.catalog])
        var library = try services.library()
        for start in stride(from: 0, to: count, by: MetadataRereader.batch) {
            let photos = (start..<start + MetadataRereader.batch).map { Self.photo(UInt64($0), aperture: 28) }
            let requests = photos.indices.map { index in
                ChangeRequest.createAsset(.init(ref: "p\(index)", resources: [NewResource(source: .attachment(index))]))
            }
            _ = try await library.perform(requests, attachments: photos)
        }
        let imported = try await library.currentToken().token
        await library.close()
        #expect(services.stop() == [])
        try Self.downgrade(services.folder.file("library"))

        try services.start([.catalog])
        library = try services.library()
        #expect(try await Self.records(1, after: imported, of: library)[0].assets.count == MetadataRereader.batch)
        let status = try services.safelight(["status", "catalog"]).output
        #expect(status.contains("of \(count) files of earlier versions read again"), "\(status)")
        #expect(try await library.currentToken().token.sequence == imported.sequence + 1, "reading keeps its rate")
        services.killHard(.catalog)
        var environment = services.environment
        environment["SAFELIGHT_REREAD_RATE"] = "10000"
        let program = try RunningProgram("catalog", ["--ready-fd", "1"], environment: environment)
        #expect(program.waitForOutput("ready"), "\(program.errorText)")
        let records = try await Self.records(3, after: imported, of: library)
        let changed = records.flatMap { $0.assets.map(\.id) }
        #expect(changed.count == count && Set(changed).count == count)
        #expect(records.allSatisfy { $0.origin.identity == "examiner" && $0.assets.count <= MetadataRereader.batch })
        var fetch = FetchDescription(.assets)
        fetch.predicate = "aperture == 2.8"
        #expect(try await library.assets(fetch, count: 1).count == count)
        await library.close()
        let doctor = try services.safelight(["doctor"]).output
        #expect(doctor.contains("files of earlier versions were read again"), "\(doctor)")
        program.signal(SIGTERM)
        #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
    }
}
