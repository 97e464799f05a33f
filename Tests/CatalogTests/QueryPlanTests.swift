import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of query plans: a first page reads an index in the requested order, and no more than the page.
@Suite(.timeLimit(.minutes(1)))
struct QueryPlanTests {
    @Test(
        .onlySQLite,
        .spec("S-14", "P-18"),
        arguments: ["", "addedDate", "creationDate:desc", "modificationDate:desc"]
    )
    func `a first page is read without sorting and without scanning other rows`(order: String) async throws {
        let fixture = try StoreFixture()
        let parts = order.split(separator: ":")
        let sort =
            try parts.first.map { [try SortDescriptor(String($0), ascending: parts.count == 1, of: .asset)] } ?? []
        var fetches = [try Fetch(.assets(.library), sort: sort)]
        if order != "modificationDate:desc" { fetches.append(try Fetch(.assets(.smartAlbum(.favorites)), sort: sort)) }
        for fetch in fetches {
            let plan = try await fixture.store.read { reader -> [String] in
                let store = reader.fetches
                let query = try #require(try store.pageQuery(fetch, .init(from: 0, count: 100)))
                // Columns: the step, its parent, an unused one, and the description.
                return try reader.database.all("EXPLAIN QUERY PLAN " + query) { $0.text(3) }
            }
            #expect(plan.count == 1 && plan.allSatisfy { $0.contains("USING") && $0.contains("INDEX") }, "\(plan)")
            #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(fetch.json.text): \(plan)")
        }
    }

    /// The time of an index or a subquery with assets that are not on the list would grow with the number of matches.
    @Test(.onlySQLite) func `a fetch of a limited view reads the listed assets and nothing of others`() async throws {
        let folder = try TemporaryFolder("plans")
        try generateLibrary(at: folder.file("one"), assets: 2000, ["--albums", "5", "--seed", "7"])
        let fixture = try StoreFixture(at: folder.file("one"))
        let assets = try await fixture.store.read { reader in
            try reader.assets.assets(
                try reader.fetches.assetRows(Fetch(.assets(.library)), .init(from: 0, count: 50)) ?? []
            )
        }
        let listed = GrantedAssets(identity: "key:a", version: 1, ids: Set(assets.values.map(\.id)))
        let moment = try #require(assets.values.compactMap(\.moment).first)
        let sources: [FetchKind.AssetSource] = [.library, .moment(moment), .burst("b"), .smartAlbum(.favorites)]
        var fetches = try sources.map { try Fetch(.assets($0)) }
        fetches += try moment.lists.map { try Fetch(.assets(.below($0.id))) }
        for text in ["== 'a'", "==[cd] 'a'", "CONTAINS 'a'", "LIKE[c] '*a?'", "IN {'a', 'b'}"] {
            for condition in ["ANY keywords \(text)", "NOT (ANY keywords \(text)) OR rating > 3"] {
                fetches.append(try Fetch(.assets(.library), predicate: try Predicate(format: condition, of: .asset)))
            }
        }
        for fetch in fetches {
            let view = fetch.limited(to: listed)
            let plan = try await fixture.store.read { reader -> [String] in
                let query = try #require(try reader.fetches.pageQuery(view, .init(from: 0, count: 100)))
                return try reader.database.all("EXPLAIN QUERY PLAN " + query) { $0.text(3) }
            }
            #expect(plan.first?.hasPrefix("SCAN g ") == true, "\(fetch.json.text): \(plan)")
            #expect(plan.contains { $0.hasPrefix("SEARCH a USING INTEGER PRIMARY KEY") }, "\(fetch.json.text): \(plan)")
            let others = plan.filter { step in
                ["asset_", "keyword_", "SCAN a", "SCAN k", "collection"].contains { step.contains($0) }
            }
            #expect(others == [], "\(fetch.json.text)")
        }
        // The moment itself is not looked up, so it need not exist.
        let nowhere = try #require(Moment(key: moment.key ^ 1 << 50))
        let rows = try await fixture.store.read { reader in
            try reader.fetches.assetRows(try Fetch(.assets(.moment(nowhere))).limited(to: listed), .init())
        }
        #expect(rows == [])
    }

    @Test(.spec("S-14", "S-39", "P-18"))
    func `counts of the library and of smart albums come from counters, and are correct`()
        async throws
    {
        let folder = try TemporaryFolder("counts")
        try generateLibrary(at: folder.file("one"), assets: 3000, ["--albums", "5", "--trash", "2", "--seed", "7"])
        let fixture = try StoreFixture(at: folder.file("one"))
        var fetches = [try Fetch(.assets(.library)), try Fetch(.assets(.library), mediaType: .video)]
        for album in SmartAlbum.allCases { fetches.append(try Fetch(.assets(.smartAlbum(album)))) }
        for fetch in fetches {
            #expect(fetch.counter != nil, "\(fetch.json.text)")
            let (counted, listed) = try await fixture.store.read { reader in
                let store = reader.fetches
                return (try store.assetCount(fetch), try store.assetRows(fetch, .init())?.count)
            }
            #expect(counted == listed, "\(fetch.json.text)")
        }
    }
}
