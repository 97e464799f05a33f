import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of the frame that represents a burst, and of the frame that Safelight picks from it.
@Suite(.timeLimit(.minutes(1)))
struct BurstRulesTests {
    /// Adds a frame for each sharpness; nil for a frame that was not measured.
    private static func add(
        _ sharpnesses: [Double?],
        to library: inout InMemoryLibrary,
        picked: Int? = nil
    ) throws -> [ObjectID] {
        try sharpnesses.enumerated().map { number, sharpness in
            var change = PreparedChange.create("f", number + 1, date: Int64(number), burst: "B")
            change.resources[0].facts?.sharpness = sharpness
            if number == picked, case .createAsset(var request) = change.request {
                request.burst = NewBurst(identifier: "B", selection: .autoPick)
                change.request = .createAsset(request)
            }
            return try #require(try library.perform([change]).1["f"])
        }
    }

    private static func picks(_ ids: [ObjectID], _ library: InMemoryLibrary) -> [Int] {
        ids.indices.filter { library.asset(ids[$0])?.burstSelectionTypes.contains(.autoPick) == true }
    }

    @Test(.spec("S-37")) func `a hidden frame represents its burst only if all frames are hidden`() throws {
        var library = InMemoryLibrary()
        let ids = try Self.add([nil, nil, nil], to: &library)
        func hide(_ number: Int, _ isHidden: Bool = true) throws -> [Int] {
            let record = try library.perform(
                .updateAsset(.init(id: .id(ids[number]), set: AssetPatch(isHidden: isHidden)))
            )
            #expect(record.assets.count <= 2)
            return ids.indices.filter { library.asset(ids[$0])?.representsBurst == true }
        }
        let shown = try Fetch(.assets(.library))
        #expect(try hide(0) == [1])
        #expect(ids.filter { library.asset($0).map(shown.includes) == true } == [ids[1]])
        #expect(try hide(2) == [1])
        #expect(try hide(1) == [1], "all are hidden: nothing changes")
        #expect(try hide(2, false) == [2])
        #expect(try hide(0, false) == [2])
        try library.perform(.trashAssets(.init(ids: [ids[2]])))
        #expect(ids.indices.filter { library.asset(ids[$0])?.representsBurst == true } == [0])
    }

    @Test func `a file of a client that does not see the other frames joins no burst`() throws {
        var library = InMemoryLibrary()
        _ = try Self.add([1, 2], to: &library)
        var change = PreparedChange.create("f", 9, burst: "B")
        change.resources[0].facts?.sharpness = 9
        var random = SeededRandom(seed: 3)
        var transaction = ChangeTransaction(
            state: library,
            sequence: library.sequence + 1,
            now: 9,
            makeID: { kind in ObjectID(kind, milliseconds: 1, using: &random) }
        )
        transaction.joinsBursts = false
        try transaction.apply([change])
        let result = try transaction.finish()
        let asset = try #require(result.assets.first?.after)
        #expect(result.assets.count == 1, "no other frame changes")
        #expect(asset.burstIdentifier == nil && asset.sharpness == nil && !asset.representsBurst)
    }

    @Test(.spec("S-37")) func `a frame that is hidden or in the trash cannot be made to represent a burst`() throws {
        var library = InMemoryLibrary()
        let ids = try Self.add([nil, nil, nil], to: &library)
        try library.perform(.updateAsset(.init(id: .id(ids[1]), set: AssetPatch(isHidden: true))))
        try library.perform(.trashAssets(.init(ids: [ids[2]])))
        for number in [1, 2] {
            try library.perform(.updateAsset(.init(id: .id(ids[number]), set: AssetPatch(representsBurst: true))))
            #expect(ids.indices.filter { library.asset(ids[$0])?.representsBurst == true } == [0])
        }
    }

    @Test(.spec("S-37")) func `a frame that may not represent its burst does not change the earlier choice`() throws {
        var library = InMemoryLibrary()
        let ids = try Self.add([nil, nil, nil, nil], to: &library)
        func represents(_ numbers: Int...) throws -> [Int] {
            let changes = numbers.map { number in
                PreparedChange(.updateAsset(.init(id: .id(ids[number]), set: AssetPatch(representsBurst: true))))
            }
            _ = try library.perform(changes)
            return ids.indices.filter { library.asset(ids[$0])?.representsBurst == true }
        }
        try library.perform(.updateAsset(.init(id: .id(ids[1]), set: AssetPatch(isHidden: true))))
        try library.perform(.trashAssets(.init(ids: [ids[2]])))
        #expect(try represents(3) == [3], "not the earliest")
        #expect(try represents(1) == [3], "the frame is hidden")
        #expect(try represents(2) == [3], "the frame is in the trash")
        #expect(try represents(0, 1) == [0], "the last of the chosen frames that may represent the burst")
    }

    @Test(.spec("S-77")) func `every frame of a burst that is in the trash is listed there`() throws {
        var library = InMemoryLibrary()
        let ids = try Self.add([nil, nil, nil], to: &library)
        let trash = try Fetch(.assets(.library), inTrash: true)
        for (trashed, listed) in [([0], [0]), ([1, 2], [0, 1, 2])] {
            try library.perform(.trashAssets(.init(ids: trashed.map { ids[$0] })))
            #expect(ids.indices.filter { library.asset(ids[$0]).map(trash.includes) == true } == listed)
        }
    }

    @Test(.spec("S-38"))
    func `the sharpest frame outside the trash is picked if two frames or more were measured`() throws {
        var library = InMemoryLibrary()
        let ids = try Self.add([5, 9, nil, 9, 2], to: &library)
        #expect(Self.picks(ids, library) == [1], "the earliest of the equally sharp frames")
        try library.perform(.updateAsset(.init(id: .id(ids[1]), set: AssetPatch(isUserPick: true))))
        try library.perform(.trashAssets(.init(ids: [ids[1]])))
        #expect(Self.picks(ids, library) == [3])
        #expect(library.asset(ids[1])?.burstSelectionTypes == .userPick, "the user's pick stays")
        try library.perform(.restoreAssets(.init(ids: [ids[1]])))
        #expect(Self.picks(ids, library) == [1])
        try library.perform(.deleteAssets(.init(ids: [ids[1], ids[3], ids[4]])))
        #expect(Self.picks(ids, library).isEmpty, "one measured frame is left")
    }

    @Test(.spec("S-38"))
    func `no frame is picked automatically in a burst for which the importing program has picked one`() throws {
        var library = InMemoryLibrary()
        let ids = try Self.add([5, 9, 1, 7], to: &library, picked: 2)
        #expect(Self.picks(ids, library) == [2])
        #expect(library.asset(ids[2])?.sharpness == nil)
    }
}
