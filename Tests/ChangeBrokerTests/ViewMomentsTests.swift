import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests that compare the moments of a limited view with moments that are computed again after each transaction.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(2))))
struct ViewMomentsTests {
    private static func asset(_ number: Int, using random: inout SeededRandom) -> Asset {
        var asset = Asset(id: RandomEntities.id(.asset, number), revision: Revision(1))
        asset.addedDate = Int64.random(in: 0..<5, using: &random)
        let days = Int64.random(in: 19_723..<19_729, using: &random)
        asset.creationDate = random.one(in: 9) ? nil : days * 86_400_000_000 + Int64.random(in: 0..<3, using: &random)
        asset.isHidden = random.one(in: 5)
        asset.location = random.one(in: 2) ? nil : Location(latitude: random.one(in: 2) ? 47.3 : 48.1, longitude: 8.5)
        return asset
    }

    private static func members(_ library: [Int: Asset], _ granted: Set<ObjectID>) -> [ObjectID: MomentMember] {
        var members: [ObjectID: MomentMember] = [:]
        for asset in library.values where granted.contains(asset.id) { members[asset.id] = MomentMember(asset) }
        return members
    }

    /// The moments and lists of moments of a view, as changes describe them.
    private struct Facts: Equatable {
        var collections: [ObjectID: AssetCollection] = [:]
        var lists: [ObjectID: CollectionList] = [:]

        /// Applies changes, the state before each of which must be the known one.
        mutating func apply(_ entities: [RecordEntity]) {
            for entity in entities {
                switch entity {
                case .asset: Issue.record("an asset is not a moment")
                case .collection(let states): Self.apply(states, to: &collections)
                case .list(let states): Self.apply(states, to: &lists)
                }
            }
        }

        private static func apply<Entity: Equatable>(_ states: EntityStates<Entity>, to known: inout [ObjectID: Entity])
        {
            var found: [Entity] = []
            states.forEach { found.append($0) }
            #expect(known[states.id] == (states.isDeleted == false ? nil : found.first))
            known[states.id] = states.isDeleted == true ? nil : found.last
        }
    }

    @Test func `moments that are updated with each record equal moments that are computed again`() {
        var random = SeededRandom(named: "view moments")
        var library: [Int: Asset] = [:]
        var granted: Set<ObjectID> = []
        var (moments, facts) = (ViewMoments(), Facts())
        for sequence in 0..<Int64(TestEnvironment.rounds(400)) {
            var record = ChangeRecord(
                sequence: sequence,
                library: "test",
                date: sequence,
                origin: ChangeOrigin(identity: "uid:1")
            )
            for number in Set((0..<3).map { _ in Int.random(in: 0..<40, using: &random) }) {
                let before = library[number]
                library[number] = random.one(in: 6) ? nil : Self.asset(number, using: &random)
                guard before != nil || library[number] != nil else { continue }
                record.assets.append(EntityChange(before: before, after: library[number]))
                let id = RandomEntities.id(.asset, number)
                if random.one(in: 3) { granted.formSymmetricDifference([id]) }
            }
            let changes = moments.apply(record, granted: granted)
            facts.apply(changes)
            let recomputed = ViewMoments(Self.members(library, granted))
            #expect(moments.changes(to: recomputed).isEmpty, "after \(sequence)")
            var expected = Facts()
            expected.apply(ViewMoments().changes(to: recomputed))
            #expect(facts == expected, "after \(sequence)")
            for id in expected.collections.keys { #expect(moments.contains(id)) }
            for id in expected.lists.keys { #expect(moments.contains(id)) }
        }
        #expect(!facts.collections.isEmpty)
        #expect(!moments.contains(ObjectID.root))
    }

    @Test func `an asset that keeps its dates and its location changes no moment`() {
        var random = SeededRandom(named: "same moment")
        var asset = Self.asset(1, using: &random)
        (asset.creationDate, asset.isHidden) = (5, false)
        var moments = ViewMoments(Self.members([1: asset], [asset.id]))
        var later = asset
        (later.isFavorite, later.rating) = (true, 4)
        var record = ChangeRecord(sequence: 1, library: "test", date: 1, origin: ChangeOrigin(identity: "uid:1"))
        record.assets = [EntityChange(before: asset, after: later)]
        #expect(moments.apply(record, granted: [asset.id]).isEmpty)
        #expect(moments.apply(record, granted: []).count == 3)
    }

    @Test func `members are read as they were written, and damaged bytes are refused`() {
        var random = SeededRandom(named: "moment members")
        var members: [ObjectID: MomentMember] = [:]
        for number in 0..<50 {
            let asset = Self.asset(number, using: &random)
            members[asset.id] = MomentMember(asset)
        }
        let bytes = MomentMember.bytes(of: members.map { ($0.key, $0.value) })
        #expect(MomentMember.list(in: bytes) == members)
        #expect(MomentMember.list(in: []) == [:])
        #expect(MomentMember.list(in: Array(bytes.dropLast())) == nil)
        var damaged = bytes
        damaged[0] = 0
        #expect(MomentMember.list(in: damaged) == nil)
        damaged = bytes
        damaged[ObjectID.length] = 0xFF
        #expect(MomentMember.list(in: damaged) == nil)
    }
}
