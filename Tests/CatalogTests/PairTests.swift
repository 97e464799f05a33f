import Messaging
import Basics
import Contracts
import Foundation
import JSONValue
import PhotoModel
import SamplePhotos
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of assets that consist of several files, and of sidecars.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct PairTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("pairs") }

    private static func create(
        _ resources: [(ResourceType, Bytes)],
        sidecar: Bytes? = nil,
        names: [String] = []
    ) -> ([ChangeRequest], [Bytes]) {
        let new = resources.enumerated().map { index, resource in
            NewResource(
                type: resource.0,
                source: .attachment(index),
                originalFilename: names.indices.contains(index) ? names[index] : nil
            )
        }
        let sidecarResource = sidecar.map { _ in NewResource(source: .attachment(resources.count)) }
        let request = ChangeRequest.createAsset(.init(ref: "a", resources: new, sidecar: sidecarResource))
        return ([request], resources.map(\.1) + (sidecar.map { [$0] } ?? []))
    }

    private static func importFiles(
        _ catalog: CatalogFixture,
        _ resources: [(ResourceType, Bytes)],
        sidecar: Bytes? = nil,
        names: [String] = []
    ) async throws -> (id: ObjectID, isKnown: Bool) {
        let (requests, attachments) = create(resources, sidecar: sidecar, names: names)
        let result = try await catalog.perform(requests, attachments: attachments)
        return (try #require(result.id("a")), result.duplicates.contains("a"))
    }

    /// Returns the first bytes of a RAW file without its image; the other bytes depend on the seed.
    private static func raw(_ seed: UInt8 = 0) -> Bytes {
        Array("FUJIFILMCCD-RAW 0201FF383501".utf8) + [UInt8](repeating: seed, count: 100)
    }

    @Test(.spec("T-19", "T-30"))
    func `a photo and its RAW file are one asset with two resources`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let names = ["DSCF1.JPG", "DSCF1.RAF"]
            let (id, _) = try await Self.importFiles(
                catalog,
                [(.photo, image(1)), (.alternatePhoto, Self.raw())],
                names: names
            )
            let asset = try await catalog.asset(id)
            #expect(asset.resources.map(\.type) == [.photo, .alternatePhoto])
            #expect(asset.resources.map(\.contentType) == ["public.jpeg", "com.fuji.raw-image"])
            #expect(asset.resources.map(\.originalFilename) == names)
            #expect((asset.contentType, asset.mediaType, asset.playbackStyle) == ("public.jpeg", .image, .image))
            let read = try await catalog.client.call(
                ReadResource.method,
                ReadResource(asset: id, type: .alternatePhoto).json
            )
            #expect(read.attachments == [Self.raw()])

            let data = AdjustmentData(formatIdentifier: "org.example", formatVersion: "1", attachment: 1)
            let edit = ChangeRequest.EditAsset(
                id: id,
                render: NewResource(source: .attachment(0)),
                adjustmentData: data
            )
            try await catalog.perform([.editAsset(edit)], attachments: [image(9), Array("any".utf8)])
            let types = try await catalog.asset(id).resources.map(\.type)
            #expect(types == [.photo, .alternatePhoto, .fullSizePhoto, .adjustmentData])
        }
    }

    @Test(.spec("T-26", "T-39"))
    func `the cloud identifier of a pair is that of its compressed file, whichever original is presented`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let file = TestRaw.dng(width: 64, height: 48)
            let (id, _) = try await Self.importFiles(catalog, [(.photo, image(1)), (.alternatePhoto, file)])
            let asset = try await catalog.asset(id)
            let originals = try [ResourceType.photo, .alternatePhoto].map { try #require(asset.resource($0)) }
            let (photo, raw) = (
                "safelight:original:\(originals[0].digest)", "safelight:original:\(originals[1].digest)"
            )
            let (fetches, grants, viewer) = (catalog.service.handler.fetches, catalog.service.grants, "uid:4242")
            _ = try await grants.limit(LimitGrant(identity: viewer, assets: [id]), by: "test")
            let view = try grants.view(onBehalfOf: viewer)
            let request = IDsToLocal(cloudIDs: [photo, raw])
            for base in [OriginalChoice.raw, .compressed] {
                try await catalog.perform([.revertAsset(.init(id: id, base: base))])
                #expect(try await catalog.asset(id).originalResourceChoice == base)
                let mappings = try await catalog.call(IDsToCloud(ids: [id])).mappings
                #expect(mappings[id.text] == CloudMappings.found(photo))
                // A program may have the identifier of the RAW file, from a version that returned it.
                for found in [try await catalog.call(request), try await fetches.toLocal(request, view: view)] {
                    #expect(found.mappings[photo] == CloudMappings.found(id.text), "\(base)")
                    #expect(found.mappings[raw] == CloudMappings.found(id.text), "\(base)")
                }
            }

            // The RAW file is now an asset of its own too, which it identifies.
            let (lone, isKnown) = try await Self.importFiles(catalog, [(.photo, file)])
            #expect(!isKnown && lone != id)
            #expect(try await catalog.call(IDsToCloud(ids: [lone])).mappings[lone.text] == CloudMappings.found(raw))
            _ = try await grants.limit(LimitGrant(identity: viewer, assets: [id, lone]), by: "test")
            for found in [try await catalog.call(request), try await fetches.toLocal(request, view: view)] {
                #expect(found.mappings[photo] == CloudMappings.found(id.text))
                #expect(found.mappings[raw] == CloudMappings.found(lone.text))
            }
        }
    }

    @Test(.spec("T-21", "P-23"))
    func `a moved file that an existing asset cannot be given is not removed`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let (id, _) = try await Self.importFiles(catalog, [(.photo, image(1)), (.alternatePhoto, Self.raw())])
            let photo = try folder.write(image(1), to: "in/p.jpg")
            let raw = try folder.write(Self.raw(1), to: "in/p.raf")
            let resources = [
                NewResource(source: .path(photo), isMoved: true),
                NewResource(type: .alternatePhoto, source: .path(raw), isMoved: true),
            ]
            let reply = try await catalog.perform([.createAsset(.init(ref: "a", resources: resources))])
            #expect(reply.id("a") == id && reply.ignored.map(\.members) == [["resources"]])
            #expect(!FileManager.default.fileExists(atPath: photo), "the asset has these bytes")
            #expect(FileManager.default.fileExists(atPath: raw), "no asset has these bytes")
        }
    }

    @Test(.spec("T-19"))
    func `files of different times, and videos that are not part of a Live Photo, are refused`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let first = image(1, date: "2024:06:01 12:30:00")
            let second = image(2, date: "2024:06:01 12:30:02")
            let live = TestImages.appleImage(note: TestImages.appleNote(content: "ONE"))
            let video = TestVideos.video(duration: 2000, values: [("content.identifier", "TWO")])
            let wrong: [[(ResourceType, Bytes)]] = [
                [(.photo, first), (.alternatePhoto, second)],
                [(.photo, live), (.pairedVideo, video)],
                [(.photo, first), (.pairedVideo, TestVideos.video(duration: 6001))],
                [(.photo, first), (.pairedVideo, second)],
                [(.photo, first), (.alternatePhoto, video)],
                [(.video, video), (.alternatePhoto, second)],
            ]
            for resources in wrong {
                let error = await rpcError { try await Self.importFiles(catalog, resources) }
                #expect(error?.errorCode == .resourcesDisagree, "\(resources.map(\.0)): \(String(describing: error))")
                #expect(error?.data["request"]?.intValue == 0)
            }
            let assets = try await catalog.assets()
            #expect(assets.isEmpty)
        }
    }

    @Test func `a photo and its RAW file are one shot by their times in UTC, or else by their local times`() {
        let (noon, hour): (Int64, Int64) = (1_717_245_000_000_000, 3_600_000_000)
        func facts(_ date: Int64, _ change: (inout ExtractedMetadata) -> Void = { _ in }) -> ExtractedMetadata {
            var facts = ExtractedMetadata()
            facts.creationDate = date
            change(&facts)
            return facts
        }
        let clock = facts(noon)
        let own = facts(noon - 2 * hour) { $0.creationOffset = 7200 }
        let utc = facts(noon - 2 * hour) { $0.creationOffset = 0 }
        let west = facts(noon - hour) { $0.creationOffset = 3600 }
        let instant = facts(noon - 2 * hour) { $0.isInstant = true }
        let changed = facts(noon + 50 * hour) { $0.isModificationDate = true }
        let placed = facts(noon - 2 * hour) {
            $0.creationOffset = 7200
            $0.isOffsetDerived = true
        }
        let cases: [(photo: ExtractedMetadata, raw: ExtractedMetadata, isPair: Bool)] = [
            (own, clock, true), (clock, own, true), (placed, clock, true), (clock, placed, true), (own, placed, true),
            (own, utc, true), (own, instant, true), (clock, instant, true), (changed, clock, true),
            (own, changed, true),
            (own, west, false), (utc, clock, false), (placed, utc, false), (clock, facts(noon + 2_000_000), false),
        ]
        for (index, pair) in cases.enumerated() {
            var resources = [
                PreparedResource(type: .photo, digest: "1", size: 1, facts: pair.photo),
                PreparedResource(type: .alternatePhoto, digest: "2", size: 1, facts: pair.raw),
            ]
            let isPair = (try? ResourceRules.resolve(&resources)) != nil
            #expect(isPair == pair.isPair, "pair \(index)")
        }
    }

    @Test
    func `a Live Photo is recognized by its identifier at any length, or by its name if it is short`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let still = TestImages.appleImage(note: TestImages.appleNote(content: "ONE"))
            let video = TestVideos.video(duration: 9000, values: [("content.identifier", "ONE")])
            let (named, _) = try await Self.importFiles(catalog, [(.photo, still), (.pairedVideo, video)])
            let short = TestVideos.video(duration: 2900, padding: 65)
            let (paired, _) = try await Self.importFiles(catalog, [(.photo, image(2)), (.pairedVideo, short)])
            for id in [named, paired] {
                let asset = try await catalog.asset(id)
                #expect(asset.resources.map(\.type) == [.photo, .pairedVideo])
                #expect(asset.playbackStyle == .livePhoto && asset.mediaSubtypes.contains(.photoLive))
                #expect(asset.mediaType == .image && asset.duration == 0)
            }
        }
    }

    @Test(.spec("S-78"))
    func `a video has size and duration, even if it was sent as a photo`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let video = TestVideos.video(width: 1920, height: 1080, duration: 61_500, created: 1_700_000_000)
            let (id, _) = try await Self.importFiles(catalog, [(.photo, video)])
            let asset = try await catalog.asset(id)
            #expect((asset.mediaType, asset.playbackStyle) == (.video, .video))
            #expect((asset.pixelWidth, asset.pixelHeight, asset.duration) == (1920, 1080, 61_500_000))
            #expect(asset.creationDate == 1_700_000_000_000_000)
            #expect(asset.resources.map(\.type) == [.video])
            #expect(try await Self.importFiles(catalog, [(.video, video)]) == (id, true))
        }
    }

    @Test func `an existing asset gets the RAW file that it lacks, once`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let (id, _) = try await Self.importFiles(catalog, [(.photo, image(1))])
            let pair: [(ResourceType, Bytes)] = [(.photo, image(1)), (.alternatePhoto, Self.raw())]
            #expect(try await Self.importFiles(catalog, pair) == (id, true))
            let revision = try await catalog.asset(id).revision
            #expect(try await catalog.asset(id).resources.map(\.type) == [.photo, .alternatePhoto])
            #expect(try await Self.importFiles(catalog, pair) == (id, true))
            #expect(try await catalog.asset(id).revision == revision)
            #expect(try await catalog.assets().count == 1)
        }
    }

    @Test(.spec("S-37", "P-21"))
    func `frames with one burst identifier are a burst with one representative`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            var ids: [ObjectID] = []
            for seed in 1...3 {
                let note = TestImages.appleNote(burst: "B-1")
                let frame = TestImages.appleImage(note: note, date: "2024:06:01 12:30:0\(seed)", seed: UInt64(seed))
                ids.append(try await Self.importFiles(catalog, [(.photo, frame)]).id)
            }
            var fetch = FetchDescription(.assets)
            fetch.includeAllBurstAssets = true
            let frames = try await catalog.assets(fetch)
            #expect(Set(frames.map(\.id)) == Set(ids))
            #expect(frames.allSatisfy { $0.burstIdentifier == "B-1" })
            #expect(frames.filter(\.representsBurst).map(\.id) == [ids[0]])
            #expect(try await catalog.assets().map(\.id) == [ids[0]])
        }
    }

    private static func sidecar(_ attributes: String, inside: String = "") -> Bytes {
        Array(
            """
            <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
            <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:exif="http://ns.adobe.com/exif/1.0/"
            xmlns:dc="http://purl.org/dc/elements/1.1/" \(attributes)>\(inside)</rdf:Description></rdf:RDF></x:xmpmeta>
            """.utf8
        )
    }

    @Test func `a sidecar overrides the photo's metadata, except for the date`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let words = "<dc:subject><rdf:Bag><rdf:li>sea</rdf:li></rdf:Bag></dc:subject>"
            let text = #"xmp:Rating="3" exif:DateTimeOriginal="2001-01-01T00:00:00Z""#
            let sidecar = Self.sidecar(text, inside: words)
            let dated = image(1, date: "2024:06:01 12:30:00")
            let (first, _) = try await Self.importFiles(catalog, [(.photo, dated)], sidecar: sidecar)
            let asset = try await catalog.asset(first)
            #expect((asset.rating, asset.keywords) == (3, ["sea"]))
            #expect(asset.creationDate == 1_717_245_000_000_000)
            let (second, _) = try await Self.importFiles(catalog, [(.photo, image(2))], sidecar: sidecar)
            #expect(try await catalog.asset(second).creationDate == 978_307_200_000_000)
        }
    }

    @Test func `a sidecar that was exported with a photo replaces all of its metadata`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let photo = TestImages.jpeg(date: "2024:06:01 12:30:00", latitude: 52.5, longitude: 13.4, seed: 7)
            let own = """
                xmlns:safelight="urn:org.safelight:edits#" safelight:digest="0" safelight:original="DIGEST" \
                xmp:Rating="1" exif:DateTimeOriginal="2001-01-01T00:00:00+01:00"
                """
            func asset(_ photo: Bytes, original: Bytes) async throws -> Asset {
                let text = own.replacing("DIGEST", with: ResourceDigest(of: original).text)
                let (id, _) = try await Self.importFiles(catalog, [(.photo, photo)], sidecar: Self.sidecar(text))
                return try await catalog.asset(id)
            }
            let exported = try await asset(photo, original: photo)
            #expect((exported.creationDate, exported.creationOffset, exported.rating) == (978_303_600_000_000, 3600, 1))
            #expect(exported.location == nil)
            let changed = try await asset(photo + [0], original: photo)
            #expect(changed.creationDate == 1_717_237_800_000_000 && changed.location != nil)
        }
    }

    @Test func `a photo without metadata has the metadata of its RAW file`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let plain = TestImages.jpeg(width: 64, height: 48, orientation: 1, exif: nil, seed: 3)
            let raw = TestRaw.dng(width: 64, height: 48)
            let (id, _) = try await Self.importFiles(
                catalog,
                [(.photo, plain), (.alternatePhoto, raw)],
                names: ["a.jpg", "a.dng"]
            )
            let asset = try await catalog.asset(id)
            #expect((asset.cameraMake, asset.cameraModel) == ("Safelight", "Test"))
            #expect(asset.contentType == "public.jpeg")
        }
    }

    @Test func `a date in a sidecar replaces the time of the file's last change`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            var exif = ExifBlock()
            exif.main = [.ascii(0x0132, "2024:06:01 12:30:00")]
            let photo = TestImages.jpeg(width: 16, height: 8, orientation: 0, exif: exif)
            let (first, _) = try await Self.importFiles(catalog, [(.photo, photo)])
            #expect(try await catalog.asset(first).creationDate == 1_717_245_000_000_000)
            let other = TestImages.jpeg(width: 24, height: 8, orientation: 0, exif: exif)
            let text = String(decoding: Self.sidecar(#"exif:DateTimeOriginal="2001-01-01T00:00:00Z""#), as: UTF8.self)
            // The sidecar is encoded in UTF-16.
            let sidecar = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
            let (second, _) = try await Self.importFiles(catalog, [(.photo, other)], sidecar: [0xFF, 0xFE] + sidecar)
            let asset = try await catalog.asset(second)
            #expect((asset.creationDate, asset.creationOffset) == (978_307_200_000_000, 0))
        }
    }

    @Test func `an unreadable sidecar is refused, and its path must be below the import roots`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let error = await rpcError {
                try await Self.importFiles(catalog, [(.photo, image(1))], sidecar: Array("no XMP".utf8))
            }
            #expect(error?.name == "invalid_resource" && error?.data["sidecar"] == true)
            let request = ChangeRequest.createAsset(
                .init(
                    resources: [NewResource(source: .attachment(0))],
                    sidecar: NewResource(source: .path("/proc/self/environ"))
                )
            )
            let refused = await rpcError { try await catalog.perform([request], attachments: [image(1)]) }
            #expect(refused != nil)
        }
    }
}
