import Messaging
import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of fetch results as values: positions, counts, details, other sequences.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ResultServiceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("cat") }

    @Test(.spec("S-26", "S-22", "S-29", "P-17", "P-18"))
    func `a result returns objects by position, and the positions of identifiers`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...8).map { image($0) })
            var fetch = FetchDescription(.assets)
            fetch.offset = 1
            fetch.limit = 5
            let token = try await catalog.call(CurrentToken()).token
            try await catalog.perform([.deleteAssets(.init(ids: [ids[0], ids[3]]))])
            for readToken in [token, try await catalog.call(CurrentToken()).token] {
                let whole = readToken == token ? ids : ids.filter { $0 != ids[0] && $0 != ids[3] }
                let expected = Array(whole.dropFirst().prefix(5))
                let objects = try await catalog.call(FetchObjects(fetch: fetch, token: readToken, at: [3, 1, 3]))
                #expect(objects.assets.map(\.id) == [expected[1], expected[3]] && objects.count == 5)
                let found = try await catalog.call(FindInFetch(fetch: fetch, token: readToken, ids: ids))
                #expect(found.indexes == ids.map { id in expected.firstIndex(of: id).map { JSON($0) } ?? .null })
                let part = try await catalog.call(
                    FindInFetch(fetch: fetch, token: readToken, ids: [expected[1], expected[2]], from: 2, count: 1)
                )
                #expect(part.indexes == [.null, 2])
                let counts = try await catalog.call(
                    FetchCounts(fetches: [fetch, FetchDescription(.assets)], token: readToken, countsMediaTypes: true)
                )
                #expect(counts.counts == [5, whole.count])
                #expect(counts.byMediaType[0]["image"] == 5 && counts.byMediaType[1]["video"] == 0)
                let error = await rpcError {
                    try await catalog.call(FetchObjects(fetch: fetch, token: readToken, at: [5]))
                }
                #expect(error?.name == "range_error" && error?.data["count"] == 5)
            }
            var none = FetchDescription(.assets)
            none.burstIdentifier = "nowhere"
            #expect(try await catalog.call(FetchAssets(fetch: none)).assets.isEmpty)
            var albums = FetchDescription(.collections)
            albums.collectionType = "album"
            let batch = try await catalog.call(FetchCounts(fetches: [albums, none]))
            #expect(batch.counts == [0, 0])
        }
    }

    @Test(.spec("S-24", "S-66", "S-25", "P-05", "T-37"))
    func `details describe the changes of a result and of objects`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...4).map { image($0) })
            var fetch = FetchDescription(.assets)
            fetch.sort = [SortDescription(key: "rating", ascending: false), SortDescription(key: "addedDate")]
            fetch.limit = 3
            let before = try await catalog.call(FetchAssets(fetch: fetch))
            let rate = { (id: ObjectID, stars: Int) in
                ChangeRequest.updateAsset(.init(id: .id(id), set: AssetPatch(rating: stars)))
            }
            try await catalog.perform([rate(ids[3], 5), rate(ids[1], 1)])
            try await catalog.perform([.deleteAssets(.init(ids: [ids[2]]))])
            let after = try await catalog.call(FetchAssets(fetch: fetch))
            let request = ChangesDetails(from: before.token, to: after.token, fetch: fetch, ids: ids, form: .rice)
            let answer = try await catalog.call(request)
            let details = try #require(answer.details)
            #expect(try details.apply(to: before.assets.map(\.id)) == after.assets.map(\.id))
            #expect(details.removed.map(\.id) == [ids[2]] && details.inserted.map(\.id) == [ids[3]])
            #expect(answer.rice?.removedIndexes == [2] && answer.rice?.insertedIndexes == [0])
            let objects = Dictionary(uniqueKeysWithValues: answer.objects.map { ($0.id, $0) })
            #expect(objects[ids[0]] == nil)
            #expect(objects[ids[2]]?.objectWasDeleted == true && objects[ids[2]]?.after == nil)
            #expect(objects[ids[1]]?.assetContentChanged == false && objects[ids[1]]?.after?["rating"] == 1)
            // The old result has not changed.
            let again = try await catalog.call(FetchAssets(fetch: fetch, token: before.token))
            #expect(again.assets == before.assets)

            var whole = request
            whole.wantsIncrementalChangeDetails = false
            let short = try await catalog.call(whole).details
            #expect(short?.hasIncrementalChanges == false && short?.removed.isEmpty == true)
            let none = try await catalog.call(ChangesDetails(from: after.token, fetch: fetch, ids: ids))
            #expect(none.details == nil && none.objects.isEmpty)
            let swapped = await rpcError {
                try await catalog.call(ChangesDetails(from: after.token, to: before.token, fetch: fetch))
            }
            #expect(swapped?.name == "invalid_options")
        }
    }

    @Test(.spec("S-27", "P-33"), arguments: [1, 2])
    func `a result advanced by records equals the result of a new query`(_ round: UInt64) async throws {
        var random = SeededRandom(named: "carried \(round)")
        try await CatalogFixture.with(folder) { catalog in
            var ids = try await catalog.importImages((1...24).map { image($0 + round * 1000) })
            let album = try #require(
                try await catalog.perform([
                    .createCollection(.init(ref: "c", title: "A", add: ids.prefix(12).map { .id($0) }))
                ]).id("c")
            )
            var fetches: [FetchDescription] = [FetchDescription(.assets)]
            for key in ["rating", "creationDate", "modificationDate"] {
                var fetch = FetchDescription(.assets)
                fetch.sort = [SortDescription(key: key, ascending: random.one(in: 2))]
                fetches.append(fetch)
            }
            for container in [album, SmartAlbum.favorites.id] {
                var fetch = FetchDescription(.assets)
                fetch.container = container
                fetches.append(fetch)
            }
            for _ in 0..<TestEnvironment.rounds(12) {
                var requests: [ChangeRequest] = []
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let id = random.pick(ids)
                    let patch = AssetPatch(
                        isFavorite: random.one(in: 2),
                        isHidden: random.one(in: 5),
                        creationDate: .some(Int64.random(in: 0...9, using: &random)),
                        rating: Int.random(in: 0...5, using: &random)
                    )
                    requests.append(.updateAsset(.init(id: .id(id), set: patch)))
                    requests.append(
                        .updateCollection(
                            random.one(in: 2)
                                ? .init(id: .id(album), add: [.id(id)]) : .init(id: .id(album), remove: [id])
                        )
                    )
                }
                if ids.count > 10, random.one(in: 3) { requests.append(.deleteAssets(.init(ids: [ids.removeLast()]))) }
                try await catalog.perform(requests)
                for fetch in fetches {
                    // Positions come from the cached array, the page from the database.
                    let page = try await catalog.call(FetchAssets(fetch: fetch, count: 100))
                    let objects = try await catalog.call(FetchObjects(fetch: fetch, at: Array(0..<page.count)))
                    try #require(objects.assets.map(\.id) == page.assets.map(\.id))
                }
            }
            #expect(catalog.service.handler.fetches.cachedResults > 0)
        }
    }

    @Test(.spec("S-74", "S-71", "S-73"))
    func `no update of eight concurrent clients is lost, and the records yield the final state`()
        async throws
    {
        let random = SeededRandom(named: "eight clients")
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...6).map { image($0) })
            let rounds = TestEnvironment.rounds(25)
            // Each client increments the value that it read, under the revision that it read: a lost update makes
            // the sum smaller.
            let written = try await withThrowingTaskGroup(of: [ObjectID: Int].self) { group in
                for client in 0..<8 {
                    let connection = try catalog.connect()
                    var random = SeededRandom(seed: random.seed &+ UInt64(client))
                    group.addTask {
                        var written: [ObjectID: Int] = [:]
                        for _ in 0..<rounds {
                            let id = random.pick(ids)
                            while true {
                                let fetch = FetchAssets(fetch: FetchDescription(ids: [id]))
                                let answer = try await connection.call(FetchAssets.method, fetch.json).result
                                let asset = try #require(try FetchAssets.Result(json: answer).assets.first)
                                let count = Int(asset.caption ?? "0") ?? 0
                                let update = ChangeRequest.updateAsset(
                                    .init(
                                        id: .id(id),
                                        set: AssetPatch(caption: .some("\(count + 1)")),
                                        ifRevision: asset.revision
                                    )
                                )
                                do {
                                    _ = try await connection.call(
                                        PerformChanges.method,
                                        PerformChanges(requests: [update], client: "c\(client)").json
                                    )
                                    written[id, default: 0] += 1
                                    break
                                } catch let error as RPCError where error.name == "conflict" {
                                    continue
                                }
                            }
                        }
                        return written
                    }
                }
                return try await group.reduce(into: [ObjectID: Int]()) { $0.merge($1, uniquingKeysWith: +) }
            }
            for id in ids { #expect(Int(try await catalog.asset(id).caption ?? "0") == written[id, default: 0]) }
            let replayed = Snapshot(replaying: try await catalog.history(), root: nil)
            #expect(try await catalog.everything().normalized().assets == replayed.normalized().assets)
        }
    }

    @Test(.spec("T-35", "T-36", "S-65"))
    func `the error for an expired token has a token to continue from`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages([image(1)])
            let now = try await catalog.call(CurrentToken()).token
            let other = ChangeToken(library: String(repeating: "f", count: 32), sequence: now.sequence)
            for request in [
                ChangesDetails(from: other, fetch: FetchDescription(.assets)).json, ["from": .string("\(other)")],
            ] {
                let error = await rpcError { try await catalog.client.call(ChangesDetails.method, request) }
                #expect(error?.name == "token_expired" && error?.data["head"] == .string(now.description))
            }
            let error = await rpcError { try await catalog.call(ChangesSince(token: other)) }
            #expect(error?.name == "token_expired" && error?.data["head"] == .string(now.description))
        }
    }
}
