import Messaging
import Contracts
import Foundation
import JSONValue
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

@testable import Catalog

/// Tests of the specification about assets: their properties, and the fetches that include them.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct AssetRowTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("rows") }

    private func fetch(_ change: (inout FetchDescription) -> Void) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        change(&fetch)
        return fetch
    }

    @Test(.spec("S-01", "T-35", "P-22"))
    func `identifiers survive a restart, and the identifier of a deleted asset is never reused`() async throws {
        var ids: [ObjectID] = []
        var token = ChangeToken.none
        try await CatalogFixture.with(folder) { catalog in
            ids = try await catalog.importImages((1...3).map { image($0) })
            try await catalog.perform([.deleteAssets(.init(ids: [ids[1]]))])
            token = try await catalog.call(CurrentToken()).token
        }
        try await CatalogFixture.with(folder) { catalog in
            #expect(try await catalog.assets().map(\.id) == [ids[0], ids[2]])
            #expect(try await catalog.call(CurrentToken()).token == token)
            // Importing the same bytes again creates another asset.
            let again = try await catalog.importImages([image(2)])
            var newIDs = Set(again)
            for batch in 0..<2 {
                let requests = (0..<500).map { number in
                    ChangeRequest.createCollection(.init(ref: "c\(number)", title: "\(batch) \(number)"))
                }
                let result = try await catalog.perform(requests)
                for number in 0..<500 { newIDs.insert(try #require(result.id("c\(number)"))) }
            }
            #expect(newIDs.count == 1001 && newIDs.isDisjoint(with: ids))
            #expect(again[0].kind == .asset && again[0] > ids[2])
        }
    }

    @Test(.spec("S-02", "P-33", "S-25"))
    func `an entity in memory keeps its values, and a new fetch returns the current ones`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let original = try await catalog.call(FetchAssets(fetch: FetchDescription(ids: [id])))
            try await catalog.perform([.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: true)))])
            let fresh = try await catalog.asset(id)
            #expect(fresh.isFavorite && fresh.revision != original.assets[0].revision)
            let again = try await catalog.call(FetchAssets(fetch: FetchDescription(ids: [id]), token: original.token))
            #expect(again.assets == original.assets && !again.assets[0].isFavorite)
        }
    }

    @Test(.spec("S-03", "S-76"), arguments: [1, 6])
    func `a photo without a date has none until one is set, and its size is the upright size`(
        _ orientation: Int
    ) async throws {
        try await CatalogFixture.with(folder) { catalog in
            let bytes = TestImages.jpeg(width: 60, height: 80, orientation: orientation, seed: 5)
            let id = try await catalog.importImages([bytes])[0]
            let asset = try await catalog.asset(id)
            #expect(asset.creationDate == nil && asset.location == nil && asset.moment == nil)
            #expect((asset.pixelWidth, asset.pixelHeight, asset.duration) == (60, 80, 0))
            #expect(asset.mediaType == .image && asset.contentType == "public.jpeg" && asset.addedDate > 0)
            // Each property is set by a request; null clears it.
            let location = Location(latitude: 1, longitude: 2)
            let all = AssetPatch(isFavorite: true, isHidden: true, creationDate: .some(7), location: .some(location))
            try await catalog.perform([.updateAsset(.init(id: .id(id), set: all))])
            let set = try await catalog.asset(id)
            #expect(set.isFavorite && set.isHidden && set.creationDate == 7 && set.location == location)
            let none = AssetPatch(isFavorite: false, isHidden: false, creationDate: .some(nil), location: .some(nil))
            try await catalog.perform([.updateAsset(.init(id: .id(id), set: none))])
            let cleared = try await catalog.asset(id)
            #expect(!cleared.isFavorite && !cleared.isHidden && cleared.creationDate == nil && cleared.location == nil)
            let unknown: JSON = ["type": "asset.update", "id": .string(id.text), "set": ["pixelWidth": 3]]
            let error = await rpcError {
                try await catalog.client.call(PerformChanges.method, ["requests": [unknown]])
            }
            #expect(error?.name == "invalid_params" && error?.message.contains("pixelWidth") == true)
        }
    }

    @Test(.spec("S-15", "T-07", "S-76"))
    func `shared and synced assets are fetched on request only, and synced assets cannot be changed`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let sources: [SourceType] = [.typeUserLibrary, .typeCloudShared, .typeiTunesSynced]
            let requests = sources.indices.map { index in
                ChangeRequest.createAsset(
                    .init(
                        ref: "p\(index)",
                        resources: [NewResource(source: .attachment(index))],
                        sourceType: sources[index]
                    )
                )
            }
            let result = try await catalog.perform(requests, attachments: (1...3).map { image($0) })
            let ids = try (0..<3).map { try #require(result.id("p\($0)")) }
            #expect(try await catalog.assets().map(\.id) == [ids[0]])
            for mask in 1...7 {
                let shown = try await catalog.assets(fetch { $0.sourceTypes = SourceTypes(rawValue: mask) }).map(\.id)
                #expect(shown == ids.indices.filter { mask & (1 << $0) != 0 }.map { ids[$0] }, "mask \(mask)")
            }
            #expect(try await catalog.assets(fetch { $0.mediaType = .image }).map(\.id) == [ids[0]])
            #expect(try await catalog.assets(fetch { $0.mediaType = .video }).isEmpty)
            let rate = AssetPatch(rating: 1)
            let error = await rpcError { try await catalog.perform([.updateAsset(.init(id: .id(ids[2]), set: rate))]) }
            #expect(error?.name == "change_not_supported")
        }
    }

    @Test(.spec("S-17", "T-06", "D8", "P-21"))
    func `a burst shows its representative and its picks, and all frames when fetched by its identifier`() async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let note = TestImages.appleNote(burst: "B-1")
            let frames = (0..<10).map { number in
                TestImages.appleImage(note: note, date: "2024:05:01 10:00:0\(number)", seed: UInt64(number + 1))
            }
            let ids = try await catalog.importImages(frames)
            #expect(try await catalog.assets().map(\.id) == [ids[0]])
            let found = try await catalog.assets(fetch { $0.burstIdentifier = "B-1" })
            #expect(
                found.map(\.id) == ids && found.map(\.representsBurst) == [true] + Array(repeating: false, count: 9)
            )
            try await catalog.perform([.updateAsset(.init(id: .id(ids[4]), set: AssetPatch(isUserPick: true)))])
            #expect(try await catalog.assets().map(\.id) == [ids[0], ids[4]])
            #expect(try await catalog.assets(fetch { $0.includeAllBurstAssets = true }).count == 10)
            #expect(try await catalog.assets(fetch { $0.burstIdentifier = "nobody" }).isEmpty)
            try await catalog.perform([.trashAssets(.init(ids: [ids[0], ids[9]]))])
            #expect(try await catalog.assets(fetch { $0.inTrash = true }).map(\.id) == [ids[0], ids[9]])
        }
    }

    @Test(.spec("S-33", "T-08", "S-08", "S-34"))
    func `media types and subtypes follow from the file, and the matching smart album contains the asset`() async throws
    {
        var exif = ExifBlock()
        exif.photo.append(.short(0xA401, 3))
        let high = TestImages.jpeg(width: 32, height: 24, orientation: 1, exif: exif, seed: 1)
        let pano = TestImages.xmpSegment("GPano:ProjectionType=\"equirectangular\"")
        let wide = TestImages.jpeg(width: 32, height: 24, orientation: 1, exif: nil, segments: [pano], seed: 2)
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([
                high, wide, TestImages.gif(frames: 3), TestVideos.video(frameRate: 120),
                TestVideos.video(frameRate: 30),
            ])
            var assets: [Asset] = []
            for id in ids { assets.append(try await catalog.asset(id)) }
            #expect(
                assets.map(\.mediaSubtypes) == [.photoHDR, .photoPanorama, .photoAnimation, .videoHighFrameRate, []]
            )
            #expect(assets.map(\.playbackStyle) == [.image, .image, .imageAnimated, .video, .video])
            #expect(assets[3].duration == 2_500_000)
            let albums: [(SmartAlbum, [Int])] = [
                (.panoramas, [1]), (.animated, [2]), (.slomoVideos, [3]), (.videos, [3, 4]),
            ]
            for (album, members) in albums {
                let found = try await catalog.assets(fetch { $0.container = album.id })
                #expect(found.map(\.id) == members.map { ids[$0] }, "\(album)")
            }
            let bits = fetch { $0.predicate = "(mediaSubtypes & 2) != 0 || (mediaSubtypes & 1) != 0" }
            #expect(try await catalog.assets(bits).map(\.id) == [ids[0], ids[1]])
        }
    }

    @Test(.spec("S-28", "S-27"))
    func `thirty-two clients that page through one result see the same assets while the library changes`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...40).map { image($0) })
            let token = try await catalog.call(CurrentToken()).token
            let clients = try (0..<32).map { _ in try catalog.connect() }
            let seen = try await withThrowingTaskGroup(of: [ObjectID].self) { group in
                for client in clients {
                    group.addTask {
                        var seen: [ObjectID] = []
                        while seen.count < 40 {
                            let page = FetchAssets(
                                fetch: FetchDescription(.assets),
                                token: token,
                                from: seen.count,
                                count: 7
                            )
                            let answer = try await client.call(FetchAssets.method, page.json).result
                            let assets = try FetchAssets.Result(json: answer).assets
                            guard !assets.isEmpty else { break }
                            seen += assets.map(\.id)
                        }
                        return seen
                    }
                }
                for id in ids.prefix(20) { try await catalog.perform([.deleteAssets(.init(ids: [id]))]) }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(seen.count == 32 && seen.allSatisfy { $0 == ids })
            #expect(try await catalog.assets().map(\.id) == Array(ids.dropFirst(20)))
        }
    }

    @Test(.spec("P-16", "T-10"))
    func `sorting by added date ignores the capture date, and a favorite changes only the modification date`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let dates = ["2024:05:01 10:00:00", "2001:01:01 10:00:00", "2010:01:01 10:00:00"]
            var ids: [ObjectID] = []
            for (number, date) in dates.enumerated() {
                ids += try await catalog.importImages([image(UInt64(number), date: date)])
            }
            let newest = fetch { $0.sort = [SortDescription(key: "addedDate", ascending: false)] }
            #expect(try await catalog.assets(newest).map(\.id) == ids.reversed())
            let taken = fetch { $0.sort = [SortDescription(key: "creationDate")] }
            #expect(try await catalog.assets(taken).map(\.id) == [ids[1], ids[2], ids[0]])
            let before = try await catalog.asset(ids[0])
            try await catalog.perform([.updateAsset(.init(id: .id(ids[0]), set: AssetPatch(isFavorite: true)))])
            let after = try await catalog.asset(ids[0])
            #expect(after.modificationDate > before.modificationDate)
            #expect(after.contentModificationDate == before.contentModificationDate)
            #expect(after.addedDate == before.addedDate && after.creationDate == before.creationDate)
        }
    }

    @Test(.spec("T-11", "T-27"))
    func `rating, caption, keywords and file name are returned with each asset of a page`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let patch = AssetPatch(
                caption: .some("Über den Wolken"),
                rating: 4,
                keywords: ["alps", "snow"]
            )
            let ids = try await catalog.importImages((1...3).map { image($0) }, set: patch)
            for asset in try await catalog.assets() {
                #expect(asset.caption == "Über den Wolken" && asset.rating == 4 && asset.keywords == ["alps", "snow"])
                #expect(asset.playbackVariation == .none && asset.adjustmentDate == nil)
            }
            let found = fetch {
                $0.predicate = "ANY keywords ==[cd] 'ALPS' AND rating BETWEEN {3, 5} AND caption CONTAINS[cd] 'uber'"
            }
            #expect(try await catalog.assets(found).map(\.id) == ids)
            let edit = ChangeRequest.updateAsset(.init(id: .id(ids[0]), addKeywords: ["snow"], removeKeywords: ["no"]))
            #expect(try await catalog.perform([edit]).isChanged == false)
        }
    }
}
