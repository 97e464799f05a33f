import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of identifiers that a client gives to new objects, so that it knows them before the commit.
@Suite(.timeLimit(.minutes(1)))
struct ChosenIdentifierTests {
    private static let now: Int64 = 1_750_000_000_000_000

    private static func id(_ kind: ObjectKind, milliseconds: Int64 = now / 1000) -> ObjectID {
        var random = SystemRandomNumberGenerator()
        return ObjectID(kind, milliseconds: milliseconds, using: &random)
    }

    private static func create(_ id: ObjectID?, _ number: Int, _ rule: DuplicateRule = .create) -> PreparedChange {
        var change = PreparedChange.create("p", number, ifDuplicate: rule)
        guard case .createAsset(var request) = change.request else { return change }
        request.id = id
        change.request = .createAsset(request)
        return change
    }

    @Test(.spec("S-01", "S-09"))
    func `a new object has the identifier that the client chose`() throws {
        var library = InMemoryLibrary()
        let (asset, album, folder) = (Self.id(.asset), Self.id(.assetCollection), Self.id(.collectionList))
        var newAlbum = ChangeRequest.CreateCollection(ref: "c", title: "Album", add: [.id(asset)])
        newAlbum.id = album
        var newFolder = ChangeRequest.CreateList(ref: "l", title: "Folder", add: [.id(album)])
        newFolder.id = folder
        let changes = [
            Self.create(asset, 1), PreparedChange(.createCollection(newAlbum)), PreparedChange(.createList(newFolder)),
        ]
        let (record, placeholders) = try library.perform(changes, now: Self.now)
        #expect(placeholders == ["p": asset, "c": album, "l": folder])
        #expect(record.assets.map(\.id) == [asset])
        #expect(record.assets.first?.after?.memberships.map(\.collection) == [album])
        #expect(record.collections.first { $0.id == album }?.after?.parent == folder)
    }

    @Test(.spec("S-01"))
    func `an identifier that is taken, of another kind, or more than a day from now is refused`() throws {
        var library = InMemoryLibrary()
        let taken = Self.id(.asset)
        try library.perform([Self.create(taken, 1)], now: Self.now)
        let day: Int64 = 86_400_000
        let refused = [
            taken, Self.id(.asset, milliseconds: Self.now / 1000 - day - 1),
            Self.id(.asset, milliseconds: Self.now / 1000 + day + 1), SmartAlbum.favorites.id, .none,
        ]
        for id in refused {
            #expect(throws: (any Error).self) { try library.perform([Self.create(id, 2)], now: Self.now) }
        }
        // The identifier of a deleted object is refused too.
        try library.perform(.deleteAssets(.init(ids: [taken])))
        #expect(throws: (any Error).self) { try library.perform([Self.create(taken, 5)], now: Self.now) }
        // Two objects of one transaction may not have the same identifier.
        let twice = Self.id(.asset)
        #expect(throws: (any Error).self) {
            try library.perform([Self.create(twice, 3), Self.create(twice, 4)], now: Self.now)
        }
    }

    @Test(.spec("S-01"))
    func `the stored identifier of a deleted object is refused as conflict`() async throws {
        try await CatalogFixture.with(TemporaryFolder("chosen")) { catalog in
            var random = SystemRandomNumberGenerator()
            let now = Int64(Date().timeIntervalSince1970 * 1000)
            var create = ChangeRequest.CreateCollection(title: "Album")
            create.id = ObjectID(.assetCollection, milliseconds: now, using: &random)
            let id = try #require(create.id)
            try await catalog.perform([.createCollection(create)])
            try await catalog.perform([.deleteCollections(.init(ids: [id]))])
            let error = await rpcError { try await catalog.perform([.createCollection(create)]) }
            #expect(error?.name == "conflict")
        }
    }

    @Test(.spec("P-23"))
    func `bytes that the library has yield the existing asset, unless a second asset is requested`() throws {
        var library = InMemoryLibrary()
        let (first, second) = (Self.id(.asset), Self.id(.asset))
        try library.perform([Self.create(first, 1)], now: Self.now)
        let (_, existing) = try library.perform([Self.create(second, 1, .useExisting)], now: Self.now)
        #expect(existing["p"] == first)
        let (_, placeholders) = try library.perform([Self.create(second, 1)], now: Self.now)
        #expect(placeholders["p"] == second)
    }
}
