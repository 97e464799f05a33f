import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of change details where the object of a fetch is deleted, where the result depends on other objects, and
/// between two results.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct DetailsTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("details") }

    private func fetch(_ kind: FetchDescription.Kind = .assets, in container: ObjectID) -> FetchDescription {
        var fetch = FetchDescription(kind)
        fetch.container = container
        return fetch
    }

    private func containing(_ id: ObjectID) -> FetchDescription {
        var fetch = FetchDescription(id.kind == .asset ? .collections : .lists)
        fetch.containing = id
        return fetch
    }

    private func token(_ catalog: CatalogFixture) async throws -> ChangeToken {
        try await catalog.call(CurrentToken()).token
    }

    /// Returns the result of a fetch; empty if its object does not exist.
    private func ids(
        _ fetch: FetchDescription,
        _ catalog: CatalogFixture,
        at token: ChangeToken? = nil
    ) async throws -> [ObjectID] {
        do {
            switch fetch.kind {
            case .assets:
                return try await catalog.call(FetchAssets(fetch: fetch, token: token, count: 1000)).assets.map(\.id)
            case .collections:
                return try await catalog.call(FetchCollections(fetch: fetch, token: token, count: 1000)).collections
                    .map(\.id)
            case .children:
                return try await catalog.call(FetchCollections(fetch: fetch, token: token, count: 1000)).order
            case .lists:
                return try await catalog.call(FetchLists(fetch: fetch, token: token, count: 1000)).lists.map(\.id)
            }
        } catch let error as RPCError where error.name == "identifier_not_found" {
            return []
        }
    }

    @Test(.spec("S-65", "S-66", "S-67", "D7"))
    func `details of a fetch in a deleted album, folder or moment are removals, and report the deletion`() async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...3).map { image($0, date: "2024:05:01 12:00:00") })
            let result = try await catalog.perform([
                .createList(.init(ref: "f", title: "F")),
                .createCollection(
                    .init(ref: "c", title: "A", add: ids.map { .id($0) }, parent: .placeholder("f"))
                ),
                .createCollection(.init(ref: "e", title: "Empty")),
            ])
            let (list, album) = (try #require(result.id("f")), try #require(result.id("c")))
            let empty = try #require(result.id("e"))
            let moment = try #require(try await catalog.asset(ids[0]).moment).id
            let start = try await token(catalog)
            func details(_ fetch: FetchDescription, from: ChangeToken) async throws -> ChangesDetails.Result {
                let ids = [fetch.container].compactMap { $0 }
                return try await catalog.call(ChangesDetails(from: from, fetch: fetch, ids: ids))
            }
            // Hiding the last asset of a moment deletes the moment (D7).
            try await catalog.perform(
                ids.map { .updateAsset(.init(id: .id($0), set: AssetPatch(isHidden: true))) }
            )
            let emptied = try await details(fetch(in: moment), from: start)
            #expect(emptied.details?.removed.map(\.id) == ids && emptied.objectWasDeleted)
            #expect(emptied.objects.first?.objectWasDeleted == true && emptied.objects.first?.after == nil)
            // The moment exists again with its first asset.
            let hidden = try await token(catalog)
            try await catalog.perform(
                ids.map { .updateAsset(.init(id: .id($0), set: AssetPatch(isHidden: false))) }
            )
            let again = try await details(fetch(in: moment), from: hidden)
            #expect(again.details?.inserted.map(\.id) == ids && !again.objectWasDeleted)
            #expect(again.objects.first?.objectWasDeleted == false)

            let whole = try await token(catalog)
            try await catalog.perform([.deleteLists(.init(ids: [list])), .deleteCollections(.init(ids: [empty]))])
            let deletedAlbum = try await details(fetch(in: album), from: whole)
            #expect(deletedAlbum.details?.removed.map(\.id) == ids && deletedAlbum.objectWasDeleted)
            #expect(deletedAlbum.details?.countAfter == 0 && deletedAlbum.objects.first?.objectWasDeleted == true)
            let children = try await details(fetch(.children, in: list), from: whole)
            #expect(children.details?.removed.map(\.id) == [album] && children.objectWasDeleted)
            #expect(try await details(fetch(in: list), from: whole).details?.removed.count == 3)
            // The details of an empty album have no removals.
            let nothing = try await details(fetch(in: empty), from: whole)
            #expect(nothing.details == nil && nothing.objectWasDeleted)
            // An album that existed at neither token is not found.
            let now = try await token(catalog)
            let error = await rpcError { try await details(fetch(in: album), from: now) }
            #expect(error?.name == "identifier_not_found")
        }
    }

    @Test(.spec("P-19", "S-27", "S-65", "S-67"), arguments: [1, 2])
    func `folders and containing fetches have details and earlier results, through random changes`(_ round: UInt64)
        async throws
    {
        var random = SeededRandom(named: "folder details \(round)")
        try await CatalogFixture.with(folder) { catalog in
            let assets = try await catalog.importImages((1...8).map { image($0 + 100 * round) })
            var (albums, folders): ([ObjectID], [ObjectID]) = ([], [])
            for number in 0..<5 {
                let result = try await catalog.perform([
                    .createList(
                        .init(ref: "f", title: "F\(number)", parent: number == 0 ? nil : .id(random.pick(folders)))
                    ),
                    .createCollection(
                        .init(
                            ref: "c",
                            title: "C\(number)",
                            add: assets.filter { _ in random.one(in: 2) }.map { .id($0) },
                            parent: .placeholder("f")
                        )
                    ),
                ])
                folders.append(try #require(result.id("f")))
                albums.append(try #require(result.id("c")))
            }
            var fetches = (folders + [.root]).map { fetch(in: $0) }
            fetches += (assets.prefix(3) + albums + folders).map(containing)
            fetches[0].sort = [SortDescription(key: "rating", ascending: false)]
            fetches[1].limit = 3
            var states: [(token: ChangeToken, lists: [[ObjectID]])] = []
            func remember() async throws {
                var lists: [[ObjectID]] = []
                for fetch in fetches { lists.append(try await ids(fetch, catalog)) }
                states.append((try await token(catalog), lists))
            }
            try await remember()
            let rounds = TestEnvironment.rounds(25)
            var performed = 0
            for _ in 0..<rounds {
                let request: ChangeRequest
                let (album, asset) = (ObjectReference.id(random.pick(albums)), random.pick(assets))
                switch Int.random(in: 0..<8, using: &random) {
                case 0: request = .updateCollection(.init(id: album, add: [.id(asset)]))
                case 1: request = .updateCollection(.init(id: album, remove: [asset]))
                case 2, 3:
                    let child = random.pick(albums + folders)
                    request = .updateList(.init(id: .id(random.pick(folders + [.root])), edits: [.add([.id(child)])]))
                case 4:
                    let patch = AssetPatch(isFavorite: random.one(in: 2), rating: Int.random(in: 0...5, using: &random))
                    request = .updateAsset(.init(id: .id(asset), set: patch))
                case 5: request = .updateAsset(.init(id: .id(asset), set: AssetPatch(isHidden: random.one(in: 3))))
                case 6: request = .updateList(.init(id: .id(random.pick(folders)), title: "\(states.count)"))
                default:
                    request =
                        random.one(in: 3)
                        ? .deleteCollections(.init(ids: [random.pick(albums)]))
                        : .createCollection(
                            .init(title: "new", add: [.id(random.pick(assets))], parent: .id(random.pick(folders)))
                        )
                }
                var result: PerformChanges.Result?
                let error = await rpcError { result = try await catalog.perform([request]) }
                if result != nil {
                    performed += 1
                } else {
                    // The album was deleted, or the folder would contain itself.
                    #expect(["identifier_not_found", "cycle"].contains(error?.name), "\(String(describing: error))")
                }
                try await remember()
            }
            #expect(performed > rounds / 3, "only \(performed) of \(rounds) changes were performed")
            for _ in 0..<60 {
                let (first, second) = (random.pick(states), random.pick(states))
                let (from, to) = first.token.sequence <= second.token.sequence ? (first, second) : (second, first)
                let index = Int.random(in: fetches.indices, using: &random)
                #expect(try await ids(fetches[index], catalog, at: from.token) == from.lists[index])
                let request = ChangesDetails(from: from.token, to: to.token, fetch: fetches[index])
                var answer: ChangesDetails.Result?
                let error = await rpcError { answer = try await catalog.call(request) }
                guard let answer else {
                    #expect(error?.name == "identifier_not_found")
                    #expect(from.lists[index].isEmpty && to.lists[index].isEmpty)
                    continue
                }
                #expect(try answer.details?.apply(to: from.lists[index]) ?? from.lists[index] == to.lists[index])
            }
        }
    }

    @Test(.spec("S-30", "S-67", "S-68"))
    func `details.diff compares two results, of one fetch or of two`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let assets = try await catalog.importImages((1...4).map { image($0) })
            let start = try await token(catalog)
            var rated = FetchDescription(.assets)
            rated.sort = [SortDescription(key: "rating", ascending: false), SortDescription(key: "addedDate")]
            try await catalog.perform([.updateAsset(.init(id: .id(assets[2]), set: AssetPatch(rating: 5)))])
            let end = try await token(catalog)
            let (before, after) = ([0, 1, 2, 3].map { assets[$0] }, [2, 0, 1, 3].map { assets[$0] })
            let request = DetailsDiff(
                from: ResultReference(fetch: rated, token: start),
                to: ResultReference(fetch: rated, token: end),
                form: .rice
            )
            let forward = try await catalog.call(request)
            #expect(try forward.details?.apply(to: before) == after)
            #expect(forward.details?.changed.map(\.id) == [assets[2]] && forward.rice?.changedIndexes == [2])
            #expect(forward.from == start && forward.to == end)
            // In the other direction, and with changed objects that the caller names.
            var backward = DetailsDiff(from: request.to, to: request.from)
            #expect(try await catalog.call(backward).details?.apply(to: after) == before)
            backward.changedIds = [assets[0]]
            #expect(try await catalog.call(backward).details?.changed.map(\.id) == [assets[0]])
            backward.wantsIncrementalChangeDetails = false
            #expect(try await catalog.call(backward).details?.hasIncrementalChanges == false)
            let same = DetailsDiff(from: request.to, to: ResultReference(fetch: rated))
            #expect(try await catalog.call(same).details == nil)

            // Two results of a filtered transient collection (S-30), and results of two transient collections.
            let transient = try await catalog.call(CreateTransient(ids: assets, title: "Held"))
            var good = fetch(in: transient.id)
            good.predicate = "rating >= 3"
            let filtered = DetailsDiff(
                from: ResultReference(fetch: good, token: start),
                to: ResultReference(fetch: good, token: end)
            )
            #expect(try await catalog.call(filtered).details?.inserted.map(\.id) == [assets[2]])
            let other = try await catalog.call(CreateTransient(ids: [assets[3], assets[0]], title: "Other"))
            let two = DetailsDiff(
                from: ResultReference(fetch: fetch(in: transient.id)),
                to: ResultReference(fetch: fetch(in: other.id))
            )
            #expect(try await catalog.call(two).details?.apply(to: assets) == [assets[3], assets[0]])
            // The assets below a transient list that contains the first collection (S-31).
            let list = try await catalog.call(CreateTransient(ids: [transient.id]))
            let below = DetailsDiff(from: ResultReference(fetch: fetch(in: list.id)), to: two.to)
            #expect(try await catalog.call(below).details?.apply(to: assets) == [assets[3], assets[0]])
            var mixed = two
            mixed.to = ResultReference(fetch: FetchDescription(.collections))
            #expect(await rpcError { try await catalog.call(mixed) }?.name == "invalid_options")
        }
    }

    /// Returns the keys of a result, all in one array of bytes, and the end of the response.
    private func keys(
        _ request: FetchKeys,
        _ catalog: CatalogFixture
    ) async throws -> (bytes: Bytes, end: FetchKeys.Result) {
        var bytes: Bytes = []
        var end: FetchKeys.Result?
        let stream = catalog.client.stream(
            FetchKeys.method,
            request.json,
            deadline: .seconds(30),
            credit: 1 << 20
        )
        for try await element in stream {
            switch element {
            case .notification(_, _, let chunks): bytes += chunks.joined()
            case .reply(let reply): end = try FetchKeys.Result(json: reply.result)
            }
        }
        return (bytes, try #require(end))
    }

    @Test(.spec("S-27", "P-19"))
    func `the keys at an earlier token are those that were read at that time`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let assets = try await catalog.importImages((1...6).map { image($0) })
            let result = try await catalog.perform([
                .createList(.init(ref: "f", title: "Folder")),
                .createCollection(
                    .init(ref: "c", title: "Album", add: assets.reversed().map { .id($0) }, parent: .placeholder("f"))
                ),
            ])
            let (folder, album) = (try #require(result.id("f")), try #require(result.id("c")))
            var fetches = [fetch(in: folder), fetch(in: album), FetchDescription(.assets)]
            for key in ["rating", "caption"] {
                var sorted = fetch(in: folder)
                sorted.sort = [SortDescription(key: key, ascending: false)]
                fetches.append(sorted)
            }
            let earlier = try await token(catalog)
            var before: [Bytes] = []
            for fetch in fetches {
                before.append(try await keys(FetchKeys(fetch: fetch, maxCount: 100), catalog).bytes)
            }
            // The first asset is changed, one in the middle is deleted, the last leaves the album; another is added.
            try await catalog.perform([
                .updateAsset(.init(id: .id(assets[0]), set: AssetPatch(caption: "a", rating: 5))),
                .deleteAssets(.init(ids: [assets[3]])),
                .updateCollection(.init(id: .id(album), remove: [assets[5]])),
            ])
            let late = try await catalog.importImages([image(7)])
            try await catalog.perform([.updateCollection(.init(id: .id(album), add: late.map { .id($0) }))])
            for (index, fetch) in fetches.enumerated() {
                let again = try await keys(FetchKeys(fetch: fetch, maxCount: 100, token: earlier), catalog)
                #expect(again.bytes == before[index] && again.end.count == 6)
                #expect(try await keys(FetchKeys(fetch: fetch, maxCount: 100), catalog).bytes != before[index])
            }
        }
    }

    @Test(.spec("S-65", "T-05"))
    func `the keys of a deleted moment are empty with a since token, and an error without`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1)], set: AssetPatch(creationDate: .some(0)))
            let moment = try #require(try await catalog.asset(ids[0]).moment)
            try await catalog.perform([.deleteAssets(.init(ids: ids))])
            let now = try await token(catalog)
            for object in [moment.id, moment.year.id] {
                var request = FetchKeys(fetch: fetch(in: object), maxCount: 100)
                let error = await rpcError { try await keys(request, catalog) }
                #expect(error?.name == "identifier_not_found")
                request.since = now
                let none = try await keys(request, catalog)
                #expect(none.bytes.isEmpty && none.end.count == 0 && none.end.objectWasDeleted)
            }
            // An album that never existed is not found.
            let album = try #require(ObjectID("c" + String(repeating: "1", count: 26)))
            let error = await rpcError {
                try await keys(FetchKeys(fetch: fetch(in: album), maxCount: 100, since: now), catalog)
            }
            #expect(error?.name == "identifier_not_found")
        }
    }
}
