import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

@Suite(.timeLimit(.minutes(5)))
struct RulesTests {
    @Test func `an asset and its album can be created in one transaction`() throws {
        var library = InMemoryLibrary()
        let (record, ids) = try library.perform([
            .create("a", 1, date: 5),
            PreparedChange(.createCollection(.init(ref: "c", title: "New", add: [.placeholder("a")]))),
            PreparedChange(.updateAsset(.init(id: .placeholder("a"), set: AssetPatch(isFavorite: true)))),
        ])
        let asset = try #require(record.assets.first?.after)
        let album = try #require(record.collections.compactMap(\.after).first { $0.type == .album })
        // The record also has the asset's moment, with its cluster and its year.
        #expect(record.assets.count == 1 && record.collections.count == 2 && record.lists.count == 3)
        #expect(asset.id == ids["a"] && asset.isFavorite && asset.memberships.map(\.collection) == [album.id])
        #expect(album.estimatedAssetCount == 1 && album.startDate == 5 && album.endDate == 5)
        #expect(record.lists.first { $0.id == .root }?.after?.childCount == 1)
    }

    @Test func `a transaction whose assets have too many texts for a record is refused before its last asset`() throws {
        let library = InMemoryLibrary()
        var random = SeededRandom(seed: 3)
        var transaction = ChangeTransaction(
            state: library,
            sequence: 1,
            now: 9,
            makeID: { kind in ObjectID(kind, milliseconds: 1, using: &random) }
        )
        transaction.maxTextBytes = 2000
        let changes = (0..<20).map { number in
            var change = PreparedChange.create("\(number)", number + 1)
            change.resources[0].facts?.keywords = [String(repeating: "k", count: 1000)]
            return change
        }
        let error = #expect(throws: RPCError.self) { try transaction.apply(changes) }
        #expect(error?.errorCode == .limitExceeded && error?.data["limit"] == 2000)
        #expect(transaction.assets.count == 11, "the first eight are not counted")
    }

    @Test(.spec("P-16", "S-35"))
    func `a favorite changes the modification date but not the content modification date`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        let before = try #require(library.asset(id))
        try library.perform(.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: true))))
        let after = try #require(library.asset(id))
        #expect(after.modificationDate > before.modificationDate)
        #expect(after.contentModificationDate == before.contentModificationDate)
        #expect(after.contentRevision == before.contentRevision && after.revision != before.revision)
    }

    @Test func `requests that change nothing add no record`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1, set: AssetPatch(isFavorite: true))
        let album = try library.addAlbum("A", [id])
        let records = [
            try library.perform(.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: true)))),
            try library.perform(
                .updateAsset(.init(id: .id(id), set: AssetPatch(rating: 3))),
                .updateAsset(.init(id: .id(id), set: AssetPatch(rating: 0)))
            ),
            try library.perform(.updateCollection(.init(id: .id(album), title: "A", add: [.id(id)]))),
            try library.perform(.revertAsset(.init(id: id))),
        ]
        for record in records {
            #expect(record.assets.isEmpty && record.collections.isEmpty && record.lists.isEmpty)
        }
    }

    @Test func `a caption is stored in normalization form C, and an empty caption as nil`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1, set: AssetPatch(caption: "e\u{301}", keywords: ["e\u{301}", "é", ""]))
        #expect(library.asset(id).map { Array(($0.caption ?? "").utf8) } == Array("é".utf8))
        #expect(library.asset(id)?.keywords == ["é"])
        try library.perform(.updateAsset(.init(id: .id(id), set: AssetPatch(caption: .some("")))))
        #expect(library.asset(id).map { $0.caption == nil } == true)
        let error = #expect(throws: RPCError.self) {
            try library.perform(.updateAsset(.init(id: .id(id), set: AssetPatch(caption: "a\0b"))))
        }
        #expect(error?.name == "invalid_params")
    }

    @Test func `the length of a text is that of the form in which it is stored`() throws {
        // Normal form C of this letter has twice the bytes.
        func text(_ bytes: Int) -> String { String(repeating: "\u{958}", count: bytes / 6) }
        var library = InMemoryLibrary()
        let id = try library.add(1, set: AssetPatch(caption: .some(text(65_534)), keywords: [text(1020)]))
        let album = try library.addAlbum(text(1020))
        #expect(library.asset(id)?.caption?.utf8.count == 65_532)
        #expect(library.collection(album)?.title?.utf8.count == 1020)
        for refused: ChangeRequest in [
            .createCollection(.init(title: text(1026))), .updateCollection(.init(id: .id(album), title: text(1026))),
            .createList(.init(title: text(1026))),
            .updateAsset(.init(id: .id(id), set: AssetPatch(caption: .some(text(65_538))))),
            .updateAsset(.init(id: .id(id), set: AssetPatch(keywords: [text(1026)]))),
            .updateAsset(.init(id: .id(id), addKeywords: [text(1026)])),
        ] {
            let error = #expect(throws: RPCError.self) { try library.perform(refused) }
            #expect(error?.name == "invalid_params" && error?.data["limit"] != nil)
        }
        let frame = ChangeRequest.CreateAsset(
            resources: [NewResource(source: .path("/p"))],
            burst: NewBurst(identifier: text(132))
        )
        let created = PreparedChange(.createAsset(frame), resources: [.bytes(2, .photo, ExtractedMetadata())])
        #expect(throws: RPCError.self) { try library.perform([created]) }
    }

    @Test func `members are appended in the given order, once each`() throws {
        var library = InMemoryLibrary()
        let ids = try (1...5).map { try library.add($0) }
        let album = try library.addAlbum("A", [ids[2], ids[0]])
        try library.perform(
            .updateCollection(.init(id: .id(album), add: [ids[0], ids[4], ids[1], ids[4]].map { .id($0) }))
        )
        #expect(library.members(of: album, limit: 10) == [ids[2], ids[0], ids[4], ids[1]])
        try library.perform(.updateCollection(.init(id: .id(album), add: [.id(ids[0])], remove: [ids[0], ids[3]])))
        #expect(library.members(of: album, limit: 10) == [ids[2], ids[4], ids[1], ids[0]])
        #expect(library.collection(album)?.estimatedAssetCount == 4)
    }

    @Test(.spec("S-05")) func `the first and last date of an album follow its members`() throws {
        var library = InMemoryLibrary()
        let ids = try [10, 20, 30].enumerated().map { try library.add($0, date: $1) }
        let album = try library.addAlbum("A", ids)
        func dates() -> [Int64?] { [library.collection(album)?.startDate, library.collection(album)?.endDate] }
        #expect(dates() == [10, 30])
        let moved = try library.perform(.updateAsset(.init(id: .id(ids[0]), set: AssetPatch(creationDate: 99))))
        #expect(dates() == [20, 99] && moved.collections.contains { $0.id == album })
        let inside = try library.perform(.updateAsset(.init(id: .id(ids[2]), set: AssetPatch(creationDate: 50))))
        #expect(inside.collections.isEmpty)
        try library.perform(.deleteAssets(.init(ids: [ids[0]])))
        #expect(dates() == [20, 50] && library.collection(album)?.estimatedAssetCount == 2)
        try library.perform(.deleteAssets(.init(ids: [ids[1], ids[2]])))
        #expect(dates() == [nil, nil])
    }

    @Test func `a deleted album leaves its assets, and the record contains them`() throws {
        var library = InMemoryLibrary()
        let ids = try (1...3).map { try library.add($0) }
        let album = try library.addAlbum("A", ids)
        let record = try library.perform(.deleteCollections(.init(ids: [album])))
        #expect(record.assets.count == 3 && record.collections.first?.after == nil)
        #expect(record.lists.first?.after?.childCount == 0)
        #expect(library.snapshot.assets.values.allSatisfy { $0.memberships.isEmpty })
    }

    @Test func `known bytes yield the asset that has them`() throws {
        var library = InMemoryLibrary()
        let first = try library.add(1)
        let (record, ids) = try library.perform([.create("again", 1), .create("new", 2), .create("twin", 2)])
        #expect(ids["again"] == first && ids["twin"] == ids["new"] && record.assets.count == 1)
        let (_, second) = try library.perform([.create("copy", 1, ifDuplicate: .create)])
        #expect(second["copy"] != nil && second["copy"] != first)
    }

    @Test func `a precondition refuses an entity that has changed meanwhile`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        let stale = try #require(library.asset(id)?.revision)
        try library.perform(.updateAsset(.init(id: .id(id), set: AssetPatch(rating: 1), ifRevision: stale)))
        let error = #expect(throws: RPCError.self) {
            try library.perform(
                .updateAsset(.init(id: .id(id), set: AssetPatch(rating: 1))),
                .updateAsset(.init(id: .id(id), set: AssetPatch(rating: 2), ifRevision: stale))
            )
        }
        #expect(error?.name == "conflict" && error?.data["request"] == 1)
        #expect(library.asset(id)?.rating == 1)
    }

    @Test func `a transaction changes at most as many entities as its limit`() throws {
        var library = InMemoryLibrary()
        let ids = try (1...6).map { try library.add($0) }
        let album = try library.addAlbum("A", ids)
        for request in [
            ChangeRequest.deleteAssets(.init(ids: ids)), .deleteCollections(.init(ids: [album])),
        ] {
            let error = #expect(throws: RPCError.self) { try library.perform(request, limit: 5) }
            #expect(error?.name == "limit_exceeded")
        }
        #expect(library.snapshot.assets.count == 6)
    }

    @Test func `a transaction names a limited number of objects, also if it changes none of them`() throws {
        var library = InMemoryLibrary()
        let album = try library.addAlbum("A", [library.add(1)])
        var random = SeededRandom(seed: 3)
        let ids = (0..<501).map { ObjectID(.asset, milliseconds: $0, using: &random) }
        let requests = { (ids: [ObjectID]) -> [ChangeRequest] in
            [
                .updateCollection(.init(id: .id(album), remove: ids)),
                .updateCollection(.init(id: .id(album), edits: [.remove(ids)])),
            ]
        }
        for request in requests(Array(ids.dropLast())) {
            #expect(try library.perform(request, limit: 5).collections.isEmpty)
        }
        #expect(library.prefetched.value == 0, "no asset that is not a member is read")
        for request in requests(ids) {
            #expect(throws: ChangeError.tooManyNames(limit: 500)) { try library.perform(request, limit: 5) }
        }
    }

    @Test func `the levels below a folder that moves count against the limit of levels`() throws {
        var library = InMemoryLibrary()
        // Adds folders, each in the one before; returns the first and the last one.
        func chain(_ count: Int) throws -> (first: ObjectID, last: ObjectID) {
            let changes = (0..<count).map { number in
                let parent: ObjectReference? = number == 0 ? nil : .placeholder("\(number - 1)")
                return PreparedChange(.createList(.init(ref: "\(number)", title: "L", parent: parent)))
            }
            let (_, ids) = try library.perform(changes)
            return (try #require(ids["0"]), try #require(ids["\(count - 1)"]))
        }
        let (upper, lower, single) = (try chain(40), try chain(24), try chain(1))
        let move = { (child: ObjectID) in
            ChangeRequest.updateList(.init(id: .id(upper.last), edits: [.add([.id(child)])]))
        }
        try library.perform(.updateList(.init(id: .id(lower.last), edits: [.add([.id(single.first)])])))
        let tooDeep = ChangeError.tooDeep(limit: 64)
        #expect(throws: tooDeep) { try library.perform(move(lower.first)) }
        #expect(throws: tooDeep, "also below a folder that the same transaction has made") {
            try library.perform(
                .createList(.init(ref: "new", title: "L")),
                .updateList(.init(id: .placeholder("new"), edits: [.add([.id(lower.first)])])),
                .updateList(.init(id: .id(upper.last), edits: [.add([.placeholder("new")])]))
            )
        }
        try library.perform(.deleteLists(.init(ids: [single.first])))
        try library.perform(move(lower.first))
        #expect(library.list(lower.first)?.parent == upper.last)
    }

    @Test func `the albums of an asset are bounded so that the asset can always be deleted`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        for number in 0..<20 { _ = try library.perform([.album("\(number)", id)], limit: 120) }
        let error = #expect(throws: RPCError.self) { _ = try library.perform([.album("more", id)], limit: 120) }
        #expect(error?.name == "limit_exceeded")
        try library.perform(.deleteAssets(.init(ids: [id])), limit: 120)
        #expect(library.snapshot.collections.values.allSatisfy { $0.estimatedAssetCount == 0 })
    }

    @Test func `another frame represents a burst after its representative is deleted`() throws {
        var library = InMemoryLibrary()
        let ids = try (1...3).map { try library.add($0, date: Int64(10 - $0), burst: "b") }
        #expect(ids.map { library.asset($0)?.representsBurst } == [true, false, false])
        let record = try library.perform(.deleteAssets(.init(ids: [ids[0]])))
        #expect(record.assets.count == 2)
        #expect(ids.map { library.asset($0)?.representsBurst } == [nil, false, true])
    }

    @Test func `edits keep the base that they began from, and a revert leaves the original`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        let original = try #require(library.asset(id))
        func digest(_ type: ResourceType) -> Int? { library.asset(id)?.resource(type).flatMap { Int($0.digest) } }

        try library.perform([.edit(id, "A", 10)])
        #expect(digest(.fullSizePhoto) == 10 && digest(.adjustmentBasePhoto) == nil)
        #expect(library.asset(id)?.pixelWidth == 200 && library.asset(id)?.adjustmentFormatIdentifier == "A")
        try library.perform([.edit(id, "A", 11)])
        #expect(digest(.fullSizePhoto) == 11 && digest(.adjustmentBasePhoto) == nil)
        try library.perform([.edit(id, "B", 12)])
        #expect(digest(.fullSizePhoto) == 12 && digest(.adjustmentBasePhoto) == 11)
        try library.perform([.edit(id, "B", 13)])
        #expect(digest(.fullSizePhoto) == 13 && digest(.adjustmentBasePhoto) == 11)
        // A could not read B's data and received the current render.
        try library.perform([.edit(id, "A", 15)])
        #expect(digest(.fullSizePhoto) == 15 && digest(.adjustmentBasePhoto) == 13)
        let error = #expect(throws: RPCError.self) {
            try library.perform([.edit(id, "A", 14, if: original.contentRevision)])
        }
        #expect(error?.name == "conflict")

        let record = try library.perform(.revertAsset(.init(id: id)))
        #expect(record.assets.first?.isContentChanged == true)
        var reverted = try #require(library.asset(id))
        #expect(reverted.contentRevision != original.contentRevision)
        reverted.revision = original.revision
        reverted.contentRevision = original.contentRevision
        reverted.modificationDate = original.modificationDate
        reverted.contentModificationDate = original.contentModificationDate
        #expect(reverted == original)
    }

    @Test func `synced assets can be neither changed nor deleted`() throws {
        var library = InMemoryLibrary()
        var create = PreparedChange.create("p", 1)
        if case .createAsset(var request) = create.request {
            request.sourceType = .typeiTunesSynced
            create.request = .createAsset(request)
        }
        let id = try #require(try library.perform([create]).1["p"])
        for request in [
            ChangeRequest.updateAsset(.init(id: .id(id), set: AssetPatch(rating: 1))), .deleteAssets(.init(ids: [id])),
        ] {
            let error = #expect(throws: RPCError.self) { try library.perform(request) }
            #expect(error?.name == "change_not_supported")
        }
    }

    @Test func `later identifiers sort later, even if the clock stops or is set back`() {
        let time = ManualClock(0)
        let source = IdentifierGenerator(now: { time.now })
        var last = source.make(.asset)
        for step in 0..<100_000 {
            if step % 30_000 == 1 { time.advance(by: step < 50_000 ? 5000 : -9000) }
            let next = source.make(.asset)
            guard next > last else {
                Issue.record("\(next) is not after \(last) at step \(step)")
                return
            }
            last = next
        }
    }
}
