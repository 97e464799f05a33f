import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct ResultKeyTests {
    private static let album = RandomEntities.id(.assetCollection, 1)

    private func randomFetch(_ random: inout SeededRandom, _ ids: [ObjectID]) throws -> Fetch {
        let keys = EntityClass.asset.keys.filter(\.isSortable)
        let sort = try (0..<Int.random(in: 0...3, using: &random)).map { _ in
            try SortDescriptor(random.pick(keys).name, ascending: Bool.random(using: &random), of: .asset)
        }
        let kind: FetchKind =
            switch Int.random(in: 0...4, using: &random) {
            case 0: .assets(.ids(IDList(ids.shuffled(using: &random))))
            case 1: .assets(.collection(Self.album))
            case 2: .assets(.burst("burst 1"))
            case 3: .assets(.moment(try #require(Moment(key: 1 << 56))))
            default: .assets(.library)
            }
        return try Fetch(kind, sort: sort)
    }

    @Test(.spec("S-21", "D10"))
    func `the bytes of keys sort like the assets, for every order`() throws {
        var random = SeededRandom(named: "result keys")
        for round in 0..<TestEnvironment.rounds(200) {
            let assets = (0..<30).map { number in
                var asset = RandomEntities.asset(number, using: &random)
                if !random.one(in: 4), let key = OrderKey(random.pick(["A", "B", "Bx", "z\(number)"])) {
                    asset.memberships = [Membership(collection: Self.album, key: key)]
                }
                if asset.location != nil, random.one(in: 5) { asset.location?.latitude = -0.0 }
                return asset
            }
            let fetch = try randomFetch(&random, assets.map(\.id))
            let byEntity = assets.sorted(by: fetch.areInIncreasingOrder).map(\.id)
            let byKey = assets.map { fetch.resultKey(of: $0) }.sorted()
            guard byKey.map(\.id) == byEntity else {
                Issue.record("round \(round): \(fetch.json.text)")
                return
            }
        }
    }

    @Test func `a prefix sorts before the longer text, or after it if descending, also with a zero byte`() throws {
        for ascending in [true, false] {
            let sort = [try SortDescriptor("caption", ascending: ascending, of: .asset)]
            let fetch = try Fetch(.assets(.library), sort: sort)
            let captions: [String?] = ["", "a", "a\0", "a\0b", "ab", nil]
            let keys = captions.enumerated().map { number, caption in
                var asset = Asset(id: RandomEntities.id(.asset, number))
                asset.caption = caption
                return fetch.resultKey(of: asset)
            }
            let expected = ascending ? [0, 1, 2, 3, 4, 5] : [4, 3, 2, 1, 0, 5]
            #expect(keys.sorted().map(\.id) == expected.map { RandomEntities.id(.asset, $0) })
        }
    }

    @Test func `the keys of albums and folders sort like the albums and folders`() throws {
        var random = SeededRandom(named: "collection keys")
        for kind in [
            FetchKind.children(of: .root), .collections(type: nil, subtype: nil),
            .collections(type: .moment, subtype: nil),
            .children(of: MomentList.year(2024).id),
        ] {
            let fetch = try Fetch(kind)
            let collections = (0..<40).map { number -> PhotoCollection in
                var collection = AssetCollection(id: RandomEntities.id(.assetCollection, number))
                collection.creationDate = Int64.random(in: -3...3, using: &random)
                collection.startDate = random.one(in: 5) ? nil : Int64.random(in: -3...3, using: &random)
                collection.parentKey = random.one(in: 5) ? nil : OrderKey(random.pick(["A", "B", "Bz", "c"]))
                return .collection(collection)
            }
            let byKey = collections.map { fetch.resultKey(of: $0) }.sorted().map(\.id)
            #expect(byKey == collections.sorted(by: fetch.areInIncreasingOrder).map(\.id))
        }
    }
}
