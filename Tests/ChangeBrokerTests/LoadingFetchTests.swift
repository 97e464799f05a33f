import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests that a fetch whose keys arrive late has the same result as one that was observed from the beginning.
@Suite(.timeLimit(.minutes(1)))
struct LoadingFetchTests {
    private func fetch() throws -> Fetch {
        try Fetch(.assets(.library), sort: [try SortDescriptor("rating", of: .asset)])
    }

    private func asset(_ number: Int, _ rating: Int) -> Asset {
        var asset = Asset(id: RandomEntities.id(.asset, number), revision: Revision(1))
        asset.rating = rating
        return asset
    }

    private func record(_ sequence: Int64, _ number: Int, _ before: Int?, _ after: Int?) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: sequence,
            library: testLibrary,
            date: sequence,
            origin: ChangeOrigin(identity: "uid:1")
        )
        record.assets = [
            EntityChange(before: before.map { asset(number, $0) }, after: after.map { asset(number, $0) })
        ]
        return record
    }

    private func tree(_ fetch: Fetch, _ ratings: [Int: Int]) -> KeyTree {
        let keys = ratings.map { fetch.resultKey(of: asset($0.key, $0.value)).bytes }
        return KeyTree(ascending: keys.sorted { $0.lexicographicallyPrecedes($1) }.map { $0[...] })
    }

    private func update(_ fetches: inout ObservedFetches, with record: ChangeRecord) -> ObservedFetches.Outcome {
        var work = fetches.beginWork(on: record)
        var all = ObservedFetches.Outcome()
        while !work.isDone {
            let outcome = fetches.step(&work)
            all.messages += outcome.messages
            all.broken += outcome.broken
        }
        return all
    }

    @Test func `a result is correct if its keys were read before, between or after the records`() throws {
        for keySequence in Int64(10)...14 {
            var fetches = ObservedFetches()
            let fetch = try fetch()
            let number = fetches.beginLoading(fetch, after: 10)
            #expect(!fetches.isEmpty && fetches.count == 0)
            let records = [
                record(11, 1, 3, 5), record(12, 2, nil, 1), record(13, 3, 2, nil), record(14, 1, 5, 0),
            ]
            for record in records { #expect(update(&fetches, with: record).messages.isEmpty) }
            // The state of the catalog at the sequence of the keys.
            var ratings = [1: 3, 3: 2]
            for record in records where record.sequence <= keySequence {
                let change = try #require(record.assets.first)
                let changed = ratings.keys.first { RandomEntities.id(.asset, $0) == change.id } ?? 2
                ratings[changed] = change.after?.rating
            }
            #expect(try fetches.finishLoading(number, tree(fetch, ratings), at: keySequence))
            let added = fetches.add("x", fetch, at: keySequence)
            let observed = try #require(added)
            #expect(observed.ids == [RandomEntities.id(.asset, 1), RandomEntities.id(.asset, 2)])
            #expect(update(&fetches, with: record(15, 2, 1, nil)).messages.count == 1)
        }
    }

    @Test func `keys older than the collected changes have to be loaded again`() throws {
        var fetches = ObservedFetches()
        let number = fetches.beginLoading(try fetch(), after: 10)
        #expect(try fetches.finishLoading(number, tree(fetch(), [:]), at: 9) == false)
        fetches.cancelLoading(number)
        #expect(fetches.isEmpty)
        #expect(try fetches.finishLoading(number, tree(fetch(), [:]), at: 11) == false, "it is not being loaded")
    }

    @Test func `a log of collected changes that becomes too long is discarded, and its memory is released`() throws {
        var fetches = ObservedFetches(maxLogBytes: 2000)
        let number = fetches.beginLoading(try fetch(), after: 0)
        for sequence in Int64(1)...100 { _ = update(&fetches, with: record(sequence, 1, 1, 1)) }
        #expect(fetches.logBytes <= 2000)
        #expect(try fetches.finishLoading(number, tree(fetch(), [1: 1]), at: 50) == false)
        fetches.cancelLoading(number)
        #expect(fetches.logBytes == 0)
    }

    @Test func `a fetch with a scope is loaded again if its keys arrive while a record is half applied`() throws {
        let (folder, album) = (RandomEntities.id(.collectionList, 1), RandomEntities.id(.assetCollection, 2))
        let fetch = try Fetch(.assets(.below(folder)))
        var added = record(11, 1, 3, 3)
        let key = try #require(OrderKey("V"))
        added.assets[0].after?.memberships = [Membership(collection: album, key: key)]
        var fetches = ObservedFetches()
        let number = fetches.beginLoading(fetch, after: 10)
        var work = fetches.beginWork(on: added)
        // The only entity is looked up before the scope is known.
        _ = fetches.step(&work)
        let scope: Set = [folder, album]
        #expect(try fetches.finishLoading(number, tree(fetch, [:]), at: 10, scope: scope) == false)
        while !work.isDone { _ = fetches.step(&work) }
        // Now the record is in the log.
        #expect(try fetches.finishLoading(number, tree(fetch, [:]), at: 10, scope: scope))
        let observed = fetches.add("x", fetch, at: 11)
        #expect(observed?.ids == [RandomEntities.id(.asset, 1)])
    }

    @Test func `a step evaluates at most one fetch, however many a change may affect`() throws {
        var fetches = ObservedFetches()
        for word in ["a", "b", "c"] {
            let predicate = try Predicate(format: "caption CONTAINS '\(word)'", of: .asset)
            let fetch = try Fetch(.assets(.library), predicate: predicate)
            let number = fetches.beginLoading(fetch, after: 10)
            #expect(try fetches.finishLoading(number, tree(fetch, [:]), at: 10))
        }
        var work = fetches.beginWork(on: record(11, 1, 3, 5))
        var evaluated: [Int64] = [0]
        while !work.isDone {
            _ = fetches.step(&work)
            evaluated.append(fetches.metrics(behind: 0)["predicatesEvaluated"]?.intValue ?? -1)
        }
        #expect(evaluated.last == 3)
        #expect(zip(evaluated, evaluated.dropFirst()).allSatisfy { $1 - $0 <= 1 })
    }

    /// Returns a feed without sockets whose history begins at a token.
    private func feed(at token: ChangeToken, maxFetchBytes: Int = 1 << 20) async throws -> RecordFeed {
        let address = try EndpointAddress("ipc:///tmp/unused")
        var configuration = ChangeBrokerConfiguration(catalog: address, requests: address, feed: address)
        configuration.maxFetchBytes = maxFetchBytes
        let feed = RecordFeed(configuration, publishers: [], instance: "first", logger: BrokerFixture.logger)
        _ = await feed.adopt(CurrentToken.Result(token: token, oldest: token))
        return feed
    }

    private let observer = ObservedFetch.Observer(identity: "uid:1", connection: ConnectionID(test: 1))

    private func loaded(
        at token: ChangeToken,
        scope: Set<ObjectID>? = nil,
        members: [ObjectID: MomentMember]? = nil
    ) -> LoadedKeys {
        LoadedKeys(keys: KeyFrames(), token: token, scope: scope, members: members, isDeleted: false)
    }

    @Test func `if a new result leaves too little memory for the largest one, that one is removed`() async throws {
        let token = ChangeToken(library: testLibrary, sequence: 10)
        let fetch = try fetch()
        let ratings = Dictionary(uniqueKeysWithValues: (0..<100).map { ($0, $0 % 5) })
        let size = tree(fetch, ratings)
        // Enough for the assets of the other result, but not for its moment.
        let feed = try await feed(at: token, maxFetchBytes: size.bytes + size.count * 6 + 500)
        let large = try #require(await feed.beginLoading(fetch))
        let isInstalled = try await feed.install(large, tree(fetch, ratings), loaded(at: token))
        #expect(isInstalled)
        #expect(try await feed.addObserver("large", fetch, by: observer, at: 0))
        var visible = asset(1, 0)
        visible.creationDate = 0
        let member = try #require(MomentMember(visible))
        let view = try Fetch(.collections(type: nil, subtype: nil))
            .limited(to: GrantedAssets(identity: "key:a", version: 10, ids: []))
        let small = try #require(await feed.beginLoading(view))
        let keys = loaded(at: token, scope: [visible.id], members: [visible.id: member])
        let isAdded = try await feed.install(small, tree(view, [:]), keys)
        #expect(isAdded)
        #expect(await feed.observedFetches.count == 0)
        #expect(await feed.instance != "first")
    }

    @Test func `a limited view may have half of the objects and of the memory`() async throws {
        let token = ChangeToken(library: testLibrary, sequence: 10)
        let feed = try await feed(at: token)
        let view = try fetch().limited(to: GrantedAssets(identity: "key:a", version: 10, ids: []))
        let number = try #require(await feed.beginLoading(view))
        let keys = loaded(at: token, scope: [asset(1, 1).id, asset(2, 2).id])
        let isInstalled = try await feed.install(number, tree(view, [1: 1, 2: 2]), keys)
        #expect(isInstalled)
        let all = try await feed.fetchCapacity()
        let (own, other) = (
            try await feed.fetchCapacity(ofView: "key:a"), try await feed.fetchCapacity(ofView: "key:b")
        )
        #expect((all.rows, own.rows, other.rows) == (9_999_998, 4_999_998, 5_000_000))
        #expect(all.bytes < 1 << 20 && own.bytes == all.bytes - (1 << 19) && other.bytes == 1 << 19)
    }

    @Test func `a limited view that takes more than half of the memory loses its own results`() throws {
        let sort = [try SortDescriptor("rating", of: .asset)]
        let ratings = Dictionary(uniqueKeysWithValues: (0..<100).map { ($0, $0 % 5) })
        let whole = try fetch()
        let size = tree(whole, ratings)
        var fetches = ObservedFetches(maxBytes: (size.bytes + size.count * 6) * 5 / 2)
        let large = fetches.beginLoading(whole, after: 10)
        #expect(try fetches.finishLoading(large, tree(whole, ratings), at: 10))
        // Each of the three results has 60 of 100 objects, so they take 1.8 times the memory of the whole result. The
        // limit is 2.5 times that memory.
        let few = ratings.filter { $0.key < 60 }
        for rating in 6...8 {
            let predicate = try Predicate(format: "rating != \(rating)", of: .asset)
            let view = try Fetch(.assets(.library), predicate: predicate, sort: sort)
                .limited(to: GrantedAssets(identity: "key:a", version: 10, ids: []))
            let number = fetches.beginLoading(view, after: 10)
            #expect(try fetches.finishLoading(number, tree(view, few), at: 10, scope: []))
        }
        _ = fetches.applyMemoryLimits()
        #expect(fetches.results.count == 3 && fetches.results[large] != nil)
        let used = fetches.usage(ofView: "key:a")
        let remaining = fetches.results.values.filter { $0.number != large }
        #expect(used == (remaining.reduce(0) { $0 + $1.rows }, remaining.reduce(0) { $0 + $1.resultBytes }))
        fetches.removeAll()
        #expect(fetches.viewUsage.isEmpty)
    }

    @Test func `the counted memory of a limited view decreases when its moments change or are removed`() throws {
        let assets = [1, 2].map { number in
            var asset = asset(number, 0)
            asset.creationDate = 0
            return asset
        }
        var members: [ObjectID: MomentMember] = [:]
        for asset in assets { members[asset.id] = MomentMember(asset) }
        let granted = Set(assets.map(\.id))
        let view = try Fetch(.collections(type: nil, subtype: nil))
            .limited(to: GrantedAssets(identity: "key:a", version: 10, ids: []))
        let keys = ViewMoments().changes(to: ViewMoments(members)).compactMap { view.netChange($0)?.after?.bytes }
        #expect(keys.count == 1)
        var fetches = ObservedFetches()
        let number = fetches.beginLoading(view, after: 10)
        let tree = KeyTree(ascending: keys.map { $0[...] })
        #expect(try fetches.finishLoading(number, tree, at: 10, scope: granted, members: members))
        let added = fetches.add("x", view, at: 10)
        #expect(added != nil)
        for (sequence, asset) in zip(Int64(11)..., assets) {
            let before = fetches.resultBytes
            var deletion = record(sequence, 0, nil, nil)
            deletion.assets = [EntityChange(before: asset, after: nil)]
            #expect(update(&fetches, with: deletion).broken.isEmpty)
            #expect(fetches.resultBytes < before)
            #expect(fetches.resultBytes == fetches.results[number]?.resultBytes)
        }
        fetches.remove("x")
        #expect(fetches.resultBytes == 0 && fetches.viewUsage.isEmpty)
    }

    @Test func `a request that has ended adds no observer`() async throws {
        let token = ChangeToken(library: testLibrary, sequence: 10)
        let fetch = try fetch()
        let feed = try await feed(at: token)
        let number = try #require(await feed.beginLoading(fetch))
        let isInstalled = try await feed.install(number, tree(fetch, [1: 1]), loaded(at: token))
        #expect(isInstalled)
        let observer = observer
        let isCancelled = Promise<Void>()
        let request = Task<Bool, any Error> {
            await isCancelled.value()
            return try await feed.addObserver("x", fetch, by: observer, at: 0)
        }
        request.cancel()
        isCancelled.fulfill(())
        let error = await #expect(throws: RPCError.self) { try await request.value }
        #expect(error?.errorCode == .unavailable)
        #expect(await feed.observedFetches.count == 0)
    }
}
