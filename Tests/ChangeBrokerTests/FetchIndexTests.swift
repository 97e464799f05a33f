import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests of the index that selects the fetches a change can affect.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(2))))
struct FetchIndexTests {
    private static let albums = (0..<3).map { RandomEntities.id(.assetCollection, $0) }

    private func asset(_ number: Int, _ random: inout SeededRandom) -> Asset {
        var asset = RandomEntities.asset(number, using: &random)
        asset.memberships = Self.albums.compactMap { album in
            random.one(in: 2) ? nil : OrderKey("m\(number)x").map { Membership(collection: album, key: $0) }
        }
        return asset
    }

    private func fetch(_ random: inout SeededRandom) throws -> Fetch {
        let tree = RandomEntities.tree(Int.random(in: 1...6, using: &random), of: .asset, using: &random)
        let predicate = random.one(in: 6) ? nil : try Predicate(json: tree, of: .asset)
        let kind: FetchKind =
            switch Int.random(in: 0...5, using: &random) {
            case 0:
                .assets(
                    .ids(
                        IDList(
                            (0..<4).map { _ in
                                RandomEntities.id(.asset, Int.random(in: 0..<30, using: &random))
                            }
                        )
                    )
                )
            case 1: .assets(.collection(random.pick(Self.albums)))
            case 2: .assets(.burst("burst 1"))
            case 3: .assets(.smartAlbum(random.pick(SmartAlbum.allCases)))
            default: .assets(.library)
            }
        return try Fetch(kind, predicate: predicate, mediaType: random.one(in: 4) ? .image : nil)
    }

    @Test(.spec("S-63", "P-08"))
    func `the index finds every fetch that a change affects`() throws {
        var random = SeededRandom(named: "fetch index")
        for round in 0..<TestEnvironment.rounds(20) {
            var index = FetchIndex()
            var fetches: [Int: Fetch] = [:]
            for number in 0..<60 {
                let fetch = try fetch(&random)
                fetches[number] = fetch
                index.insert(fetch, number: number)
            }
            for number in 0..<20 {
                index.remove(number: number)
                fetches[number] = nil
            }
            for number in 0..<100 {
                let before = random.one(in: 5) ? nil : asset(number % 30, &random)
                var after: Asset? = asset(number % 30, &random)
                if let before, random.one(in: 5) { after = random.one(in: 2) ? nil : before }
                let change = EntityChange(before: before, after: after)
                let states = EntityStates(change)
                let candidates = index.candidates(states)
                for (number, fetch) in fetches where fetch.netChange(.asset(states)) != nil {
                    guard candidates.contains(number) else {
                        Issue.record("round \(round): \(fetch.json.text) is affected but was not found")
                        return
                    }
                }
                #expect(candidates.allSatisfy { fetches[$0] != nil })
            }
        }
    }

    @Test func `the number of candidates does not grow with the fetches that a change cannot affect`() throws {
        func candidateCount(_ count: Int) throws -> Int {
            var index = FetchIndex()
            for number in 0..<count {
                let text =
                    switch number % 5 {
                    case 0: "ANY keywords == \"word \(number)\""
                    case 1: "cameraModel == \"camera \(number)\" AND isFavorite == TRUE"
                    case 2: "creationDate >= \(number * 1000) AND creationDate < \(number * 1000 + 1000)"
                    case 3: "originalFilename IN {\"a\(number)\", \"b\(number)\"}"
                    default: "burstIdentifier == \"burst \(number)\" OR caption == \"caption \(number)\""
                    }
                index.insert(
                    try Fetch(.assets(.library), predicate: Predicate(format: text, of: .asset)),
                    number: number
                )
            }
            #expect(index.unindexedCount == 0)
            var asset = Asset(id: RandomEntities.id(.asset, 1))
            asset.keywords = ["word 5"]
            asset.creationDate = 2_500
            asset.originalFilename = "b3"
            asset.cameraModel = "camera 1"
            var changed = asset
            changed.caption = "caption 4"
            return index.candidates(EntityStates(EntityChange(before: asset, after: changed))).count
        }
        #expect(try candidateCount(10) == 5)
        #expect(try candidateCount(10_000) == 5)
    }

    @Test func `a value finds exactly the ranges that contain it`() {
        var random = SeededRandom(named: "ranges")
        var index = RangeIndex()
        var model: [Int: ClosedRange<Double>] = [:]
        for owner in 0..<200 {
            let low = Double(Int.random(in: -50...50, using: &random))
            let range = low...low + Double(Int.random(in: 0...20, using: &random))
            index.insert(range, owner: owner)
            model[owner] = range
        }
        for owner in 0..<50 {
            index.remove(owner: owner)
            model[owner] = nil
        }
        for value in -60...80 {
            var found: Set<Int> = []
            index.find(Double(value), into: &found)
            #expect(found == Set(model.filter { $0.value.contains(Double(value)) }.keys))
        }
    }
}
