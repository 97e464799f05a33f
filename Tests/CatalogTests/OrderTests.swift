import GRDB
import JSONValue
import PhotoModel
import Synchronization
import TestSupport
import Testing

@testable import Catalog

/// Tests that pages in the documented sort orders are correct, and are read without scanning the whole library.
@Suite(.timeLimit(.minutes(2)))
struct OrderTests {
    /// The keys that PhotoKit documents for assets, and `addedDate` and `contentModificationDate`.
    static let sorts: [PredicateKey] = [
        .creationDate, .addedDate, .modificationDate, .contentModificationDate, .mediaType, .mediaSubtypes, .duration,
        .pixelWidth, .pixelHeight, .isFavorite, .isHidden, .burstIdentifier,
    ]

    static let predicates: [JSON?] = [
        nil, "isFavorite == YES", "mediaType == 'video'", "mediaType == 'image'", "(mediaSubtypes & 1) != 0",
        ["any": "keywords", "op": "==", "value": "a"], .string(#"ANY keywords ==[cd] "ZURICH""#),
        .string(#"ANY keywords ==[cd] "a" AND isFavorite == YES AND ANY keywords == "ab""#),
    ]

    private func fetches() throws -> [Fetch] {
        var kinds = Self.predicates.map { predicate in
            var description = FetchDescription(.assets)
            description.predicate = predicate
            return description
        }
        for album in [SmartAlbum.favorites, .videos] {
            var description = FetchDescription(.assets)
            description.container = album.id
            kinds.append(description)
        }
        for type in [MediaType.image, .video] {
            var description = FetchDescription(.assets)
            description.mediaType = type
            kinds.append(description)
        }
        return try kinds.flatMap { kind in
            try Self.sorts.flatMap { key in
                try [true, false].map { ascending in
                    var description = kind
                    description.sort = [SortDescription(key: key.name, ascending: ascending)]
                    return try Fetch(description)
                }
            }
        }
    }

    private func write(_ changes: [EntityChange<Asset>], _ fixture: StoreFixture, _ sequence: Int64) async throws {
        var result = TransactionResult()
        result.assets = changes
        try await fixture.write(result, sequence: sequence)
    }

    @Test(.spec("S-20", "S-21", "S-22"))
    func `pages in every documented order are parts of the whole result, also after changes`() async throws {
        var library = RandomLibrary(named: "pages in order")
        let fixture = try StoreFixture()
        var assets = (0..<(TestEnvironment.rounds(1) > 1 ? 1500 : 400)).map { library.asset($0) }
        try await write(assets.map { EntityChange(before: nil, after: $0) }, fixture, 1)
        // Copied columns and counters must follow their assets.
        var changes: [EntityChange<Asset>] = []
        for index in assets.indices where index.isMultiple(of: 4) {
            var after = library.asset(index)
            after.id = assets[index].id
            // For half of the assets the keywords stay the same, and only the columns copied to them change.
            if index.isMultiple(of: 8) { after.keywords = assets[index].keywords }
            changes.append(EntityChange(before: assets[index], after: after))
            assets[index] = after
        }
        for _ in 0..<50 { changes.append(EntityChange(before: assets.removeLast(), after: nil)) }
        try await write(changes, fixture, 2)
        for fetch in try fetches() {
            let whole = assets.filter(fetch.includes).sorted(by: fetch.areInIncreasingOrder).map(\.id)
            for (from, count) in [(0, 1), (0, 30), (7, 3), (max(0, whole.count - 5), 30), (whole.count, 5)] {
                let found = try await fixture.store.read { reader -> (rows: [ObjectID], count: Int?) in
                    let store = reader.fetches
                    let rows = try store.assetRows(fetch, .init(from: from, count: count)) ?? []
                    return (try reader.assets.identifiers(rows), try store.assetCount(fetch))
                }
                guard found.rows == Array(whole.dropFirst(from).prefix(count)), found.count == whole.count else {
                    Issue.record("\(fetch.json.text) from \(from), \(count): \(found)")
                    return
                }
            }
        }
    }

    /// Returns SQLite's own query plan for each statement of a first page.
    private func plans(of fetch: Fetch, _ fixture: StoreFixture) async throws -> [String] {
        try await fixture.store.read { reader in
            let database = try #require(reader.database.sqlite)
            let seen = Mutex<[String]>([])
            database.trace { event in
                if case .statement(let statement) = event { seen.withLock { $0.append(statement.expandedSQL) } }
            }
            _ = try FetchStore(database: reader.database).assetRows(fetch, .init(from: 0, count: 1))
            _ = try FetchStore(database: reader.database).assetCount(fetch)
            database.trace(options: [])
            return try seen.withLock(\.self).filter { $0.hasPrefix("SELECT") }.map { sql in
                let steps = try Row.fetchAll(database, sql: "EXPLAIN QUERY PLAN " + sql).map { $0["detail"] as String }
                return steps.joined(separator: "; ")
            }
        }
    }

    /// A library whose query plans are examined, and which does not change.
    private static let planned = Task {
        var library = RandomLibrary(seed: 11)
        let fixture = try StoreFixture()
        fixture.folder?.removeAtExit()
        var result = TransactionResult()
        result.assets = (0..<1500).map { EntityChange(before: nil, after: library.asset($0)) }
        try await fixture.write(result, sequence: 1)
        return fixture
    }

    @Test(.onlySQLite, .spec("S-21"))
    func `no first page in a documented order scans the whole library or sorts it`() async throws {
        let fixture = try await Self.planned.value
        // No counter has the number of matches of several conditions together, so in other orders the matches are
        // sorted.
        func isCounted(_ fetch: Fetch) -> Bool {
            if case .and = fetch.predicate?.root { return fetch.sortsByDate }
            return true
        }
        for fetch in try fetches().filter(isCounted) {
            for plan in try await plans(of: fetch, fixture) {
                // An index may be scanned from its beginning if it has the requested order.
                let scans = plan.split(separator: "; ").filter { $0.hasPrefix("SCAN") && !$0.contains("USING INDEX") }
                #expect(scans.isEmpty && !plan.contains("TEMP B-TREE FOR ORDER BY"), "\(fetch.json.text): \(plan)")
            }
        }
    }

    @Test(.onlySQLite, .spec("S-21"), arguments: ["mediaType", "pixelWidth", "pixelHeight", "duration"])
    func `favorites in another order are found without reading the rows of other assets`(key: String) async throws {
        let fixture = try await Self.planned.value
        var fetches: [FetchDescription] = [FetchDescription(.assets), FetchDescription(.assets)]
        fetches[0].predicate = "isFavorite == YES"
        fetches[1].container = SmartAlbum.favorites.id
        for var fetch in fetches {
            fetch.sort = [SortDescription(key: key, ascending: false)]
            let plans = try await plans(of: try Fetch(fetch), fixture).filter { $0.contains("SUBQUERY") }
            let isCovered = plans.allSatisfy { plan in
                plan.split(separator: "; ").allSatisfy { !$0.hasPrefix("SEARCH") || $0.contains("COVERING INDEX") }
            }
            #expect(!plans.isEmpty && isCovered, "\(plans)")
        }
    }

    @Test(.onlySQLite, .spec("S-21"))
    func `bursts sorted by identifier are found without scanning their other frames`() async throws {
        let fixture = try await Self.planned.value
        var fetch = FetchDescription(.assets)
        fetch.predicate = "isFavorite == YES"
        fetch.sort = [SortDescription(key: "burstIdentifier", ascending: true)]
        let plans = try await plans(of: try Fetch(fetch), fixture)
        #expect(plans.contains { $0.contains("a USING INDEX asset_visible_burst") }, "\(plans)")
    }
}
