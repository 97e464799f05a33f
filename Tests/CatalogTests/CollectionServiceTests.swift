import Contracts
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

@Suite(.serialized, .timeLimit(.minutes(5)))
struct CollectionServiceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("cat") }

    private func members(_ id: ObjectID, _ change: (inout FetchDescription) -> Void = { _ in }) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        fetch.container = id
        change(&fetch)
        return fetch
    }

    @Test(.spec("S-08", "S-19", "S-16", "S-35", "S-36", "S-23", "P-08"))
    func `smart albums exist from the start, and their members follow the assets`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1), image(2)])
            var fetch = FetchDescription(.collections)
            fetch.collectionType = "smartAlbum"
            let all = try await catalog.call(FetchCollections(fetch: fetch, count: 100)).collections
            #expect(Set(all.map(\.id)) == Set(SmartAlbum.allCases.map(\.id)))
            #expect(all.allSatisfy { $0.estimatedAssetCount == nil && $0.title != nil })
            fetch.collectionSubtype = nil
            fetch.collectionType = "album"
            #expect(try await catalog.call(FetchCollections(fetch: fetch)).collections.isEmpty)

            func shown(_ album: SmartAlbum) async throws -> [ObjectID] {
                try await catalog.assets(members(album.id)).map(\.id)
            }
            #expect(try await shown(.favorites).isEmpty)
            #expect(try await shown(.allHidden).isEmpty)
            #expect(try await shown(.userLibrary) == ids)
            #expect(try await shown(.recentlyAdded) == ids)
            let from = try await catalog.call(CurrentToken()).token
            try await catalog.perform([
                .updateAsset(.init(id: .id(ids[1]), set: AssetPatch(isFavorite: true))),
                .updateAsset(.init(id: .id(ids[0]), set: AssetPatch(isHidden: true))),
            ])
            #expect(try await shown(.favorites) == [ids[1]])
            #expect(try await shown(.allHidden) == [ids[0]])
            #expect(try await shown(.userLibrary) == [ids[1]])
            #expect(try await catalog.assets(members(SmartAlbum.userLibrary.id) { $0.includeHidden = true }).count == 2)
            let details = try await catalog.call(
                ChangesDetails(from: from, fetch: members(SmartAlbum.favorites.id))
            ).details
            #expect(details?.inserted.map(\.id) == [ids[1]] && details?.inserted.first?.index == 0)

            let unknownID = try #require(ObjectID("c" + String(repeating: "1", count: 26)))
            let error = await rpcError { try await catalog.assets(members(unknownID)) }
            #expect(error?.name == "identifier_not_found")
            let update = ChangeRequest.updateCollection(.init(id: .id(SmartAlbum.favorites.id), add: [.id(ids[0])]))
            let refused = await rpcError { try await catalog.perform([update]) }
            #expect(refused?.name == "change_not_supported")
        }
    }

    @Test(.spec("S-07", "S-05", "S-39", "T-04", "T-05", "P-19"))
    func `moments can be fetched, and so can the collections that contain an asset or a moment`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([
                image(1, date: "2024:05:01 10:00:00"), image(2, date: "2024:05:01 09:00:00"),
                image(3, date: "2023:01:02 10:00:00"),
            ])
            var fetch = FetchDescription(.collections)
            fetch.collectionType = "moment"
            let page = try await catalog.call(FetchCollections(fetch: fetch))
            #expect(page.collections.map(\.title) == ["2023-01-02", "2024-05-01"])
            #expect(page.collections.map(\.estimatedAssetCount) == [1, 2])
            let moment = page.collections[1]
            // Sorted by capture date, not by added date.
            #expect(try await catalog.assets(members(moment.id)).map(\.id) == [ids[1], ids[0]])

            var lists = FetchDescription(.lists)
            lists.collectionType = "momentList"
            lists.collectionSubtype = "momentListYear"
            let years = try await catalog.call(FetchLists(fetch: lists)).lists
            #expect(years.map(\.title) == ["2023", "2024"] && years.map(\.childCount) == [1, 1])
            var children = FetchDescription(.children)
            children.container = years[1].id
            #expect(try await catalog.call(FetchCollections(fetch: children)).collections.map(\.id) == [moment.id])
            #expect(try await catalog.assets(members(years[1].id)).map(\.id) == [ids[0], ids[1]])

            var containing = FetchDescription(.lists)
            containing.containing = moment.id
            #expect(
                try await catalog.call(FetchLists(fetch: containing)).lists.map(\.subtype) == [
                    .momentListCluster, .momentListYear,
                ]
            )
            let album = try #require(
                try await catalog.perform([.createCollection(.init(ref: "c", title: "A", add: [.id(ids[0])]))]).id("c")
            )
            var holders = FetchDescription(.collections)
            holders.containing = ids[0]
            let found = try await catalog.call(FetchCollections(fetch: holders)).collections.map(\.id)
            #expect(Set(found).isSuperset(of: [album, moment.id, SmartAlbum.userLibrary.id]))
            holders.collectionType = "album"
            #expect(try await catalog.call(FetchCollections(fetch: holders)).collections.map(\.id) == [album])
            containing.containing = album
            #expect(try await catalog.call(FetchLists(fetch: containing)).lists.map(\.id) == [.root])

            // The only asset of the day moves to another day, so the moment is deleted.
            try await catalog.perform([
                .updateAsset(.init(id: .id(ids[2]), set: AssetPatch(creationDate: 1_714_554_000_000_000)))
            ])
            let after = try await catalog.call(FetchCollections(fetch: fetch))
            #expect(after.collections.map(\.estimatedAssetCount) == [3])
            let earlier = try await catalog.call(FetchCollections(fetch: fetch, token: page.token))
            #expect(earlier.collections == page.collections)
            let missing = await rpcError { try await catalog.assets(members(page.collections[0].id)) }
            #expect(missing?.name == "identifier_not_found")
            let replayed = Snapshot(replaying: try await catalog.history(), root: nil)
            #expect(try await catalog.everything().normalized().collections == replayed.normalized().collections)
        }
    }

    @Test(.spec("S-18", "S-06", "P-19", "T-03"))
    func `folders are fetched with their children and with everything below`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1), image(2), image(3)])
            let result = try await catalog.perform([
                .createCollection(.init(ref: "top", title: "Top", add: [.id(ids[2])])),
                .createList(.init(ref: "f", title: "Folder")),
                .createList(.init(ref: "g", title: "Inner", parent: .placeholder("f"))),
                .createCollection(
                    .init(ref: "a", title: "A", add: [.id(ids[1]), .id(ids[0])], parent: .placeholder("f"))
                ),
                .createCollection(.init(ref: "b", title: "B", add: [.id(ids[0])], parent: .placeholder("g"))),
            ])
            func id(_ ref: String) throws -> ObjectID { try #require(result.id(ref)) }
            let top = try await catalog.call(FetchCollections(fetch: FetchDescription(.children)))
            #expect(try top.order == [id("top"), id("f")] && top.count == 2)
            #expect(try top.lists.map(\.id) == [id("f")] && top.collections.map(\.id) == [id("top")])
            var inner = FetchDescription(.children)
            inner.container = try id("f")
            #expect(try await catalog.call(FetchCollections(fetch: inner)).order == [id("g"), id("a")])
            inner.predicate = "title BEGINSWITH 'I'"
            #expect(try await catalog.call(FetchCollections(fetch: inner)).order == [id("g")])
            // Each asset is listed once, although one is in two albums.
            #expect(try await catalog.assets(members(id("f"))).map(\.id) == [ids[0], ids[1]])

            // The client moves by indexes of the list as it was before another client added an album.
            let root = try await catalog.call(FetchCollections(fetch: FetchDescription(.children)))
            try await catalog.perform([.createList(.init(title: "Other"))])
            try await catalog.perform([
                .updateList(.init(id: .id(.root), edits: [.move(from: [1], to: 0)], snapshot: root.token))
            ])
            let now = try await catalog.call(FetchCollections(fetch: FetchDescription(.children)))
            #expect(try now.order.prefix(2) == [id("f"), id("top")] && now.order.count == 3)
            let earlier = try await catalog.call(
                FetchCollections(fetch: FetchDescription(.children), token: root.token)
            )
            #expect(earlier.order == root.order)
            let diff = try await catalog.call(ChangesDetails(from: root.token, fetch: FetchDescription(.children)))
            #expect(try diff.details?.apply(to: root.order) == now.order)
            var lists = FetchDescription(.lists)
            lists.ids = [try id("g"), .root]
            #expect(try await catalog.call(FetchLists(fetch: lists)).lists.map(\.id) == [id("g"), .root])
        }
    }

    @Test(.spec("S-05", "S-20")) func `folders and smart albums have no first and last date`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1, date: "2019:05:01 10:00:00")])
            let result = try await catalog.perform([
                .createList(.init(ref: "f", title: "2019")),
                .createCollection(.init(ref: "a", title: "May", add: [.id(ids[0])], parent: .placeholder("f"))),
                .updateAsset(.init(id: .id(ids[0]), set: AssetPatch(isFavorite: true))),
            ])
            func lists(_ type: String, _ predicate: String?) async throws -> [CollectionList] {
                var fetch = FetchDescription(.lists)
                fetch.collectionType = type
                fetch.predicate = predicate.map { .string($0) }
                return try await catalog.call(FetchLists(fetch: fetch)).lists
            }
            let folders = try await lists("folder", nil)
            #expect(folders.contains { $0.id == result.id("f") })
            #expect(folders.allSatisfy { $0.startDate == nil && $0.endDate == nil })
            #expect(try await lists("folder", "startDate < '2020-01-01'").isEmpty)
            #expect(try await lists("momentList", "startDate < '2020-01-01'").count == 2, "the year and its cluster")

            var albums = FetchDescription(.collections)
            albums.collectionType = "smartAlbum"
            let smart = try await catalog.call(FetchCollections(fetch: albums, count: 100)).collections
            #expect(!smart.isEmpty && smart.allSatisfy { $0.startDate == nil && $0.endDate == nil })
            #expect(try await catalog.collections().map { $0.startDate != nil && $0.endDate != nil } == [true])
        }
    }

    @Test(.spec("T-13", "S-79", "T-28", "S-09")) func `an album is rearranged by the indexes of a result`() async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let create = (0..<3).map { number in
                ChangeRequest.createAsset(
                    .init(ref: "p\(number)", resources: [NewResource(source: .attachment(number))])
                )
            }
            let result = try await catalog.perform(
                create + [.createCollection(.init(ref: "c", title: "A", add: (0..<3).map { .placeholder("p\($0)") }))],
                attachments: (1...3).map { image($0) }
            )
            let ids = try (0..<3).map { try #require(result.id("p\($0)")) }
            let album = try #require(result.id("c"))
            #expect(try await catalog.history().count == 1)
            let seen = try await catalog.call(FetchAssets(fetch: members(album)))
            #expect(seen.assets.map(\.id) == ids)
            // A hidden member is not in the client's list and keeps its position.
            try await catalog.perform([.updateAsset(.init(id: .id(ids[1]), set: AssetPatch(isHidden: true)))])
            let shown = try await catalog.call(FetchAssets(fetch: members(album)))
            try await catalog.perform([
                .updateCollection(.init(id: .id(album), edits: [.move(from: [1], to: 0)], snapshot: shown.token))
            ])
            let all = members(album) { $0.includeHidden = true }
            #expect(try await catalog.assets(all).map(\.id) == [ids[2], ids[0], ids[1]])
            try await catalog.perform([
                .updateCollection(.init(id: .id(album), edits: [.removeAt([0])], snapshot: seen.token))
            ])
            #expect(try await catalog.assets(all).map(\.id) == [ids[2], ids[1]])
            let error = await rpcError {
                try await catalog.perform([.updateCollection(.init(id: .id(album), edits: [.removeAt([0])]))])
            }
            #expect(error?.name == "snapshot_required" && error?.data["request"] == 0)
        }
    }

    @Test func `index operations of a transaction share equal lists, and their work is limited`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1), image(2)])
            let result = try await catalog.perform([
                .createCollection(.init(ref: "c", title: "A", add: ids.map { .id($0) }))
            ])
            let album = try #require(result.id("c"))
            func requests(operations: Int) -> [ChangeRequest] {
                let edits = Array(repeating: MemberEdit.move(from: [1], to: 0), count: operations)
                let update = ChangeRequest.UpdateCollection(id: .id(album), edits: edits, snapshot: result.token)
                return Array(repeating: .updateCollection(update), count: 1000)
            }
            let fetches = catalog.service.handler.fetches
            let maximum = FetchService.maxSnapshotSteps / 2000
            let lists = try await fetches.snapshots(for: requests(operations: maximum), identity: "test")
            #expect(lists.count == 1000 && fetches.snapshotMemory.reserved == 2)
            let error = await rpcError {
                try await fetches.snapshots(for: requests(operations: maximum + 1), identity: "test")
            }
            #expect(error?.errorCode == .limitExceeded && error?.data["request"] == 999)
            withExtendedLifetime(lists) {}
        }
    }

    @Test(.spec("S-30", "S-31", "S-32")) func `transient collections are leased, and usable by their owner only`()
        async throws
    {
        let time = ManualClock(0)
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...4).map { image($0) })
            try await catalog.perform([
                .updateAsset(.init(id: .id(ids[2]), set: AssetPatch(isFavorite: true))),
                .updateAsset(.init(id: .id(ids[1]), set: AssetPatch(rating: 4))),
            ])
            var rated = FetchDescription(.assets)
            rated.predicate = "rating > 3 OR isFavorite == YES"
            let transient = try await catalog.call(
                CreateTransient(results: [
                    ResultReference(fetch: members(SmartAlbum.favorites.id)), .init(fetch: rated),
                ])
            )
            #expect(transient.count == 2 && transient.id.kind == .assetCollection)
            #expect(try await catalog.assets(members(transient.id)).map(\.id) == [ids[2], ids[1]])
            let sorted = members(transient.id) {
                $0.sort = [SortDescription(key: "rating", ascending: false)]
                $0.predicate = "isFavorite == NO"
            }
            #expect(try await catalog.assets(sorted).map(\.id) == [ids[1]])
            #expect(try await catalog.call(FetchCounts(fetches: [members(transient.id)])).counts == [2])
            for refused in [
                ChangeRequest.updateCollection(.init(id: .id(transient.id), title: "x")),
                .deleteCollections(.init(ids: [transient.id])),
            ] {
                #expect(await rpcError { try await catalog.perform([refused]) } != nil)
            }
            let album = try #require(
                try await catalog.perform([.createCollection(.init(ref: "c", title: "A"))]).id("c")
            )
            let list = try await catalog.call(CreateTransient(ids: [SmartAlbum.videos.id, album], title: "Two"))
            var children = FetchDescription(.children)
            children.container = list.id
            #expect(
                try await catalog.call(FetchCollections(fetch: children)).order == [SmartAlbum.videos.id, album]
            )
            // The assets below a list are fetched as objects and as identifiers.
            let both = try await catalog.call(CreateTransient(ids: [transient.id, SmartAlbum.favorites.id]))
            #expect(try await catalog.assets(members(both.id)).map(\.id) == [ids[1], ids[2]])
            var named = FetchAssets(fetch: members(both.id))
            named.projection = Projection(members: ["id"])
            let page = try await catalog.client.call(FetchAssets.method, named.json).result
            #expect(page["assets"]?.arrayValue?.map { $0["id"]?.stringValue } == [ids[1].text, ids[2].text])
            #expect(try !Fetch(members(both.id)).kind.isFollowable)
            let details = await rpcError {
                try await catalog.call(
                    ChangesDetails(from: catalog.call(CurrentToken()).token, fetch: members(transient.id))
                )
            }
            #expect(details?.name == "not_observable")
            _ = try await catalog.call(ReleaseTransient(id: transient.id))
            let missing = await rpcError { try await catalog.assets(members(transient.id)) }
            #expect(missing?.name == "handle_expired")
            #expect(try await catalog.call(FetchCan(ids: [list.id])).can[list.id.text] == [])
        }
        let registry = TransientCollectionRegistry(clock: time.clock, limits: .init(lease: 100, perIdentity: 2))
        let id = try registry.create(.assetCollection, [], identity: "a")
        #expect(throws: FetchError.expired(id)) { try registry.members(of: id, identity: "b") }
        time.advance(by: 60)
        _ = try registry.members(of: id, identity: "a")
        time.advance(by: 60)
        _ = try registry.members(of: id, identity: "a")
        _ = try registry.create(.assetCollection, [], identity: "a")
        #expect(throws: FetchError.self) { try registry.create(.assetCollection, [], identity: "a") }
        time.advance(by: 101)
        #expect(throws: FetchError.expired(id)) { try registry.members(of: id, identity: "a") }
        _ = try registry.create(.assetCollection, [], identity: "a")
        #expect(registry.count == 1)
    }

    @Test(.spec("S-32")) func `a transient collection of several results is refused as soon as it is too large`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...4).map { image($0) })
            let fetches = FetchService(
                store: catalog.service.store,
                quarantine: try await Quarantine(store: catalog.service.store, services: .noServices, now: { 0 }),
                cacheBytes: 1 << 20,
                transients: TransientCollectionRegistry(limits: .init(membersPerIdentity: 3))
            )
            let parts = [ids[0...1], ids[1...2], ids[2...3]].map {
                ResultReference(fetch: FetchDescription(ids: Array($0)))
            }
            let maximum = try await fetches.createTransient(
                CreateTransient(results: Array(parts.prefix(2))),
                identity: "a"
            )
            #expect(maximum.count == 3)
            await #expect(throws: FetchError.resultTooLarge(count: 4, limit: 3)) {
                try await fetches.createTransient(CreateTransient(results: parts), identity: "b")
            }
        }
    }

    @Test(.spec("S-31", "S-32"))
    func `a client with a limited view creates transient lists of the collections in it only`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([
                image(1, date: "2024:05:01 10:00:00"), image(2, date: "2024:06:01 10:00:00"),
            ])
            let album = try #require(
                try await catalog.perform([
                    .createCollection(.init(ref: "c", title: "Secret", add: ids.map { .id($0) }))
                ]).id("c")
            )
            let moments = [
                try #require(try await catalog.asset(ids[0]).moment).id,
                try #require(try await catalog.asset(ids[1]).moment).id,
            ]
            let (fetches, grants, identity) = (catalog.service.handler.fetches, catalog.service.grants, "uid:4242")
            _ = try await grants.limit(LimitGrant(identity: identity, assets: [ids[0]]), by: "test")
            let view = try grants.view(onBehalfOf: identity)
            func create(_ request: CreateTransient) async throws -> CreateTransient.Result {
                try await fetches.createTransient(request, identity: identity, view: view)
            }
            // Objects that are not in the view have neither a count nor a member.
            var named = FetchDescription(.collections)
            named.predicate = "title == 'Secret'"
            #expect(try await create(CreateTransient(results: [ResultReference(fetch: named)])).count == 0)
            var days = FetchDescription(.collections)
            days.collectionType = "moment"
            #expect(try await create(CreateTransient(results: [ResultReference(fetch: days)])).count == 1)
            for refused in [moments[1], album] {
                let error = await rpcError { try await create(CreateTransient(ids: [refused])) }
                #expect(error?.errorCode == .identifierNotFound)
            }
            let list = try await create(CreateTransient(ids: [moments[0], SmartAlbum.favorites.id]))
            var children = FetchDescription(.children)
            children.container = list.id
            let page = try await fetches.collections(FetchCollections(fetch: children), identity: identity, view: view)
            #expect(page.order == [moments[0], SmartAlbum.favorites.id] && page.count == 2)
            #expect(page.collections.first?.estimatedAssetCount == 1)
            let counts = FetchCounts(fetches: [children, members(list.id)])
            #expect(try await fetches.counts(counts, identity: identity, view: view).counts == [2, 1])
        }
    }

    @Test(.spec("T-18", "T-02", "P-32"))
    func `the allowed operations and the key assets of collections can be queried`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...5).map { image($0, date: "2024:05:01 10:00:00") })
            let album = try #require(
                try await catalog.perform([
                    .createCollection(.init(ref: "c", title: "A", add: ids.map { .id($0) })),
                    .createCollection(.init(ref: "e", title: "Empty")),
                ]).id("c")
            )
            let moment = try #require(try await catalog.asset(ids[0]).moment)
            let can = try await catalog.call(
                FetchCan(ids: [ids[0], album, SmartAlbum.favorites.id, moment.id, moment.year.id, .root])
            ).can
            #expect(can[ids[0].text] == ["delete", "content", "properties"])
            #expect(can[album.text]?.arrayValue?.count == 7 && can[moment.year.id.text] == [])
            #expect(can[SmartAlbum.favorites.id.text] == ["deleteContent"] && can[moment.id.text] == ["deleteContent"])
            #expect(can[ObjectID.root.text]?.arrayValue?.contains("rename") == false)

            let covers = try await catalog.call(FetchKeyAssets(collection: album))
            #expect(covers.assets.map(\.id) == Array(ids.prefix(3)) && covers.purpose == "cover")
            try await catalog.perform([.updateCollection(.init(id: .id(album), keyAsset: .some(ids[4])))])
            #expect(
                try await catalog.call(FetchKeyAssets(collection: album)).assets.map(\.id) == [ids[4], ids[0], ids[1]]
            )
            try await catalog.perform([.updateCollection(.init(id: .id(album), remove: [ids[4]]))])
            #expect(
                try await catalog.call(FetchKeyAssets(collection: album)).assets.map(\.id) == Array(ids.prefix(3))
            )
            let empty = try #require(try await catalog.collections().first { $0.title == "Empty" })
            #expect(try await catalog.call(FetchKeyAssets(collection: empty.id)).assets.isEmpty)
        }
    }
}
