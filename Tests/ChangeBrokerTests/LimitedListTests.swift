import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests of results of a limited view whose list the owner changes: they are read again at the next request of their
/// client, so that other clients do not wait for them.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(2))))
struct LimitedListTests {
    private let client = LimitedClient(identity: "key:a", key: "K")

    private func ids(_ numbers: Range<Int>) -> [ObjectID] { numbers.map { RandomEntities.id(.asset, $0) } }

    private func view(_ number: Int) throws -> Fetch {
        let predicate = try Predicate(format: "rating != \(number + 6)", of: .asset)
        return try Fetch(.assets(.library), predicate: predicate).limited(to: client.emptyList)
    }

    private func tree(_ fetch: Fetch, _ ids: [ObjectID]) -> KeyTree {
        let keys = ids.map { fetch.resultKey(of: Asset(id: $0, revision: Revision(1))).bytes }
        return KeyTree(ascending: keys.sorted { $0.lexicographicallyPrecedes($1) }.map { $0[...] })
    }

    /// Returns the record of a change of the list by the owner, which contains none of the assets.
    private func change(_ sequence: Int64, added: [ObjectID] = [], removed: [ObjectID] = []) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: sequence,
            library: testLibrary,
            date: sequence,
            origin: ChangeOrigin(identity: "uid:1")
        )
        var grant = Grant(identity: client.identity, status: .limited, scope: .limited, key: client.key)
        (grant.added, grant.removed) = (added, removed)
        record.grants = [EntityChange(before: nil, after: grant)]
        return record
    }

    private func update(_ fetches: inout ObservedFetches, _ record: ChangeRecord) {
        var work = fetches.beginWork(on: record)
        while !work.isDone { _ = fetches.step(&work) }
    }

    /// Observes some results of the view, whose keys are all on its list.
    private func observe(_ count: Int, _ list: [ObjectID], _ fetches: inout ObservedFetches) throws -> [ObservedFetch] {
        let granted = Set(list)
        return try (0..<count).map { number in
            let view = try view(number)
            let loading = fetches.beginLoading(view, after: 10)
            let keys = tree(view, Array(list.prefix(2)))
            let isLoaded = try fetches.finishLoading(loading, keys, at: 10, scope: granted)
            #expect(isLoaded)
            let added = fetches.add("x\(number)", view, at: 10)
            return try #require(added)
        }
    }

    @Test func `a change of a view's list discards the keys of its results and keeps their observations`() throws {
        var fetches = ObservedFetches()
        let list = ids(0..<3)
        let observed = try observe(2, list, &fetches)
        let whole = fetches.beginLoading(try Fetch(.assets(.library)), after: 10)
        #expect(try fetches.finishLoading(whole, KeyTree(), at: 10))
        update(&fetches, change(11, removed: [list[0]]))
        #expect(Array(fetches.results.keys) == [whole])
        #expect(fetches.count == 2 && observed.allSatisfy { fetches[$0.observation] === $0 })
        #expect(observed.allSatisfy { fetches.isSuspended($0) })
        #expect(fetches.usage(ofView: client.identity) == (0, 0) && fetches.lists.bytes == 0)
        // The first request loads the result again; details of earlier changes come from the catalog.
        let view = try view(0)
        #expect(fetches.result(of: view) == nil)
        let loading = fetches.beginLoading(view, after: 11)
        #expect(try fetches.finishLoading(loading, tree(view, [list[1]]), at: 11, scope: Set(list.dropFirst())))
        #expect(!fetches.isSuspended(observed[0]) && fetches.isSuspended(observed[1]))
        #expect(observed[0].ids == [list[1]])
        #expect(observed[0].previous == 11 && observed[0].result.oldestComplete == 11)
        // Observations with and without keys can be ended.
        for observation in ["x0", "x1"] { fetches.remove(observation) }
        #expect(fetches.count == 0 && fetches.results.count == 1)
        fetches.removeAll()
        #expect(fetches.isEmpty)
    }

    @Test func `a new history ends observations without keys too`() throws {
        var fetches = ObservedFetches()
        _ = try observe(2, ids(0..<3), &fetches)
        update(&fetches, change(11, added: ids(3..<4)))
        #expect(fetches.isEmpty && fetches.count == 2)
        fetches.removeAll()
        #expect(fetches.count == 0)
    }

    @Test func `a result that is installed between two steps of a record is updated with the record too`() throws {
        var fetches = ObservedFetches()
        let (list, fetch) = (ids(0..<3), try view(0))
        let loading = fetches.beginLoading(fetch, after: 10)
        var work = fetches.beginScopeWork(on: change(11, removed: [list[0]]))
        while !work.isDone { fetches.step(&work) }
        let isLoaded = try fetches.finishLoading(loading, tree(fetch, list), at: 10, scope: Set(list))
        #expect(isLoaded && fetches.results[loading] != nil)
        fetches.finish(&work)
        #expect(fetches.isEmpty && fetches.lists.bytes == 0)
    }

    @Test func `an asset that is in the record itself is added without loading the result again`() throws {
        var fetches = ObservedFetches()
        let list = ids(0..<3)
        let observed = try observe(1, list, &fetches)[0]
        var record = change(11, added: ids(3..<4))
        record.assets = [EntityChange(before: nil, after: Asset(id: ids(3..<4)[0], revision: Revision(11)))]
        update(&fetches, record)
        #expect(!fetches.isSuspended(observed))
        #expect(observed.count == 3 && observed.result.fetch.granted?.ids == Set(ids(0..<4)))
    }

    @Test func `a change of a long list takes about as long for a thousand results of the view as for one`() throws {
        let list = ids(0..<10_000)
        func time(_ results: Int, _ record: ChangeRecord) throws -> Duration {
            var fetches = ObservedFetches()
            _ = try observe(results, list, &fetches)
            return ContinuousClock().measure { _ = fetches.findScopes(of: record) }
        }
        let (wider, narrower) = (change(11, added: ids(10_000..<20_000)), change(11, removed: list))
        for record in [wider, narrower, change(11, added: [list[5]])] {
            let (one, many) = (try time(1, record), try time(1000, record))
            // Each result on its own would take a thousand times as long.
            #expect(many < one * 100 + .milliseconds(200), "\(one) for one, \(many) for a thousand")
        }
    }

    @Test func `if the list of a view takes more than half of the memory, its own results are removed`() throws {
        let list = ids(0..<1000)
        let whole = try Fetch(.assets(.library))
        let keys = tree(whole, Array(list.prefix(100)))
        var fetches = ObservedFetches(maxBytes: keys.bytes + keys.count * 6 + list.count * ListMemory.assetBytes)
        let number = fetches.beginLoading(whole, after: 10)
        let isLoaded = try fetches.finishLoading(number, keys, at: 10)
        #expect(isLoaded)
        _ = try observe(1, list, &fetches)
        let ended = fetches.applyMemoryLimits()
        #expect(ended == ["x0"])
        #expect(Array(fetches.results.keys) == [number] && fetches.lists.bytes == 0)
    }

    @Test func `the list of a view is counted once, however many results have it`() throws {
        var fetches = ObservedFetches()
        let list = ids(0..<1000)
        _ = try observe(1, list, &fetches)
        let bytes = fetches.lists.bytes
        #expect(bytes > 1000 * 16)
        let others = try (1..<4).map { number in
            let view = try view(number)
            let loading = fetches.beginLoading(view, after: 10)
            let known = try #require(fetches.list(of: client))
            let isLoaded = try fetches.finishLoading(loading, tree(view, []), at: 10, scope: known)
            #expect(isLoaded)
            return loading
        }
        #expect(fetches.lists.bytes == bytes)
        let results = fetches.results.values.reduce(0) { $0 + $1.resultBytes }
        #expect(fetches.usage(ofView: client.identity).bytes == results + bytes)
        for number in others { _ = fetches.removeResult(number) }
        #expect(fetches.lists.bytes == bytes)
        fetches.remove("x0")
        #expect(fetches.lists.bytes == 0)
    }
}
