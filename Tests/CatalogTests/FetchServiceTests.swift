import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

@Suite(.serialized, .timeLimit(.minutes(5)))
struct FetchServiceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("cat") }

    @Test(.spec("S-25", "S-27", "P-17", "P-33"))
    func `pages at one sequence contain each asset once while assets are added and deleted`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...30).map { image($0) })
            var fetch = FetchDescription(.assets)
            fetch.sort = [SortDescription(key: "addedDate", ascending: false)]
            let first = try await catalog.call(FetchAssets(fetch: fetch, count: 7))
            var seen = first.assets
            var next: UInt64 = 100
            while seen.count < first.count {
                _ = try await catalog.importImages([image(next)])
                next += 1
                let victim = ids[Int(next) % 30]
                if try await catalog.call(FetchAssets(fetch: FetchDescription(ids: [victim]))).count == 1 {
                    try await catalog.perform([.deleteAssets(.init(ids: [victim]))])
                }
                try await catalog.perform([
                    .updateAsset(.init(id: .id(try await catalog.assets()[0].id), set: AssetPatch(rating: 5)))
                ])
                let page = try await catalog.call(
                    FetchAssets(fetch: fetch, token: first.token, from: seen.count, count: 7)
                )
                #expect(page.count == 30 && page.token == first.token)
                seen += page.assets
            }
            #expect(seen.count == 30 && Set(seen.map(\.id)) == Set(ids))
            #expect(seen.allSatisfy { $0.rating == 0 })
        }
    }

    @Test(.spec("S-03", "S-25"))
    func `the text of a page is the projection of the decoded page, for every projection`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages((1...5).map { image($0) })
            let ids = try await catalog.assets().map(\.id)
            try await catalog.perform([
                .updateAsset(.init(id: .id(ids[1]), set: AssetPatch(caption: "\"\n", keywords: ["b", "a"]))),
                .createCollection(.init(ref: "c", title: "A", add: ids.prefix(3).map { .id($0) })),
                .createCollection(.init(ref: "d", title: "B", add: [.id(ids[0])])),
            ])
            let missing = try #require(ObjectID("a" + String(repeating: "1", count: 26)))
            let requests = [
                FetchAssets(fetch: FetchDescription(.assets)),
                FetchAssets(fetch: FetchDescription(ids: ids + [missing])),
                FetchAssets(fetch: FetchDescription(.assets), from: 2, count: 2),
                FetchAssets(fetch: FetchDescription(.assets), count: 0),
            ]
            for request in requests {
                let tree = try await catalog.call(request).json
                for projection in [
                    Projection(), Projection(dates: .rfc3339), Projection(members: ["creationDate", "addedDate"]),
                    Projection(members: ["keywords", "memberships", "resources", "id"], dates: .rfc3339),
                ] {
                    var request = request
                    request.projection = projection
                    let sent = try await catalog.client.call(FetchAssets.method, request.json).result
                    #expect(sent.text == projection.applied(to: tree).text)
                }
            }
        }
    }

    @Test(.spec("S-25")) func `a page with more bytes than a message is refused, and shorter pages are returned`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...3).map { image($0) })
            // Each of these bytes takes six bytes in JSON.
            let keywords = (1000..<2024).map { String(repeating: "\u{1}", count: 1020) + String($0) }
            for id in ids {
                try await catalog.perform([.updateAsset(.init(id: .id(id), set: AssetPatch(keywords: keywords)))])
            }
            let token = try await catalog.call(CurrentToken()).token
            _ = try await catalog.importImages([image(4)])
            for pageToken in [nil, token] {
                let error = await rpcError {
                    try await catalog.call(FetchAssets(fetch: FetchDescription(.assets), token: pageToken))
                }
                #expect(error?.name == "limit_exceeded" && error?.data["limit"] == JSON(FetchService.maxPageBytes))
                let page = try await catalog.call(
                    FetchAssets(fetch: FetchDescription(.assets), token: pageToken, from: 1, count: 2)
                )
                #expect(page.assets.map(\.id) == [ids[1], ids[2]])
                #expect(page.assets.allSatisfy { $0.keywords == keywords })
            }
            var few = FetchAssets(fetch: FetchDescription(.assets))
            few.projection = Projection(members: ["id", "rating"])
            let sent = try await catalog.client.call(FetchAssets.method, few.json).result
            #expect(sent["assets"]?.arrayValue?.count == 4)
        }
    }

    @Test(.spec("S-23", "S-36", "D7")) func `hidden assets are left out unless a fetch includes them`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1), image(2)])
            let album = try #require(
                try await catalog.perform([
                    .createCollection(.init(ref: "c", title: "A", add: ids.reversed().map { .id($0) })),
                    .updateAsset(.init(id: .id(ids[0]), set: AssetPatch(isHidden: true))),
                ]).id("c")
            )
            func found(_ change: (inout FetchDescription) -> Void) async throws -> [ObjectID] {
                var fetch = FetchDescription(.assets)
                change(&fetch)
                return try await catalog.assets(fetch).map(\.id)
            }
            #expect(try await found { _ in } == [ids[1]])
            #expect(try await found { $0.includeHidden = true } == ids)
            #expect(try await found { $0.container = album } == [ids[1]])
            #expect(
                try await found {
                    $0.container = album
                    $0.includeHidden = true
                } == [ids[1], ids[0]]
            )
            #expect(try await found { $0.ids = ids } == ids)
            #expect(try await catalog.collections().first?.estimatedAssetCount == 2)
        }
    }

    @Test(.spec("T-01", "S-16"))
    func `unknown identifiers are reported, and a missing album is an error`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1), image(2)])
            let unknownID = try #require(ObjectID("a" + String(repeating: "1", count: 26)))
            let page = try await catalog.call(FetchAssets(fetch: FetchDescription(ids: [ids[1], unknownID, ids[0]])))
            #expect(page.assets.map(\.id) == [ids[1], ids[0]] && page.missing == [unknownID])
            var fetch = FetchDescription(.assets)
            fetch.container = ObjectID("c" + String(repeating: "1", count: 26))
            let error = await rpcError { try await catalog.call(FetchAssets(fetch: fetch)) }
            #expect(error?.name == "identifier_not_found")
        }
    }

    @Test(.spec("D11", "P-20")) func `an unsupported key or option is refused with the supported ones`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            var fetch = FetchDescription(.assets)
            fetch.predicate = "shoeSize == 8"
            let predicate = await rpcError { try await catalog.call(FetchAssets(fetch: fetch)) }
            #expect(predicate?.name == "unsupported_predicate" && predicate?.data["key"] == "shoeSize")
            #expect(predicate?.data["allowed"]?.arrayValue?.contains("creationDate") == true)
            fetch.predicate = nil
            fetch.sort = [SortDescription(key: "SELF")]
            let sort = await rpcError { try await catalog.call(FetchAssets(fetch: fetch)) }
            #expect(sort?.name == "unsupported_sort_key")
            let kind = await rpcError { try await catalog.call(FetchAssets(fetch: FetchDescription(.collections))) }
            #expect(kind?.name == "invalid_options")
        }
    }

    @Test func `albums are fetched by title, by identifier and as children of the root folder`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let result = try await catalog.perform(
                ["Zürich", "zoo", "Alps"].enumerated().map { number, title in
                    .createCollection(.init(ref: "c\(number)", title: title))
                }
            )
            func titles(_ fetch: FetchDescription) async throws -> [String?] {
                try await catalog.call(FetchCollections(fetch: fetch)).collections.map(\.title)
            }
            var fetch = FetchDescription(.collections)
            fetch.predicate = "title BEGINSWITH[cd] 'ZU'"
            #expect(try await titles(fetch) == ["Zürich"])
            fetch.predicate = nil
            fetch.collectionType = "album"
            fetch.sort = [SortDescription(key: "title")]
            #expect(try await titles(fetch) == ["Alps", "Zürich", "zoo"])
            #expect(try await titles(FetchDescription(.children)) == ["Zürich", "zoo", "Alps"])
            var named = FetchDescription(.collections)
            named.ids = [try #require(result.id("c2")), try #require(result.id("c0"))]
            #expect(try await titles(named) == ["Alps", "Zürich"])
            fetch.collectionType = "smartAlbum"
            #expect(try await titles(fetch).count == SmartAlbum.allCases.count)
        }
    }

    @Test func `a fetch waits for the sequence of its token, or fails with behind`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let now = try await catalog.call(CurrentToken()).token
            let later = ChangeToken(library: now.library, sequence: now.sequence + 1)
            let request = FetchAssets(fetch: FetchDescription(.assets), atLeast: later)
            // Bypasses the server, which would answer at the deadline itself.
            let incoming = IncomingRequest(id: 1, method: FetchAssets.method, params: request.json)
            let deadline = MonotonicClock.system.nowMicroseconds() + 100_000
            let context = RequestContext(deadlineMicroseconds: deadline)
            let behind = await rpcError { try await catalog.service.handler.handle(incoming, context) }
            #expect(behind?.name == "behind" && behind?.data["head"] == .string(now.description))
            async let waiting = catalog.call(request)
            try await catalog.perform([.updateAsset(.init(id: .id(id), set: AssetPatch(rating: 4)))])
            #expect(try await waiting.assets.first?.rating == 4)
        }
    }

    @Test func `history is filtered by topic, and an empty page advances the token`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1), image(2)])
            for step in 1...6 {
                try await catalog.perform([
                    .updateAsset(.init(id: .id(ids[step % 2]), set: AssetPatch(caption: .some("\(step)"))))
                ])
            }
            let topic = FeedTopic.object(ids[0])
            let page = try await catalog.call(ChangesSince(token: nil, limit: 2, topics: [topic]))
            let records = try page.records.map { try ChangeRecord(json: $0) }
            #expect(records.map(\.sequence) == [1, 3] && page.token.sequence == 3 && page.hasMore)
            let rest = try await catalog.call(ChangesSince(token: page.token, topics: [topic, "asset.nothing"]))
            #expect(try rest.records.map { try ChangeRecord(json: $0).sequence } == [5, 7] && !rest.hasMore)
            let none = try await catalog.call(ChangesSince(token: page.token, topics: ["edit.nothing"]))
            #expect(none.records.isEmpty && none.token == none.head)
            #expect(records[1].origin.client == "test" && records[1].origin.identity.hasPrefix("uid:"))
        }
    }

    @Test
    func `a reader that disconnects ends its stream, and a stop does not wait for streams`()
        async throws
    {
        // The stop of the fixture ends the connections of its own thread first.
        let thread = try PollThread(name: "reader")
        let second = try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages([image(1)])
            let reader = try RequestClient(
                address: catalog.service.address,
                thread: thread,
                logger: CatalogFixture.logger
            )
            let stream = reader.stream(
                ChangesFollow.method,
                ChangesFollow(token: nil).json,
                deadline: nil,
                credit: 1 << 16
            )
            let opened = Task { for try await _ in stream {} }
            while catalog.service.tail.waiting == 0, !Task.isCancelled { await Task.yield() }
            opened.cancel()
            while catalog.service.tail.waiting > 0, !Task.isCancelled { await Task.yield() }
            // Another stream stays open during the stop.
            let second = Task { for try await _ in stream {} }
            while catalog.service.tail.waiting == 0, !Task.isCancelled { await Task.yield() }
            return second
        }
        second.cancel()
        await thread.shutdown()
    }

    @Test func `rpc.discover lists every method, and figures counts the commits`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages([image(1)])
            let document = try await catalog.client.call("rpc.discover").result
            #expect(document["methods"]?.arrayValue?.count == CatalogRequest.methods.count + 2)
            let figures = try await catalog.client.call("figures").result
            #expect(figures["writes"]?["transactions"] == 1 && figures["library"]?["assets"] == 1)
            let unknown = await rpcError { try await catalog.client.call("fetch.everything") }
            #expect(unknown?.name == "method_not_found")
        }
    }

    @Test func `the generator creates the same library for the same seed`() async throws {
        var snapshots: [Snapshot] = []
        for name in ["one", "two"] {
            let options = ["--albums", "7", "--album-sizes", "10", "1000", "--trash", "2", "--seed", "42"]
            try generateLibrary(at: folder.file(name), assets: 2000, options)
            let fixture = try StoreFixture(at: folder.file(name))
            let snapshot = try await fixture.store.everything()
            #expect(snapshot.assets.count == 2000)
            let records = try await fixture.store.read { reader in
                try reader.history.records(after: 0, through: .max, count: 1000, bytes: .max).records
            }
            let replayed = Snapshot(
                replaying: try records.map { try ChangeRecord(json: JSON(parsing: $0.bytes)) },
                root: nil
            )
            #expect(replayed.normalized() == snapshot.normalized())
            #expect(records.allSatisfy { $0.bytes.count < 8 << 20 })
            #expect(snapshot.collections.values.allSatisfy { ($0.estimatedAssetCount ?? 0) > 0 })
            for size in [10, 1000] {
                let album = snapshot.collections.values.first { $0.title == "Album of \(size)" }
                #expect(album?.estimatedAssetCount == size)
                let members = snapshot.assets.values.count { asset in
                    asset.memberships.contains { $0.collection == album?.id }
                }
                #expect(members == size)
            }
            #expect((10...100).contains(snapshot.assets.values.count { $0.trashedDate != nil }))
            snapshots.append(snapshot.normalized())
        }
        #expect(snapshots[0] == snapshots[1])
    }
}

extension FetchDescription {
    init(ids: [ObjectID]) {
        self.init(.assets)
        self.ids = ids
    }
}
