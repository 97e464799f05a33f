import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(5))))
struct FetchDifferentialTests {
    @Test(.spec("S-20", "S-21", "S-22", "T-06", "T-07", "D8", "D10", "P-20"))
    func `the database returns the same assets in the same order as the fetch in memory`() async throws {
        var library = RandomLibrary(named: "fetches in the database")
        let fixture = try StoreFixture()
        let isLong = TestEnvironment.rounds(1) > 1
        let assets = try await fill(fixture, &library, count: isLong ? 2000 : 500)
        let ids = assets.map(\.id)
        let naive = assets.map(\.json)
        // PostgreSQL differs only in the SQL, so it needs fewer rounds than SQLite.
        for round in 0..<TestEnvironment.rounds(TestStore.isPostgreSQL ? 100 : 250) {
            let fetch = try library.fetch(of: ids)
            let expected = Array(
                assets.filter(fetch.includes).sorted(by: fetch.areInIncreasingOrder)
                    .dropFirst(fetch.offset).prefix(fetch.limit > 0 ? fetch.limit : .max)
            )
            // A third implementation, which uses only the JSON.
            let third = NaiveFetch.ids(fetch.json, of: naive)
            guard third == expected.map(\.id.text) else {
                Issue.record("round \(round): \(fetch.json.text): memory and JSON disagree")
                return
            }
            let found = try await fixture.store.read { reader -> (rows: [ObjectID], count: Int?) in
                let store = reader.fetches
                let rows = try store.assetRows(fetch, .init()) ?? []
                let assets = try reader.assets.assets(rows)
                return (rows.compactMap { assets[$0]?.id }, try store.assetCount(fetch))
            }
            guard found.rows == expected.map(\.id), found.count == expected.count else {
                Issue.record(
                    "round \(round): \(fetch.json.text) gives \(found), not \(expected.map(\.id))"
                )
                return
            }
        }
    }

    @Test func `the database returns the same assets of a limited view as the fetch in memory`() async throws {
        var library = RandomLibrary(named: "fetches of limited views")
        let fixture = try StoreFixture()
        let assets = try await fill(fixture, &library, count: 300)
        let moments = assets.compactMap(\.moment)
        let sources =
            moments.map(FetchKind.AssetSource.moment)
            + moments.flatMap(\.lists).map { FetchKind.AssetSource.below($0.id) }
        let words = Set(assets.flatMap(\.keywords)).sorted() + ["nowhere"]
        let tests = [("==", ""), ("==", "cd"), ("contains", ""), ("beginsWith", "cd"), ("like", "c"), ("in", "")]
        for round in 0..<TestEnvironment.rounds(TestStore.isPostgreSQL ? 100 : 200) {
            var fetch = try library.fetch(of: assets.map(\.id))
            if round % 3 == 1, let source = sources.randomElement(using: &library.random) {
                fetch = try Fetch(.assets(source))
            } else if round % 3 == 2, let word = words.randomElement(using: &library.random) {
                let (test, options) = tests[round / 3 % tests.count]
                var tree: JSONObject = ["any": "keywords", "op": .string(test), "value": .string(word)]
                if test == "in" { tree["value"] = [.string(word), "other"] }
                if !options.isEmpty { tree["options"] = .string(options) }
                let other: JSON = ["not": ["key": "rating", "op": ">", "value": 3]]
                let predicate = try Predicate(
                    json: ["or": [.object(tree), ["and": [other, ["not": .object(tree)]]]]],
                    of: .asset
                )
                fetch = try Fetch(.assets(.library), predicate: predicate)
            }
            let listed = Set(assets.indices.filter { _ in library.random.chance(40) }.map { assets[$0].id })
            let view = fetch.limited(to: GrantedAssets(identity: "key:a", version: Int64(round), ids: listed))
            let expected = Array(
                assets.filter(view.includes).sorted(by: view.areInIncreasingOrder).map(\.id)
                    .dropFirst(view.offset).prefix(view.limit > 0 ? view.limit : .max)
            )
            let found = try await fixture.store.read { reader -> (ids: [ObjectID], count: Int?, kinds: Int?) in
                let store = reader.fetches
                let rows = try store.assetRows(view, .init()) ?? []
                let kinds = try store.mediaCounts(view)?.values.reduce(0, +)
                return (try reader.assets.identifiers(rows), try store.assetCount(view), kinds)
            }
            guard found.ids == expected, found.count == expected.count, found.kinds == expected.count else {
                Issue.record("round \(round): \(fetch.json.text) gives \(found), not \(expected)")
                return
            }
        }
    }

    /// Tests all combinations of options, because counters answer some of them.
    @Test(.spec("S-08", "D8"))
    func `the count of a fetch equals the size of its result for all options`() async throws {
        var library = RandomLibrary(named: "counts of fetches")
        let fixture = try StoreFixture()
        let assets = try await fill(fixture, &library, count: 200)
        let choices: [Bool?] = [nil, false, true]
        for container in [nil] + SmartAlbum.allCases.map(\.id) {
            for (hidden, burst) in choices.flatMap({ hidden in choices.map { (hidden, $0) } }) {
                for (sources, type) in [(nil, nil), (SourceTypes.all, nil), (.userLibrary, MediaType.video)] {
                    var description = FetchDescription(.assets)
                    description.container = container
                    description.includeHidden = hidden
                    description.includeAllBurstAssets = burst
                    description.sourceTypes = sources
                    description.mediaType = type
                    let fetch = try Fetch(description)
                    let expected = assets.count(where: fetch.includes)
                    let count = try await fixture.store.read { try FetchStore(database: $0.database).assetCount(fetch) }
                    #expect(count == expected, "\(fetch.json.text)")
                }
            }
        }
    }

    @Test func `the database returns the same albums in the same order as the fetch in memory`() async throws {
        var library = RandomLibrary(named: "fetches of albums")
        let fixture = try StoreFixture()
        var result = TransactionResult()
        result.collections = (0..<150).map { _ in EntityChange(before: nil, after: library.collection()) }
        try await fixture.write(result, sequence: 1)
        // The fetched collections include the smart albums.
        let all = try await fixture.store.read { [albums = result.collections.compactMap(\.after)] reader in
            albums + (try SmartAlbum.allCases.compactMap { try reader.collections.collection($0.id) })
        }
        #expect(all.count == 150 + SmartAlbum.allCases.count)
        for round in 0..<TestEnvironment.rounds(200) {
            let fetch = try library.collectionFetch(of: all.map(\.id))
            let passing = all.filter(fetch.includes).map { PhotoCollection.collection($0) }
                .sorted(by: fetch.areInIncreasingOrder).map(\.id)
            let expected = Array(passing.dropFirst(fetch.offset).prefix(fetch.limit > 0 ? fetch.limit : .max))
            let found = try await fixture.store.read { reader -> (ids: [ObjectID], count: Int)? in
                let page = try reader.collectionFetches.page(fetch, .init())
                return page.map { ($0.objects.map(\.id), $0.count) }
            }
            guard found?.ids == expected, found?.count == expected.count else {
                Issue.record("round \(round): \(fetch.json.text)")
                return
            }
        }
    }

    @Test func `assets are read from their rows unchanged`() async throws {
        var library = RandomLibrary(named: "asset rows")
        let fixture = try StoreFixture()
        let assets = try await fill(fixture, &library, count: 200)
        let stored = try await fixture.store.everything().normalized().assets
        for asset in assets { #expect(stored[asset.id] == asset) }
    }

    @Test func `a result at an earlier sequence stays the same after later changes`() async throws {
        var library = RandomLibrary(named: "earlier results")
        let fixture = try StoreFixture()
        let fetches = FetchService(
            store: fixture.store,
            quarantine: try await Quarantine(store: fixture.store, services: .noServices, now: { 0 }),
            cacheBytes: 1 << 20
        )
        var current = Dictionary(
            uniqueKeysWithValues: try await fill(fixture, &library, count: 60).map { ($0.id, $0) }
        )
        var states = [Int64(2): current]
        var checked: [(fetch: Fetch, sequence: Int64)] = []
        func check(_ fetch: Fetch, _ sequence: Int64, _ states: [Int64: [ObjectID: Asset]]) async throws {
            let state = try #require(states[sequence])
            let expected = Array(
                state.values.filter(fetch.includes).sorted(by: fetch.areInIncreasingOrder)
                    .dropFirst(fetch.offset).prefix(fetch.limit > 0 ? fetch.limit : .max)
            )
            let token = ChangeToken(library: fixture.store.historyID, sequence: sequence)
            let request = FetchAssets(fetch: fetch.wireForm, token: token, from: 0, count: 1000)
            var page = try await fetches.assets(request).assets
            for index in page.indices { page[index].memberships.sort { $0.collection < $1.collection } }
            guard page == expected else {
                Issue.record("sequence \(sequence): \(fetch.json.text)")
                return
            }
            let parts = expected.map { asset in
                var part = Asset(id: asset.id)
                part.resources = asset.resources
                return part
            }
            let found = try await fetches.assets(request, onlyResources: true).assets
            #expect(found == parts, "sequence \(sequence)")
        }
        for sequence in Int64(3)...12 {
            let changes = try change(&current, &library, sequence)
            try await fixture.write(changes, sequence: sequence)
            states[sequence] = current
            for _ in 0..<6 {
                let earlier = Int64.random(in: 2...sequence, using: &library.random)
                let fetch = try library.fetch(of: try #require(states[earlier]).keys.sorted())
                try await check(fetch, earlier, states)
                checked.append((fetch, earlier))
            }
        }
        // Results requested before the later changes are cached and still correct.
        #expect(fetches.cachedResults > 10)
        for (fetch, sequence) in checked { try await check(fetch, sequence, states) }
        #expect(fetches.cacheBytes <= 1 << 20)
    }

    // MARK: Helpers

    /// Writes two albums as transaction 1 and assets as transaction 2.
    private func fill(
        _ fixture: StoreFixture,
        _ library: inout RandomLibrary,
        count: Int
    ) async throws -> [Asset] {
        var result = TransactionResult()
        for key in OrderKey.keys(count: 2, after: nil) {
            var album = AssetCollection(
                id: ObjectID(.assetCollection, milliseconds: 1, using: &library.random),
                revision: Revision(1)
            )
            album.parent = .root
            album.parentKey = key
            library.albums.append(album.id)
            result.collections.append(EntityChange(before: nil, after: album))
        }
        library.albums.sort()
        try await fixture.write(result, sequence: 1)
        let assets = (0..<count).map { library.asset($0, sequence: 2) }
        result = TransactionResult()
        result.assets = assets.map { EntityChange(before: nil, after: $0) }
        try await fixture.write(result, sequence: 2)
        return assets
    }

    /// Deletes some assets, adds some and changes some completely.
    private func change(
        _ current: inout [ObjectID: Asset],
        _ library: inout RandomLibrary,
        _ sequence: Int64
    ) throws -> TransactionResult {
        var result = TransactionResult()
        for id in current.keys.sorted() where library.random.chance(12) {
            let before = current[id]
            var after: Asset?
            if library.random.chance(70) {
                let other = library.asset(Int.random(in: 100_000...900_000, using: &library.random), sequence: sequence)
                after = other.copy(withID: id)
            }
            current[id] = after
            result.assets.append(EntityChange(before: before, after: after))
        }
        for _ in 0..<5 {
            let asset = library.asset(Int.random(in: 1_000_000...9_000_000, using: &library.random), sequence: sequence)
            current[asset.id] = asset
            result.assets.append(EntityChange(before: nil, after: asset))
        }
        return result
    }
}

extension Asset {
    fileprivate func copy(withID id: ObjectID) -> Asset {
        var copy = self
        copy.id = id
        return copy
    }
}
