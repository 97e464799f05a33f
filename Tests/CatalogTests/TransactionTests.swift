import Basics
import Contracts
import Glibc
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

@Suite(.serialized, .timeLimit(.minutes(5)))
struct TransactionTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("cat") }

    @Test(.spec("S-72"))
    func `a transaction sent three times, also concurrently, is performed once with equal outcomes`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            let create = ChangeRequest.createCollection(.init(ref: "c", title: "Once"))
            let outcomes = try await withThrowingTaskGroup(of: JSON.self) { group in
                for _ in 0..<3 {
                    group.addTask { try await catalog.perform([create], transaction: "t1").json }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(outcomes).count == 1)
            #expect(try await catalog.perform([create], transaction: "t1").json == outcomes[0])
            #expect(try await catalog.collections().count == 1)
            #expect(try await catalog.history().count == 1)

            // A transaction of another client with the same id is a different one.
            #expect(try await catalog.perform([create], transaction: "t1", client: "other").json != outcomes[0])
            let other = ChangeRequest.createCollection(.init(ref: "c", title: "Twice"))
            let error = await rpcError { try await catalog.perform([other], transaction: "t1") }
            #expect(error?.name == "id_reused")
            #expect(try await catalog.collections().count == 2)
        }
    }

    @Test func `other attachments under the same transaction id are other content`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))
            let first = try await catalog.perform([create], transaction: "t", attachments: [image(1)])
            let again = try await catalog.perform([create], transaction: "t", attachments: [image(1)])
            #expect(first.json == again.json)
            let error = await rpcError {
                try await catalog.perform([create], transaction: "t", attachments: [image(2)])
            }
            #expect(error?.name == "id_reused")
        }
    }

    @Test func `an outcome without a change is remembered too`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let unfavorite = ChangeRequest.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: false)))
            let first = try await catalog.perform([unfavorite], transaction: "t")
            #expect(!first.isChanged)
            try await catalog.perform([.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: true)))])
            #expect(try await catalog.perform([unfavorite], transaction: "t").json == first.json)
            #expect(try await catalog.asset(id).isFavorite)
        }
    }

    @Test(.spec("S-73", "S-71"))
    func `a refused transaction leaves nothing, names its request, and its sequence is used again`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let before = try await catalog.call(CurrentToken()).token
            var requests = (0..<10).map { ChangeRequest.createCollection(.init(title: "Album \($0)")) }
            requests[7] = .deleteAssets(.init(ids: [.none]))
            let error = await rpcError { try await catalog.perform(requests, transaction: "t") }
            #expect(error?.name == "identifier_not_found" && error?.code == 3201 && error?.data["request"] == 7)
            #expect(try await catalog.call(CurrentToken()).token == before)
            #expect(try await catalog.collections().isEmpty)
            // A refusal is not stored as an outcome.
            requests[7] = .updateAsset(.init(id: .id(id), set: AssetPatch(rating: 2)))
            let result = try await catalog.perform(requests, transaction: "t")
            #expect(result.sequence == before.sequence + 1)
        }
    }

    @Test func `refused and accepted transactions of one commit do not affect each other`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let album = ChangeRequest.createCollection(.init(title: "Album \(number)"))
                        if number % 3 == 0 {
                            let error = await rpcError {
                                try await catalog.perform([album, .deleteAssets(.init(ids: [.none]))])
                            }
                            #expect(error?.name == "identifier_not_found")
                        } else {
                            try await catalog.perform([album])
                        }
                    }
                }
                try await group.waitForAll()
            }
            let records = try await catalog.history()
            #expect(records.map(\.sequence) == Array(1...Int64(133)))
            #expect(try await catalog.collections().count == 133)
            let metrics = catalog.service.writer.metrics
            #expect(metrics.transactions == 133 && metrics.refused == 67 && metrics.largestBatch > 1)
        }
    }

    @Test func `replaying the records yields the contents of the tables`() async throws {
        var random = SeededRandom(named: "replayed records")
        try await CatalogFixture.with(folder) { catalog in
            let root = try await catalog.service.store.read { try $0.collections.list(.root) }
            var assets: [ObjectID] = []
            var albums: [ObjectID] = []
            // Deleted objects are still named sometimes; such a transaction is refused.
            var deletedIDs: [ObjectID] = []
            func pick(_ ids: [ObjectID]) -> ObjectID {
                let others = deletedIDs.filter { $0.kind == ids[0].kind }
                return random.pick(!others.isEmpty && random.chance(8) ? others : ids)
            }
            var next: UInt64 = 1
            var (performed, refused) = (0, 0)
            for _ in 0..<120 {
                var requests: [ChangeRequest] = []
                var images: [Bytes] = []
                for step in 0..<Int.random(in: 1...4, using: &random) {
                    switch Int.random(in: 0..<9, using: &random) {
                    case 0, 1:
                        requests.append(
                            .createAsset(
                                .init(ref: "a\(step)", resources: [NewResource(source: .attachment(images.count))])
                            )
                        )
                        images.append(image(next, date: "20\(10 + next % 14):06:01 12:30:00"))
                        next += 1
                    case 2:
                        let some = assets.isEmpty ? [] : [ObjectReference.id(pick(assets))]
                        requests.append(.createCollection(.init(ref: "c\(step)", title: "é \(step)", add: some)))
                    case 3 where !assets.isEmpty:
                        requests.append(.deleteAssets(.init(ids: [pick(assets)])))
                    case 4 where !albums.isEmpty && random.chance(40):
                        requests.append(.deleteCollections(.init(ids: [pick(albums)])))
                    case 5, 6:
                        guard !albums.isEmpty, !assets.isEmpty else { continue }
                        requests.append(
                            .updateCollection(
                                .init(
                                    id: .id(pick(albums)),
                                    title: random.chance(20) ? "New" : nil,
                                    add: (0..<3).map { _ in .id(pick(assets)) },
                                    remove: [pick(assets)]
                                )
                            )
                        )
                    default:
                        guard !assets.isEmpty else { continue }
                        var patch = AssetPatch(isFavorite: random.chance(50), isHidden: random.chance(20))
                        patch.creationDate =
                            random.chance(50) ? .some(Int64.random(in: 0...100, using: &random)) : .none
                        patch.keywords = random.chance(30) ? ["x", "é"] : nil
                        requests.append(.updateAsset(.init(id: .id(pick(assets)), set: patch)))
                    }
                }
                guard !requests.isEmpty else { continue }
                var result: PerformChanges.Result?
                let error = await rpcError { result = try await catalog.perform(requests, attachments: images) }
                guard let result else {
                    #expect(error?.name == "identifier_not_found", "\(String(describing: error))")
                    refused += 1
                    continue
                }
                performed += 1
                for (ref, id) in result.placeholders.members {
                    guard let id = id.stringValue.flatMap({ ObjectID($0) }) else { continue }
                    if ref.hasPrefix("a") { assets.append(id) } else { albums.append(id) }
                }
                for request in requests {
                    switch request {
                    case .deleteAssets(let deleted), .deleteCollections(let deleted): deletedIDs += deleted.ids
                    default: continue
                    }
                }
                assets.removeAll { deletedIDs.contains($0) }
                albums.removeAll { deletedIDs.contains($0) }
            }
            #expect(performed > 60 && refused > 0, "\(performed) performed, \(refused) refused")
            let replayed = Snapshot(replaying: try await catalog.history(), root: root)
            let stored = try await catalog.everything()
            #expect(replayed.normalized() == stored.normalized())
            let counters = try await catalog.service.store.read { reader in
                try ["assets", "visible", "visible.image", "visible.favorite", "hidden"].map(reader.counter)
            }
            let all = Array(replayed.assets.values)
            let visible = all.filter(\.isVisible)
            #expect(
                counters == [
                    all.count, visible.count, visible.count { $0.mediaType == .image },
                    visible.count { $0.isFavorite }, all.count { $0.isHidden },
                ]
            )
            for record in try await catalog.history() {
                #expect(record.assets.allSatisfy { $0.after == nil || $0.after?.revision.sequence == record.sequence })
            }
        }
    }

    @Test func `a keyword that no asset has any more leaves no counter`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages([image(1), image(2)])
            func setKeywords(_ keywords: [String], _ ids: ArraySlice<ObjectID>) async throws {
                let patch = AssetPatch(keywords: keywords)
                try await catalog.perform(ids.map { .updateAsset(.init(id: .id($0), set: patch)) })
            }
            func counters() async throws -> Int? {
                try await catalog.service.store.onWriter { database in
                    try database.first("SELECT count(*) FROM counter WHERE name LIKE 'keyword%'") { $0.int(0) }
                }
            }
            func count(_ keyword: String) async throws -> Int {
                try await catalog.service.store.read { try $0.counter(KeywordSearch.text(keyword).counter) }
            }
            try await setKeywords(["Sea"], ids[...])
            #expect(try await counters() == 2)
            #expect(try await count("Sea") == 2)
            try await setKeywords(["Lake"], ids[..<1])
            #expect(try await counters() == 4)
            #expect(try await count("Sea") == 1)
            try await setKeywords([], ids[...])
            #expect(try await counters() == 0)
            #expect(try await count("Sea") == 0)
            try await setKeywords(["Sea"], ids[1...])
            #expect(try await counters() == 2)
            #expect(try await count("Sea") == 1)
        }
    }

    @Test func `the token, the assets and the outcomes are the same after a restart`() async throws {
        let (token, assets, outcome) = try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages([image(1), image(2)])
            let result = try await catalog.perform([.createCollection(.init(ref: "c", title: "A"))], transaction: "t")
            return (try await catalog.call(CurrentToken()).token, try await catalog.assets(), result.json)
        }
        try await CatalogFixture.with(folder) { catalog in
            #expect(try await catalog.call(CurrentToken()).token == token)
            #expect(try await catalog.assets() == assets)
            let again = try await catalog.perform([.createCollection(.init(ref: "c", title: "A"))], transaction: "t")
            #expect(again.json == outcome)
        }
        guard !TestStore.isPostgreSQL else { return }
        let sqlite = try Needed.program("sqlite3")
        let check = try RunningProgram.run(
            sqlite,
            ["-readonly", folder.file("library/library.sqlite"), "PRAGMA integrity_check; PRAGMA foreign_key_check;"]
        )
        #expect(check.output == "ok\n", "\(check.errors)")
    }

    @Test(.onlySQLite) func `restoring an old copy of the database begins a new history`() async throws {
        let database = folder.file("library/library.sqlite")
        let old = try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages([image(1)])
            return try await catalog.call(CurrentToken()).token
        }
        let copy = try bytes(ofFile: database)
        // A read that ends late keeps the log from being written into the database, so the log belongs to a copy.
        let log = try? bytes(ofFile: database + "-wal")
        let lost = try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages([image(2), image(3)])
            return try await catalog.perform([.createCollection(.init(title: "Lost"))]).token
        }
        #expect(lost.library == old.library)
        for file in ["library.sqlite-wal", "library.sqlite-shm"] { unlink(folder.file("library/\(file)")) }
        try folder.write(copy, to: "library/library.sqlite")
        if let log { try folder.write(log, to: "library/library.sqlite-wal") }
        try await CatalogFixture.with(folder) { catalog in
            let now = try await catalog.call(CurrentToken()).token
            #expect(now.library != old.library && now.sequence == lost.sequence)
            for token in [old, lost] {
                let error = await rpcError { try await catalog.call(ChangesSince(token: token)) }
                #expect(error?.code == 3105 && error?.data["head"] == .string(now.description))
                let page = await rpcError {
                    try await catalog.call(FetchAssets(fetch: FetchDescription(.assets), token: token))
                }
                #expect(page?.name == "token_expired")
            }
            #expect(try await catalog.assets().count == 1)
            let next = try await catalog.perform([.createCollection(.init(title: "Next"))])
            #expect(next.sequence == lost.sequence + 1)
            #expect(try await catalog.history().map(\.sequence) == [next.sequence])
        }
    }

    @Test func `a second catalog on the same library is refused`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            await #expect(throws: (any Error).self) {
                try await CatalogFixture.with(folder) { _ in }
            }
            let health = try await catalog.call(Health())
            #expect(health.isHealthy)
        }
    }

    @Test(.onlySQLite) func `a full database refuses writes, stays intact, and works again`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let before = try await catalog.call(CurrentToken()).token
            try await catalog.service.store.limitPages(to: 1)
            let long = String(repeating: "x", count: 60_000)
            let requests = [ChangeRequest.updateAsset(.init(id: .id(id), set: AssetPatch(caption: .some(long))))]
            let errors = await withTaskGroup(of: RPCError?.self) { group in
                for _ in 0..<5 { group.addTask { await rpcError { try await catalog.perform(requests) } } }
                return await group.reduce(into: []) { $0.append($1?.name) }
            }
            #expect(errors == Array(repeating: "not_enough_space", count: 5))
            #expect(try await catalog.call(CurrentToken()).token == before)
            #expect(try await catalog.call(Health()).isHealthy == false)
            try await catalog.service.store.limitPages(to: 1 << 30)
            let result = try await catalog.perform(requests)
            #expect(result.sequence == before.sequence + 1)
            #expect(try await catalog.call(Health()).isHealthy)
        }
    }

    @Test(.spec("T-36")) func `old records are deleted in steps, and tokens before them expire`() async throws {
        try await CatalogFixture.with(folder) {
            $0.historyBytes = 1 << 20
            $0.trimInterval = 0
        } _: { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let rate = ChangeRequest.updateAsset(.init(id: .id(id), set: AssetPatch(rating: 3)))
            let rated = try await catalog.perform([rate], transaction: "rate")
            let first = try await catalog.call(CurrentToken()).token
            for step in 0..<60 {
                let caption = "\(step)" + String(repeating: "x", count: 20_000)
                try await catalog.perform([.updateAsset(.init(id: .id(id), set: AssetPatch(caption: .some(caption))))])
            }
            // The steps continue after the last commit, each between two tasks of the writer.
            while catalog.service.writer.retention.hasMore { try await catalog.service.store.onWriter { _ in } }
            let tokens = try await catalog.call(CurrentToken())
            #expect(tokens.oldest.sequence > first.sequence)
            let error = await rpcError { try await catalog.call(ChangesSince(token: first)) }
            #expect(error?.name == "token_expired" && error?.data["oldest"] == .string(tokens.oldest.description))
            let records = try await catalog.history()
            #expect(records.map(\.sequence) == Array((tokens.oldest.sequence + 1)...tokens.token.sequence))
            let (counted, stored) = try await catalog.service.store.read { reader in
                (
                    try reader.history.bytes(),
                    try reader.history.records(after: 0, through: .max, count: 100, bytes: .max)
                )
            }
            #expect(counted == stored.records.reduce(0) { $0 + $1.bytes.count })
            #expect(counted <= (1 << 20) + 50_000)
            // Outcomes have a maximum age, but no maximum size.
            #expect(try await catalog.perform([rate], transaction: "rate").json == rated.json)
        }
    }

    @Test func `a catalog that stops leaves old records to its next start`() async throws {
        let folder = try TemporaryFolder("trim-later")
        try await CatalogFixture.with(folder) {
            $0.historyBytes = 1 << 20
            $0.trimInterval = 0
        } _: { catalog in
            catalog.service.writer.stopTrimming()
            let id = try await catalog.importImages([image(1)])[0]
            for step in 0..<60 {
                let caption = "\(step)" + String(repeating: "x", count: 20_000)
                try await catalog.perform([.updateAsset(.init(id: .id(id), set: AssetPatch(caption: .some(caption))))])
            }
            #expect(try await catalog.call(CurrentToken()).oldest.sequence == 0)
        }
        try await CatalogFixture.with(folder) {
            $0.historyBytes = 1 << 20
            $0.trimInterval = 0
        } _: { catalog in
            try await catalog.perform([.createList(.init(title: "one"))])
            try await catalog.service.store.onWriter { _ in }
            #expect(try await catalog.call(CurrentToken()).oldest.sequence > 0)
        }
    }
}
