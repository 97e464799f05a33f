import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

@Suite(.timeLimit(.minutes(5)))
struct DerivedRulesTests {
    private static let day: Int64 = 86_400_000_000
    private static let may: Int64 = 1_714_521_600_000_000  // 2024-05-01T00:00:00Z

    @Test(.spec("S-07", "S-05", "D7"))
    func `an asset is in one moment, and the moment in one cluster and one year; a hidden asset leaves both`() throws {
        var library = InMemoryLibrary()
        let berlin = AssetPatch(location: Location(latitude: 52.5, longitude: 13.4))
        let first = try library.add(1, date: Self.may + 1, set: berlin)
        let second = try library.add(2, date: Self.may + 5, set: berlin)
        let moment = try #require(library.asset(first)?.moment)
        #expect(library.asset(second)?.moment == moment && moment.title == "2024-05-01")
        let entity = try #require(library.collection(moment.id))
        #expect(entity.type == .moment && entity.estimatedAssetCount == 2)
        #expect(entity.startDate == Self.may + 1 && entity.endDate == Self.may + 5)
        #expect(entity.approximateLocation == Location(latitude: 52.5, longitude: 13.5))
        #expect(entity.localizedLocationNames == ["Berlin", "Germany"])
        #expect(moment.lists.map { library.list($0.id)?.childCount } == [1, 1])
        #expect(moment.lists.map { library.list($0.id)?.title } == ["2024-05", "2024"])

        let hide = AssetPatch(isHidden: true)
        let firstRecord = try library.perform(.updateAsset(.init(id: .id(first), set: hide)))
        #expect(firstRecord.collections.first?.after?.estimatedAssetCount == 1 && library.asset(first)?.moment == nil)
        #expect(library.collection(moment.id)?.startDate == Self.may + 5)
        let secondRecord = try library.perform(.updateAsset(.init(id: .id(second), set: hide)))
        #expect(secondRecord.collections.map(\.id) == [moment.id] && secondRecord.collections.first?.after == nil)
        #expect(Set(secondRecord.lists.map(\.id)) == Set(moment.lists.map(\.id)))
        #expect(secondRecord.lists.allSatisfy { $0.after == nil })
        #expect(library.snapshot.collections.isEmpty && library.snapshot.lists.count == 1)
    }

    @Test(.spec("S-07")) func `a moment is determined by the local day and the location`() throws {
        var library = InMemoryLibrary()
        func moment(_ seed: Int, _ set: AssetPatch) throws -> Moment? {
            let id = try library.add(seed, date: Self.may - 1, set: set)
            return library.asset(id)?.moment
        }
        let utc = try moment(1, AssetPatch())
        #expect(utc?.title == "2024-04-30" && utc?.cell == nil)
        #expect(try moment(2, AssetPatch(creationOffset: 3600))?.title == "2024-05-01")
        let here = try moment(3, AssetPatch(location: Location(latitude: 10.2, longitude: 20.9)))
        let near = try moment(4, AssetPatch(location: Location(latitude: 10.9, longitude: 20.1)))
        let far = try moment(5, AssetPatch(location: Location(latitude: 11, longitude: 20.9)))
        #expect(here == near && here != far && here != utc && here?.cluster == far?.cluster)
        #expect(try moment(6, AssetPatch(location: Location(latitude: 90, longitude: 180))) != nil)
    }

    @Test(.spec("S-07"), arguments: [1, 2, 3])
    func `moments and lists follow the assets through random changes`(_ round: UInt64) throws {
        var random = SeededRandom(named: "moments \(round)")
        var library = InMemoryLibrary()
        var ids: [ObjectID] = []
        for step in 0..<TestEnvironment.rounds(120) {
            var requests: [PreparedChange] = []
            for number in 0...Int.random(in: 0...3, using: &random) {
                let date = Self.may + Int64.random(in: 0...40, using: &random) * (Self.day / 3)
                guard !ids.isEmpty, !random.one(in: 3) else {
                    requests.append(.create("p\(number)", step * 10 + number, date: random.one(in: 5) ? nil : date))
                    continue
                }
                let id = random.pick(ids)
                switch Int.random(in: 0..<6, using: &random) {
                case 0: requests.append(PreparedChange(.trashAssets(.init(ids: [id]))))
                case 1: requests.append(PreparedChange(.restoreAssets(.init(ids: [id]))))
                default:
                    let patch = AssetPatch(
                        isHidden: random.one(in: 4),
                        creationDate: .some(random.one(in: 6) ? nil : date),
                        location: .some(Location(latitude: Double.random(in: -1...1, using: &random), longitude: 5))
                    )
                    requests.append(PreparedChange(.updateAsset(.init(id: .id(id), set: patch))))
                }
            }
            if ids.count > 20, random.one(in: 2) {
                let victim = ids.remove(at: Int.random(in: ids.indices, using: &random))
                requests.append(PreparedChange(.deleteAssets(.init(ids: [victim]))))
            }
            ids += try library.perform(requests).1.values.sorted()
            try check(library)
        }
    }

    @Test(.spec("S-05", "S-07")) func `a year ends with the moment that ends last, which need not start last`()
        async throws
    {
        let fixture = try StoreFixture()
        var library = InMemoryLibrary()
        let minute: Int64 = 60_000_000
        let west = AssetPatch(creationOffset: -8 * 3600)
        let losAngeles = AssetPatch(creationOffset: -8 * 3600, location: Location(latitude: 34, longitude: -118))
        // Two moments of one local day: the one without a location spans 32 hours.
        let photos: [(minutes: Int64, set: AssetPatch)] = [(5, AssetPatch()), (1910, west), (1620, losAngeles)]
        let (start, end) = (Self.may + 5 * minute, Self.may + 1910 * minute)
        var years: Set<MomentList> = []
        for (number, photo) in photos.enumerated() {
            let date = Self.may + photo.minutes * minute
            let (record, ids) = try library.perform([.create("p", number + 1, date: date, set: photo.set)])
            var result = TransactionResult()
            (result.assets, result.collections, result.lists) = (record.assets, record.collections, record.lists)
            try await fixture.write(result, sequence: record.sequence)
            let moment = try #require(ids["p"].flatMap { library.asset($0)?.moment })
            years.insert(moment.year)
        }
        let year = try #require(years.first)
        let dates = try await fixture.store.read { try $0.collections.momentDates(in: year, excluding: []) }
        #expect(years.count == 1 && dates == start...end)
    }

    private func check(_ library: InMemoryLibrary) throws {
        var members: [Moment: [Int64]] = [:]
        for asset in library.snapshot.assets.values {
            guard let moment = asset.moment, let date = asset.creationDate else { continue }
            members[moment, default: []].append(date)
        }
        var lists: [ObjectID: (count: Int, dates: [Int64])] = [:]
        try #require(library.snapshot.collections.count == members.count)
        for (moment, dates) in members {
            let entity = try #require(library.collection(moment.id))
            try #require(entity.estimatedAssetCount == dates.count)
            try #require(entity.startDate == dates.min() && entity.endDate == dates.max())
            for list in moment.lists {
                lists[list.id, default: (0, [])].count += 1
                lists[list.id, default: (0, [])].dates += dates
            }
        }
        try #require(library.snapshot.lists.count == lists.count + 1)
        for (id, facts) in lists {
            let entity = try #require(library.list(id))
            try #require(entity.childCount == facts.count)
            try #require(entity.startDate == facts.dates.min() && entity.endDate == facts.dates.max())
        }
    }

    // MARK: Time

    @Test(.spec("T-10", "S-08")) func `a new asset is recently added for 30 days`() throws {
        var library = InMemoryLibrary()
        let (_, placeholders) = try library.perform([.create("p", 1, date: 5)], now: Self.may)
        let id = try #require(placeholders["p"])
        let asset = try #require(library.asset(id))
        #expect(asset.isRecentlyAdded && asset.creationDate == 5 && asset.addedDate == Self.may)
        #expect(SmartAlbum.recentlyAdded.contains(asset))
        try library.perform([], now: Self.may + 29 * Self.day, expiresAssets: true)
        #expect(library.asset(id)?.isRecentlyAdded == true)
        let (record, _) = try library.perform([], now: Self.may + 31 * Self.day, expiresAssets: true)
        let after = try #require(record.assets.first?.after)
        #expect(!after.isRecentlyAdded && after.modificationDate == asset.modificationDate)
        #expect(after.revision != asset.revision)
    }

    @Test(.spec("S-77", "T-37"))
    func `trashed assets are hidden, can be restored, and are deleted after the retention time`() throws {
        var library = InMemoryLibrary()
        let ids = try (1...2).map { try library.add($0, date: Int64($0)) }
        let album = try library.addAlbum("A", ids)
        let record = try library.perform(.trashAssets(.init(ids: [ids[0]])))
        #expect(record.assets.first?.after?.trashedDate != nil && record.collections.count == 2)
        #expect(library.collection(album)?.estimatedAssetCount == 1 && library.collection(album)?.startDate == 2)
        let everything = try Fetch(.assets(.library))
        let trash = try Fetch(.assets(.library), inTrash: true)
        #expect(ids.map { library.asset($0).map(everything.includes) } == [false, true])
        #expect(ids.map { library.asset($0).map(trash.includes) } == [true, false])
        try library.perform(.restoreAssets(.init(ids: [ids[0]])))
        #expect(library.members(of: album, limit: 9) == ids && library.collection(album)?.estimatedAssetCount == 2)
        try library.perform(.trashAssets(.init(ids: [ids[1]])))
        // First the assets are no longer recently added, then the trash is emptied.
        try library.perform([], now: 31 * Self.day, expiresAssets: true)
        #expect(library.asset(ids[1]) != nil)
        let (purge, _) = try library.perform([], now: 31 * Self.day, expiresAssets: true)
        #expect(purge.assets.map(\.id).contains(ids[1]) && library.asset(ids[1]) == nil)
    }

    @Test(.spec("S-77"))
    func `an asset that is trashed while the clock is behind stays in the trash for the full time`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        for (wall, trashed) in [(Int64(5), Self.may), (Self.may + Self.day, Self.may + Self.day)] {
            var random = SeededRandom(seed: 1)
            var transaction = ChangeTransaction(
                state: library,
                sequence: 9,
                now: wall,
                retentionTime: Self.may,
                makeID: { ObjectID($0, milliseconds: 1, using: &random) }
            )
            try transaction.apply([PreparedChange(.trashAssets(.init(ids: [id])))])
            let result = try transaction.finish()
            #expect(result.assets.first?.after?.trashedDate == trashed)
        }
    }

    // MARK: Bursts

    @Test(.spec("S-37", "S-38", "P-21"))
    func `a burst is created, picked from, and always has one representative`() throws {
        var library = InMemoryLibrary()
        let changes = (0..<4).map { number -> PreparedChange in
            var change = PreparedChange.create("f\(number)", number + 1, date: Int64(number))
            if case .createAsset(var request) = change.request {
                request.burst = NewBurst(
                    identifier: "B",
                    isRepresentative: number == 2,
                    selection: number == 3 ? .autoPick : []
                )
                change.request = .createAsset(request)
            }
            return change
        }
        let (_, placeholders) = try library.perform(changes)
        let ids = try (0..<4).map { try #require(placeholders["f\($0)"]) }
        func representatives() -> [Int] { ids.indices.filter { library.asset(ids[$0])?.representsBurst == true } }
        #expect(representatives() == [2])
        let shown = try Fetch(.assets(.library))
        #expect(ids.filter { library.asset($0).map(shown.includes) == true } == [ids[2]])
        try library.perform(.updateAsset(.init(id: .id(ids[3]), set: AssetPatch(isUserPick: true))))
        #expect(library.asset(ids[3])?.burstSelectionTypes == [.autoPick, .userPick])
        #expect(ids.filter { library.asset($0).map(shown.includes) == true } == [ids[2], ids[3]])
        let record = try library.perform(.updateAsset(.init(id: .id(ids[1]), set: AssetPatch(representsBurst: true))))
        #expect(representatives() == [1] && record.assets.count == 2)
        try library.perform(.trashAssets(.init(ids: [ids[1]])))
        #expect(representatives() == [0])
        try library.perform(.restoreAssets(.init(ids: [ids[1]])))
        #expect(representatives() == [0])
        let single = try library.add(99)
        let error = #expect(throws: RPCError.self) {
            try library.perform(.updateAsset(.init(id: .id(single), set: AssetPatch(isUserPick: true))))
        }
        #expect(error?.name == "request_not_supported")
    }

    // MARK: Properties

    @Test(.spec("T-27"))
    func `a new asset has the keywords of its file, without those to remove and with those to add`() throws {
        var library = InMemoryLibrary()
        func create(
            _ number: Int,
            set: [String]? = nil,
            add: [String],
            remove: [String] = [],
            file: [String] = ["sea", "sun"]
        ) throws -> [String]? {
            var change = PreparedChange.create("p", number, set: AssetPatch(keywords: set))
            change.resources[0].facts?.keywords = file
            guard case .createAsset(var request) = change.request else { return nil }
            (request.addKeywords, request.removeKeywords) = (add, remove)
            change.request = .createAsset(request)
            let (_, ids) = try library.perform([change])
            return ids["p"].flatMap(library.asset)?.keywords
        }
        #expect(try create(1, add: ["trip", "sea"], remove: ["sun", "x"]) == ["sea", "trip"])
        #expect(try create(2, add: ["sea"], remove: ["sea"]) == ["sun", "sea"], "removed first, then added")
        #expect(try create(3, set: ["a", "b"], add: ["c"], remove: ["a"]) == ["b", "c"])
        #expect(try create(4, add: [], remove: ["sun"]) == ["sea"])
        let error = #expect(throws: RPCError.self) {
            try create(5, add: ["x"], file: (0..<1024).map { "\($0)" })
        }
        #expect(error?.name == "limit_exceeded")
    }

    @Test(.spec("T-27"))
    func `adding keywords that an asset has, and removing those that it has not, is ignored`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1, set: AssetPatch(keywords: ["a", "b"]))
        let update = ChangeRequest.updateAsset(
            .init(id: .id(id), addKeywords: ["b", "c"], removeKeywords: ["a", "x"])
        )
        try library.perform(update)
        #expect(library.asset(id)?.keywords == ["b", "c"])
        #expect(try library.perform(update).assets.isEmpty)
        let many = AssetPatch(keywords: (0..<1024).map { "\($0)" })
        try library.perform(.updateAsset(.init(id: .id(id), set: many)))
        #expect(try library.perform(.updateAsset(.init(id: .id(id), addKeywords: ["7"]))).assets.isEmpty)
        let more = #expect(throws: RPCError.self) {
            try library.perform(.updateAsset(.init(id: .id(id), addKeywords: ["x"])))
        }
        #expect(more?.name == "limit_exceeded")
        let patch = AssetPatch(caption: .some("x"), rating: 5, playbackVariation: .longExposure)
        let refusal = #expect(throws: RPCError.self) {
            try library.perform(.updateAsset(.init(id: .id(id), set: patch)))
        }
        #expect(refusal?.name == "request_not_supported" && refusal?.data["parameter"] == "playbackVariation")
        library.snapshot.assets[id]?.mediaSubtypes = .photoLive
        try library.perform(.updateAsset(.init(id: .id(id), set: patch)))
        #expect(library.asset(id).map(SmartAlbum.longExposures.contains) == true)
        try library.perform(.updateAsset(.init(id: .id(id), set: AssetPatch(caption: .some(nil)))))
        #expect(library.asset(id)?.caption == nil && library.asset(id)?.rating == 5)
    }

    @Test(.spec("T-17")) func `shared and synced assets cannot be added to an album`() throws {
        for type in [SourceType.typeCloudShared, .typeiTunesSynced] {
            var library = InMemoryLibrary()
            var create = PreparedChange.create("p", 1)
            if case .createAsset(var request) = create.request {
                request.sourceType = type
                create.request = .createAsset(request)
            }
            let id = try #require(try library.perform([create]).1["p"])
            let error = #expect(throws: RPCError.self) { _ = try library.addAlbum("A", [id]) }
            #expect(error?.name == "change_not_supported")
        }
    }
}
