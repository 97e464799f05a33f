import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests that compare the tree of keys, and the details built from it, with lists that are sorted again each time.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(2))))
struct ObservedResultTests {
    @Test func `the tree of keys equals a sorted list after random insertions and removals`() throws {
        var random = SeededRandom(named: "key tree")
        let fetch = try Fetch(.assets(.library), sort: [try SortDescriptor("rating", of: .asset)])
        func key(_ number: Int) -> [UInt8] {
            fetch.resultKey([.integer(Int64(number % 7))], id: RandomEntities.id(.asset, number)).bytes
        }
        var model = Set((0..<3000).filter { _ in Bool.random(using: &random) })
        let tree = KeyTree(ascending: model.map { key($0)[...] }.sorted { $0.lexicographicallyPrecedes($1) })
        for round in 0..<TestEnvironment.rounds(30) {
            // The tree grows and shrinks alternately, so that nodes are split and become empty.
            for _ in 0..<400 {
                let number = Int.random(in: 0..<3000, using: &random)
                if random.one(in: round % 2 == 0 ? 4 : 2) {
                    #expect(tree.insert(key(number)) == model.insert(number).inserted)
                } else {
                    #expect(tree.remove(key(number)) == (model.remove(number) != nil))
                }
            }
            let sorted = model.map { (key: key($0), number: $0) }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
            #expect(tree.count == sorted.count)
            #expect(tree.bytes == sorted.reduce(0) { $0 + $1.key.count })
            #expect(tree.ids(at: 0..<Int.max) == sorted.map { RandomEntities.id(.asset, $0.number) })
            for _ in 0..<50 {
                let probe = key(Int.random(in: 0..<3000, using: &random))
                #expect(tree.rank(of: probe) == sorted.count { $0.key.lexicographicallyPrecedes(probe) })
                #expect(tree.contains(probe) == sorted.contains { $0.key == probe })
            }
        }
    }

    /// A model of a result with few distinct values: the rating and the revision of each asset. Its list is sorted
    /// again each time.
    private struct Model {
        var states: [Int: (rating: Int, revision: Int64)] = [:]

        func asset(_ number: Int) -> Asset? {
            states[number].map { state in
                var asset = Asset(id: RandomEntities.id(.asset, number), revision: Revision(state.revision))
                asset.rating = state.rating
                return asset
            }
        }

        func list(_ fetch: Fetch) -> [ObjectID] {
            let all = states.keys.compactMap(asset).sorted(by: fetch.areInIncreasingOrder).map(\.id)
            return Array(all.dropFirst(fetch.offset).prefix(fetch.limit > 0 ? fetch.limit : .max))
        }
    }

    private func change(_ model: inout Model, _ sequence: Int64, _ random: inout SeededRandom) -> [EntityChange<Asset>]
    {
        let count = random.one(in: 5) ? Int.random(in: 1...12, using: &random) : Int.random(in: 1...3, using: &random)
        var changes: [EntityChange<Asset>] = []
        for number in Set((0..<count).map { _ in Int.random(in: 0..<24, using: &random) }) {
            let before = model.asset(number)
            switch Int.random(in: 0...9, using: &random) {
            case 0...1: model.states[number] = nil
            case 2...4: if let state = model.states[number] { model.states[number] = (state.rating, sequence) }
            default: model.states[number] = (Int.random(in: 0...4, using: &random), sequence)
            }
            let after = model.asset(number)
            if before != nil || after != nil { changes.append(EntityChange(before: before, after: after)) }
        }
        return changes
    }

    private func fetch(_ random: inout SeededRandom) throws -> Fetch {
        try Fetch(
            .assets(.library),
            sort: [try SortDescriptor("rating", ascending: Bool.random(using: &random), of: .asset)],
            limit: random.one(in: 3) ? 0 : Int.random(in: 1...10, using: &random),
            offset: random.one(in: 2) ? 0 : Int.random(in: 1...8, using: &random)
        )
    }

    @Test(.spec("S-67", "S-68", "S-70", "P-01", "P-02", "P-03", "P-04", "P-05", "D1", "D2"))
    func `details, RICE and the move script each give the list after the change, from any earlier sequence`() throws {
        var random = SeededRandom(named: "live results")
        for round in 0..<TestEnvironment.rounds(4000) {
            let fetch = try fetch(&random)
            var model = Model()
            for number in 0..<24 where Bool.random(using: &random) {
                model.states[number] = (Int.random(in: 0...4, using: &random), 1)
            }
            let keys = model.states.keys.compactMap(model.asset).map { fetch.resultKey(of: $0) }.sorted()
            let result = ObservedResult(
                fetch.whole,
                number: 1,
                tree: KeyTree(ascending: keys.map { $0.bytes[...] }),
                at: 1
            )
            let observed = ObservedFetch("x", fetch, number: 2, of: result, at: 1)
            var models = [Int64(1): model]
            for sequence in Int64(2)...6 {
                let before = model
                let changes = change(&model, sequence, &random)
                models[sequence] = model
                let net = changes.compactMap { fetch.netChange(.asset(EntityStates($0))) }
                let builder = try result.advance(to: sequence, net)
                let details = builder?.details(of: fetch)
                #expect(builder?.isVisible(in: fetch) ?? false == (details != nil))
                #expect(observed.ids == model.list(fetch))
                guard check(details, fetch, before, model, touched: changes.count) else {
                    Issue.record("round \(round), \(sequence): \(fetch.json.text)")
                    return
                }
            }
            let start = Int64.random(in: 1...5, using: &random)
            let earlier = try #require(models[start])
            let composed = observed.details(result.changes(after: start))
            guard check(composed, fetch, earlier, model, touched: 24) else {
                Issue.record("round \(round), since \(start): \(fetch.json.text)")
                return
            }
        }
    }

    /// Returns true if details are exactly the changes from one model's list to another's.
    private func check(
        _ details: ChangeDetails?,
        _ fetch: Fetch,
        _ earlier: Model,
        _ later: Model,
        touched: Int
    ) -> Bool {
        let (before, after) = (earlier.list(fetch), later.list(fetch))
        let changed = Set(
            later.states.keys.filter { earlier.states[$0].map { $0.revision } != later.states[$0]?.revision }
                .map { RandomEntities.id(.asset, $0) }
        )
        let expected = ChangeDetails.between(before, after, changed: changed)
        guard let details, let expected else {
            return details == nil && expected == nil
        }
        guard (try? details.apply(to: before)) == after, details.removed == expected.removed,
            details.inserted == expected.inserted, details.changed == expected.changed, details.moved.count <= touched,
            details.countBefore == before.count, details.countAfter == after.count
        else { return false }
        guard let rice = try? details.rice() else { return false }
        return Self.apply(rice, details, to: before, usesScript: false) == after
            && Self.apply(rice, details, to: before, usesScript: true) == after
    }

    /// Applies changes in PhotoKit's order: removals, insertions, then moves, all at once or one by one.
    private static func apply(
        _ rice: RICE,
        _ details: ChangeDetails,
        to before: [ObjectID],
        usesScript: Bool
    ) -> [ObjectID]? {
        var list = before
        for index in rice.removedIndexes.reversed() { list.remove(at: index) }
        for (index, inserted) in zip(rice.insertedIndexes, details.inserted) { list.insert(inserted.id, at: index) }
        let changed = Set(details.changed.map(\.id))
        guard Set(rice.changedIndexes.map { list[$0] }) == changed,
            Set(rice.changedIndexesBefore.map { before[$0] }) == changed
        else { return nil }
        if usesScript {
            for move in rice.moveScript { list.insert(list.remove(at: move.from), at: move.to) }
        } else {
            let middle = list
            for move in rice.moves { list[move.to] = middle[move.from] }
        }
        return Set(rice.changedIndexesAfter.map { list[$0] }) == changed ? list : nil
    }

    @Test func `a change that does not match the result is an error`() throws {
        let fetch = try Fetch(.assets(.library))
        let observed = ObservedResult(fetch, number: 1, tree: KeyTree(), at: 1)
        let asset = Asset(id: RandomEntities.id(.asset, 1))
        let states = EntityStates(EntityChange(before: asset, after: nil))
        let change = try #require(fetch.netChange(.asset(states)))
        #expect(throws: ChangeDetailsError.self) { try observed.advance(to: 2, [change]) }
    }

    @Test func `the log drops its oldest changes and reports how far back it is complete`() throws {
        let fetch = try Fetch(.assets(.library), sort: [try SortDescriptor("rating", of: .asset)])
        let observed = ObservedResult(fetch, number: 1, tree: KeyTree(), at: 0)
        for sequence in 1...Int64(ObservedResult.maxLogged + 50) {
            let asset = Asset(id: RandomEntities.id(.asset, Int(sequence)))
            _ = try observed.advance(
                to: sequence,
                [NetChange(id: asset.id, before: nil, after: fetch.resultKey(of: asset))]
            )
        }
        #expect(observed.oldestComplete == 50)
        #expect(observed.changes(after: 50).count == ObservedResult.maxLogged)
    }

    @Test func `an entity that leaves a result because of its scope and returns unchanged has no net change`() {
        let key = ResultKey(bytes: [1, 2, 3])
        let id = RandomEntities.id(.asset, 1)
        var net = NetChanges()
        net.add([NetChange(id: id, before: key), NetChange(id: id, after: key)])
        #expect(net.all.isEmpty)
        net.add(NetChange(id: id, before: key, after: key, isTouched: true))
        #expect(net.all.count == 1, "a change of the entity itself counts, whatever its key")
    }

    private func record(_ sequence: Int64) -> ChangeRecord {
        ChangeRecord(sequence: sequence, library: "test", date: sequence, origin: ChangeOrigin(identity: "uid:1"))
    }

    private func update(_ fetches: inout ObservedFetches, _ record: ChangeRecord, _ reloaded: [Int: LoadedKeys] = [:]) {
        var work = fetches.beginWork(on: record, reloaded: reloaded)
        while !work.isDone { _ = fetches.step(&work) }
    }

    @Test(arguments: [0, 2, 3, 4] as [Int64])
    func `an entity that changes while it leaves, is outside or returns is changed then`(_ changing: Int64) throws {
        let folder = RandomEntities.id(.collectionList, 1)
        let fetch = try Fetch(.assets(.below(folder)))
        var album = AssetCollection(id: RandomEntities.id(.assetCollection, 2))
        album.parent = folder
        var asset = Asset(id: RandomEntities.id(.asset, 3), revision: Revision(1))
        asset.memberships = [Membership(collection: album.id, key: try #require(OrderKey("V")))]
        let key = fetch.resultKey(of: asset).bytes
        var fetches = ObservedFetches()
        let number = fetches.beginLoading(fetch, after: 1)
        let tree = KeyTree(ascending: [key[...]])
        #expect(try fetches.finishLoading(number, tree, at: 1, scope: [folder, album.id]))
        let added = fetches.add("x", fetch, at: 1)
        let observed = try #require(added)
        for sequence in Int64(2)...4 {
            var record = record(sequence)
            if sequence == changing {
                let before = asset
                asset.rating = 3
                record.assets = [EntityChange(before: before, after: asset)]
            }
            var reloaded: [Int: LoadedKeys] = [:]
            // The album is moved out of the folder, and later into it again.
            if sequence != 3 {
                let before = album
                album.parent = sequence == 2 ? ObjectID.root : folder
                record.collections = [EntityChange(before: before, after: album)]
                var keys = KeyFrames()
                if sequence == 4 { try keys.add([0, 0, 0, UInt8(key.count)] + key) }
                reloaded[number] = LoadedKeys(
                    keys: keys,
                    token: record.token,
                    scope: sequence == 2 ? [folder] : [folder, album.id],
                    members: nil,
                    isDeleted: false
                )
            }
            let scopes = fetches.findScopes(of: record)
            #expect(scopes.reloads.map { $0.number } == Array(reloaded.keys))
            update(&fetches, record, reloaded)
            #expect(observed.count == (sequence == 4 ? 1 : 0))
        }
        let details = observed.details(observed.result.changes(after: 1))
        #expect(details?.changed.map(\.id) == (changing == 0 ? nil : [asset.id]))
        let since = observed.details(observed.result.changes(after: 3))
        #expect(since?.inserted.map(\.id) == [asset.id] && since?.changed.isEmpty == true)
    }

    @Test func `the keys of a result that is read again determine its entities, not its predicate`() throws {
        let folder = RandomEntities.id(.collectionList, 1)
        let predicate = try Predicate(format: "rating > 3", of: .asset)
        let fetch = try Fetch(.assets(.below(folder)), predicate: predicate)
        // The predicate would exclude the asset.
        let asset = Asset(id: RandomEntities.id(.asset, 3), revision: Revision(1))
        let key = fetch.resultKey(of: asset).bytes
        var fetches = ObservedFetches()
        let number = fetches.beginLoading(fetch, after: 1)
        #expect(try fetches.finishLoading(number, KeyTree(ascending: [key[...]]), at: 1, scope: [folder]))
        let added = fetches.add("x", fetch, at: 1)
        let observed = try #require(added)
        var album = AssetCollection(id: RandomEntities.id(.assetCollection, 2))
        album.parent = ObjectID.root
        var (changed, moved) = (asset, album)
        changed.caption = "sea"
        moved.parent = folder
        var record = record(2)
        record.assets = [EntityChange(before: asset, after: changed)]
        record.collections = [EntityChange(before: album, after: moved)]
        var keys = KeyFrames()
        try keys.add([0, 0, 0, UInt8(key.count)] + key)
        let scope: Set = [folder, album.id]
        let loaded = LoadedKeys(keys: keys, token: record.token, scope: scope, members: nil, isDeleted: false)
        let scopes = fetches.findScopes(of: record)
        #expect(scopes.reloads.map { $0.number } == [number])
        update(&fetches, record, [number: loaded])
        #expect(observed.details(observed.result.changes(after: 1))?.changed.map(\.id) == [asset.id])
    }

    @Test(arguments: [1, 2])
    func `a moment that returns to a limited view is changed only if its properties differ`(_ restored: Int) throws {
        let assets = [1, 2].map { number in
            var asset = Asset(id: RandomEntities.id(.asset, number), revision: Revision(1))
            asset.creationDate = 0
            return asset
        }
        var members: [ObjectID: MomentMember] = [:]
        for asset in assets { members[asset.id] = MomentMember(asset) }
        let view = try Fetch(.collections(type: nil, subtype: nil))
            .limited(to: GrantedAssets(identity: "key:a", version: 10, ids: []))
        let keys = ViewMoments().changes(to: ViewMoments(members)).compactMap { view.netChange($0)?.after?.bytes }
        var fetches = ObservedFetches()
        let number = fetches.beginLoading(view, after: 10)
        let tree = KeyTree(ascending: keys.map { $0[...] })
        #expect(try fetches.finishLoading(number, tree, at: 10, scope: Set(assets.map(\.id)), members: members))
        let added = fetches.add("x", view, at: 10)
        let observed = try #require(added)
        let trashed = assets.map { asset in
            var asset = asset
            asset.trashedDate = 11
            return asset
        }
        var (trashing, restoring) = (record(11), record(12))
        trashing.assets = zip(assets, trashed).map { EntityChange(before: $0, after: $1) }
        restoring.assets = zip(trashed, assets).prefix(restored).map { EntityChange(before: $0, after: $1) }
        update(&fetches, trashing)
        #expect(observed.count == 0)
        update(&fetches, restoring)
        #expect(observed.count == 1)
        let details = observed.details(observed.result.changes(after: 10))
        #expect(details?.changed.count == (restored == 1 ? 1 : nil))
    }
}
