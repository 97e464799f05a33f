import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of the import of bytes that the library has already.
@Suite(.timeLimit(.minutes(1)))
struct DuplicateRulesTests {
    /// Applies requests to a library; returns the reply too.
    private static func perform(
        _ changes: [PreparedChange],
        _ library: InMemoryLibrary
    ) throws -> (result: TransactionResult, reply: PerformChanges.Result) {
        var random = SeededRandom(seed: 5)
        var transaction = ChangeTransaction(state: library, sequence: 100, now: 100) { kind in
            ObjectID(kind, milliseconds: 2, using: &random)
        }
        try transaction.apply(changes)
        let result = try transaction.finish()
        let token = ChangeToken(library: String(repeating: "0", count: 32), sequence: 100)
        return (result, transaction.reply(token: token, isChanged: !result.isEmpty))
    }

    @Test(.spec("S-09", "P-23", "T-28"))
    func `importing the bytes of a trashed asset restores it with the properties to set, or creates an asset`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1, date: 5)
        try library.perform(.trashAssets(.init(ids: [id])))
        let set = AssetPatch(isFavorite: true, caption: .some("again"))

        let (result, reply) = try Self.perform([.create("p", 1, set: set)], library)
        let after = try #require(result.assets.first?.after)
        #expect(result.assets.count == 1 && after.id == id && after.trashedDate == nil)
        #expect(after.isFavorite && after.caption == "again" && after.creationDate == 5)
        #expect(reply.duplicates == ["p"] && reply.restored == [id] && reply.id("p") == id && reply.ignored.isEmpty)

        for rule in [DuplicateRule.createIfTrashed, .create] {
            let (result, reply) = try Self.perform([.create("p", 1, ifDuplicate: rule)], library)
            #expect(result.assets.map(\.before) == [nil] && reply.duplicates.isEmpty && reply.restored.isEmpty)
        }
        // An asset that is not in the trash is preferred.
        let (_, placeholders) = try library.perform([.create("p", 1, ifDuplicate: .createIfTrashed)])
        for rule in [DuplicateRule.createIfTrashed, .useExisting] {
            let (result, reply) = try Self.perform([.create("p", 1, ifDuplicate: rule)], library)
            #expect(result.isEmpty && reply.id("p") == placeholders["p"] && reply.restored.isEmpty)
        }
    }

    @Test func `the reply names the source type, burst and sidecar that an existing asset cannot be given`() throws {
        var library = InMemoryLibrary()
        _ = try library.add(1)
        var change = PreparedChange.create("p", 1)
        guard case .createAsset(var request) = change.request else { return }
        request.burst = NewBurst(identifier: "B")
        request.sidecar = NewResource(source: .attachment(1))
        request.sourceType = .typeCloudShared
        change.request = .createAsset(request)
        let (result, reply) = try Self.perform([.create("q", 2), change], library)
        #expect(result.assets.count == 1)
        #expect(reply.ignored == [.init(request: 1, ref: "p", members: ["sourceType", "burst", "sidecar"])])

        let frames = try (3...4).map { try library.add($0, burst: "B") }
        for (number, isRepresentative) in [(3, true), (4, true), (4, false)] {
            var change = PreparedChange.create("p", number)
            guard case .createAsset(var request) = change.request else { return }
            request.burst = NewBurst(identifier: "B", isRepresentative: isRepresentative)
            change.request = .createAsset(request)
            let isGiven = number == 3 || !isRepresentative
            let (result, reply) = try Self.perform([change], library)
            #expect(result.isEmpty && reply.id("p") == frames[number - 3])
            #expect(reply.ignored.map(\.members) == (isGiven ? [] : [["burst"]]))
        }
    }

    @Test(.spec("P-23"))
    func `the reply names the files and properties that an existing asset cannot be given`() throws {
        var library = InMemoryLibrary()
        func create(_ raw: Int, _ set: AssetPatch = AssetPatch()) -> PreparedChange {
            var change = PreparedChange.create("p", 1, set: set)
            change.resources.append(.bytes(raw, .alternatePhoto, ExtractedMetadata()))
            return change
        }
        let id = try #require(try library.perform([create(2)]).1["p"])
        let cases: [(raw: Int, set: AssetPatch, ignored: [[String]])] = [
            (2, AssetPatch(), []), (3, AssetPatch(), [["resources"]]),
            (2, AssetPatch(isUserPick: true), [["set"]]), (2, AssetPatch(representsBurst: true), [["set"]]),
        ]
        for (raw, set, ignored) in cases {
            let (result, reply) = try Self.perform([create(raw, set)], library)
            #expect(result.isEmpty && reply.id("p") == id && reply.ignored.map(\.members) == ignored)
        }
        let (result, reply) = try Self.perform([create(2, AssetPatch(isFavorite: true, isUserPick: true))], library)
        #expect(result.assets.first?.after?.isFavorite == true && reply.ignored.map(\.members) == [["set"]])

        // A synced asset is not changed.
        library.snapshot.assets[id]?.sourceType = .typeiTunesSynced
        library.snapshot.assets[id]?.resources.removeLast()
        let (synced, answer) = try Self.perform([create(2)], library)
        #expect(synced.isEmpty && answer.ignored.map(\.members) == [["resources", "sourceType"]])
    }

    @Test(.spec("P-23", "T-27"))
    func `keywords are added to an existing asset and removed from it, if it can be changed`() throws {
        var library = InMemoryLibrary()
        let id = try library.add(1, set: AssetPatch(keywords: ["a", "b"]))
        var change = PreparedChange.create("p", 1, set: AssetPatch(rating: 3))
        guard case .createAsset(var request) = change.request else { return }
        (request.addKeywords, request.removeKeywords) = (["c", "b"], ["a", "x"])
        change.request = .createAsset(request)
        let (result, reply) = try Self.perform([change], library)
        let after = try #require(result.assets.first?.after)
        #expect(after.id == id && after.keywords == ["b", "c"] && after.rating == 3)
        #expect(reply.id("p") == id && reply.ignored.isEmpty)
        library.snapshot.assets[id]?.sourceType = .typeiTunesSynced
        let (synced, answer) = try Self.perform([change], library)
        #expect(synced.isEmpty)
        #expect(answer.ignored.map(\.members) == [["set", "addKeywords", "removeKeywords", "sourceType"]])
    }

    @Test(.spec("P-23"))
    func `if a transaction deletes the first asset with some bytes, importing the bytes yields the next one`() throws {
        var library = InMemoryLibrary()
        let ids = try (0..<2).map { _ in
            try #require(try library.perform([.create("p", 1, ifDuplicate: .create)]).1["p"])
        }.sorted()
        for request in [ChangeRequest.deleteAssets(.init(ids: [ids[0]])), .trashAssets(.init(ids: [ids[0]]))] {
            let (result, reply) = try Self.perform([PreparedChange(request), .create("p", 1)], library)
            #expect(result.assets.map(\.id) == [ids[0]] && reply.id("p") == ids[1] && reply.restored.isEmpty)
        }
    }

    @Test(.spec("S-30", "S-31")) func `transient collections and lists cannot be changed`() throws {
        var library = InMemoryLibrary()
        var random = SeededRandom(seed: 1)
        let (collection, list) = (
            ObjectID.transient(.assetCollection, using: &random), ObjectID.transient(.collectionList, using: &random)
        )
        let requests: [ChangeRequest] = [
            .updateCollection(.init(id: .id(collection), title: "x")), .deleteCollections(.init(ids: [collection])),
            .updateList(.init(id: .id(list), title: "x")), .deleteLists(.init(ids: [list])),
            .createCollection(.init(title: "x", parent: .id(list))),
            .createList(.init(title: "x", add: [.id(collection)])),
        ]
        for request in requests {
            let error = #expect(throws: RPCError.self) { try library.perform(request) }
            #expect(error?.name == "change_not_supported", "\(request.name)")
        }
    }

    @Test(.spec("S-08")) func `a photo of no special kind is generic, and a damaged original cannot be uploaded`()
        throws
    {
        var library = InMemoryLibrary()
        let id = try library.add(1)
        func albums() -> Set<SmartAlbum> {
            Set(SmartAlbum.albums(inMask: library.asset(id).map(SmartAlbum.mask) ?? 0))
        }
        #expect(albums() == [.generic, .recentlyAdded, .userLibrary])
        library.snapshot.assets[id]?.resources[0].damage = "damaged from row 1 of 300 on"
        try library.perform(.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: true, isHidden: true))))
        #expect(albums() == [.generic, .recentlyAdded, .userLibrary, .favorites, .allHidden, .unableToUpload])
        library.snapshot.assets[id]?.resources[0].contentType = "com.adobe.raw-image"
        #expect(albums().contains(.raw) && !albums().contains(.generic))
        let asset = try #require(library.asset(id))
        for album in SmartAlbum.allCases { #expect(album.contains(asset) == albums().contains(album), "\(album)") }
    }
}
