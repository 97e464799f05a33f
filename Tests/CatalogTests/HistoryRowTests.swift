import Messaging
import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of the persistent history: paging, resuming at any token, object details, retention.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct HistoryRowTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("history") }

    @Test(.spec("T-36", "T-35"))
    func `pages of any size, resumed at any token, reach the current state`() async throws {
        var random = SeededRandom(named: "history")
        try await CatalogFixture.with(folder) { catalog in
            var ids = try await catalog.importImages((1...10).map { image($0) })
            for number in 0..<30 {
                var requests: [ChangeRequest] = [
                    .updateAsset(.init(id: .id(random.pick(ids)), set: AssetPatch(rating: number % 6)))
                ]
                if number % 5 == 0 { requests.append(.createCollection(.init(title: "\(number)", add: [.id(ids[0])]))) }
                if number % 11 == 10 { requests.append(.deleteAssets(.init(ids: [ids.removeLast()]))) }
                try await catalog.perform(requests)
            }
            let whole = try await catalog.history()
            let current = try await catalog.everything().normalized()
            for start in [0, 1, whole.count / 2, whole.count - 1] {
                var token: ChangeToken? = start == 0 ? nil : whole[start - 1].token
                var records = Array(whole.prefix(start))
                while true {
                    let page = try await catalog.call(
                        ChangesSince(token: token, limit: Int.random(in: 1...7, using: &random))
                    )
                    records += try page.records.map { try ChangeRecord(json: $0) }
                    token = page.token
                    guard page.hasMore else { break }
                }
                let replayed = Snapshot(replaying: records, root: nil).normalized()
                #expect(replayed.assets == current.assets && records == whole)
                #expect(replayed.collections == current.collections)
            }
        }
    }

    @Test(.spec("T-36")) func `a page of records is limited in number and bytes, but has at least one record`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            for number in 1...4 { try await catalog.perform([.createList(.init(title: "\(number)"))]) }
            let whole = try await catalog.service.store.read {
                try $0.history.records(after: 0, through: .max, count: 5, bytes: .max)
            }
            #expect(whole.records.map(\.sequence) == [1, 2, 3, 4] && !whole.isCut)
            let bytesOfTwo = whole.records[0].bytes.count + whole.records[1].bytes.count
            let topic = ChangeRecord.topic(of: .root)
            for (count, bytes, found) in [(5, 0, 1), (5, bytesOfTwo - 1, 1), (5, bytesOfTwo, 2), (3, Int.max, 3)] {
                let pages = try await catalog.service.store.read { reader in
                    [
                        try reader.history.records(after: 0, through: .max, count: count, bytes: bytes),
                        try reader.history.records(
                            after: 0,
                            through: .max,
                            topics: [topic],
                            count: count,
                            bytes: bytes
                        ),
                    ]
                }
                #expect(pages.allSatisfy { $0.records == Array(whole.records.prefix(found)) && $0.isCut })
            }
        }
    }

    @Test(.spec("T-37", "S-66", "S-65", "S-77"))
    func `hiding and trashing are changes, deleting is a deletion, and a short-lived asset is neither`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let ids = try await catalog.importImages((1...3).map { image($0) })
            let start = try await catalog.call(CurrentToken()).token
            try await catalog.perform([
                .updateAsset(.init(id: .id(ids[0]), set: AssetPatch(isHidden: true))),
                .trashAssets(.init(ids: [ids[1]])),
            ])
            let brief = try await catalog.importImages([image(9)])
            try await catalog.perform([.deleteAssets(.init(ids: brief + [ids[2]]))])
            let details = try await catalog.call(ChangesDetails(from: start, ids: ids + brief))
            let objects = Dictionary(uniqueKeysWithValues: details.objects.map { ($0.id, $0) })
            #expect(objects[ids[0]]?.objectWasDeleted == false && objects[ids[0]]?.after?["isHidden"] == true)
            #expect(objects[ids[1]]?.objectWasDeleted == false && objects[ids[1]]?.after?["trashedDate"] != nil)
            #expect(objects[ids[2]]?.objectWasDeleted == true && objects[ids[2]]?.after == nil)
            #expect(objects[brief[0]] == nil && details.objects.count == 3)
            // The records contain the creation and the deletion of the short-lived asset.
            let records = try await catalog.call(ChangesSince(token: start)).records.map { try ChangeRecord(json: $0) }
            let briefChanges = records.flatMap(\.assets).filter { $0.id == brief[0] }
            #expect(briefChanges.map { $0.before == nil } == [true, false])
            #expect(briefChanges.map { $0.after == nil } == [false, true])
        }
    }

    @Test(.spec("T-36", "P-30"))
    func `records expire, and the error for an expired token has a token to continue from`()
        async throws
    {
        let time = ManualClock(0)
        time.advance(by: 1_700_000_000_000_000)
        var environment = CatalogEnvironment()
        environment.now = { time.now }
        environment.clock = time.clock
        environment.elapsed = time.clock
        try await CatalogFixture.with(folder, environment: environment) {
            $0.historyDays = 1
            $0.trimInterval = 0
        } _: { catalog in
            let ids = try await catalog.importImages((1...3).map { image($0) })
            let first = try await catalog.call(CurrentToken()).token
            let rate = { (stars: Int) in
                ChangeRequest.updateAsset(.init(id: .id(ids[0]), set: AssetPatch(rating: stars)))
            }
            time.advance(by: 12 * 3_600_000_000)
            try await catalog.perform([rate(1)])
            let second = try await catalog.call(CurrentToken()).token
            #expect(try await catalog.call(ChangesDetails(from: first, ids: ids)).objects.count == 1)
            time.advance(by: 18 * 3_600_000_000)
            for stars in 2...4 { try await catalog.perform([rate(stars)]) }
            // The first record is older than a day, the second one is not.
            let tokens = try await catalog.call(CurrentToken())
            #expect(tokens.oldest.sequence == first.sequence)
            let beginning = ChangeToken(library: first.library, sequence: 0)
            for call in [
                (ChangesSince.method, ChangesSince(token: beginning).json),
                (ChangesDetails.method, ChangesDetails(from: beginning, ids: ids).json),
                (FetchAssets.method, FetchAssets(fetch: FetchDescription(.assets), token: beginning).json),
            ] {
                let error = await rpcError { try await catalog.client.call(call.0, call.1) }
                #expect(error?.name == "token_expired" && error?.code == 3105)
                #expect(error?.data["head"] == .string(tokens.token.description))
            }
            // The client fetches again after it has received the token, so it misses no later change.
            try await catalog.perform([rate(5)])
            #expect(try await catalog.call(ChangesSince(token: tokens.token)).records.count == 1)
            #expect(try await catalog.call(ChangesSince(token: second)).records.count == 4)
        }
    }

    @Test(.spec("T-36"))
    func `outcomes expire with their records, and the newest sequence remains without records`() async throws {
        let time = ManualClock(0)
        time.advance(by: 1_700_000_000_000_000)
        var environment = CatalogEnvironment()
        environment.now = { time.now }
        environment.clock = time.clock
        environment.elapsed = time.clock
        let token = try await CatalogFixture.with(folder, environment: environment) {
            $0.historyDays = 1
            $0.trimInterval = 0
        } _: { catalog in
            let id = try await catalog.importImages([image(1)])[0]
            let rate = { (stars: Int) in
                ChangeRequest.updateAsset(.init(id: .id(id), set: AssetPatch(rating: stars)))
            }
            let changed = try await catalog.perform([rate(1)], transaction: "changed")
            let unchanged = try await catalog.perform([rate(1)], transaction: "unchanged")
            #expect(changed.isChanged && !unchanged.isChanged)
            time.advance(by: 23 * 3_600_000_000)
            let last = try await catalog.perform([rate(2)])
            #expect(try await catalog.perform([rate(1)], transaction: "changed").json == changed.json)
            #expect(try await catalog.perform([rate(1)], transaction: "unchanged").json == unchanged.json)
            time.advance(by: 2 * 3_600_000_000)
            for name in ["changed", "unchanged"] {
                // Neither outcome is stored any longer, so both are performed.
                let again = try await catalog.perform([rate(name == "changed" ? 3 : 4)], transaction: name)
                #expect(again.isChanged && again.sequence > last.sequence)
            }
            time.advance(by: 48 * 3_600_000_000)
            let token = try await catalog.call(CurrentToken()).token
            #expect(try await !catalog.perform([rate(4)]).isChanged)
            let remaining = try await catalog.service.store.read {
                try $0.history.records(after: 0, through: .max, count: 100, bytes: .max).records.map(\.sequence)
            }
            #expect(remaining == [])
            let now = try await catalog.call(CurrentToken())
            #expect(now.token == token && now.oldest == token)
            return token
        }
        try await CatalogFixture.with(folder, environment: environment) { catalog in
            #expect(try await catalog.call(CurrentToken()).token == token)
            let next = try await catalog.perform([.createList(.init(title: "next"))])
            #expect(next.sequence == token.sequence + 1)
        }
    }

    @Test(.spec("T-36"))
    func `outcomes without a record are deleted a few at a time until no expired one is left`() async throws {
        let fixture = try StoreFixture()
        let steps = try await fixture.store.onWriter { database in
            let history = HistoryStore(database: database)
            var steps: [Bool] = []
            try database.inImmediateTransaction {
                let outcome = StoredOutcome(digest: Array(repeating: 0, count: 32), reply: [0])
                for number in 1...6 {
                    let key = OutcomeKey(identity: "test", client: "", transaction: "\(number)")
                    try history.remember(outcome, for: key, record: 0, date: Int64(number))
                }
                for _ in 1...3 {
                    steps.append(try history.trim(before: 6, bytes: .max, records: 2, recordBytes: .max))
                }
            }
            return steps
        }
        #expect(steps == [true, true, false])
        let remaining = try await fixture.store.read { reader in
            try (1...6).filter {
                let key = OutcomeKey(identity: "test", client: "", transaction: "\($0)")
                return try reader.history.outcome(key) != nil
            }
        }
        #expect(remaining == [6])
    }
}
