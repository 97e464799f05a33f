import Contracts
import PhotoModel
import Testing

@testable import CommandLine

/// The requests that take a change back.
@Suite(.timeLimit(.minutes(1)))
struct InverseChangeTests {
    private func id(_ kind: Character, _ number: Int) throws -> ObjectID {
        try #require(ObjectID("\(kind)0000000000000000000000000\(number)"))
    }

    private func record(
        assets: [EntityChange<Asset>] = [],
        collections: [EntityChange<AssetCollection>] = [],
        lists: [EntityChange<CollectionList>] = []
    ) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: 7,
            library: String(repeating: "0", count: 32),
            date: 0,
            origin: ChangeOrigin(identity: "uid:0", client: "safelight")
        )
        (record.assets, record.collections, record.lists) = (assets, collections, lists)
        return record
    }

    /// The root folder, with one child more than before.
    private var root: EntityChange<CollectionList> {
        let before = CollectionList(id: .root, revision: Revision(1))
        var after = CollectionList(id: .root, revision: Revision(7))
        (after.childCount, after.modificationDate) = (1, 5)
        return EntityChange(before: before, after: after)
    }

    @Test func `a new album is deleted if it is unchanged since`() throws {
        let album = AssetCollection(id: try id("c", 1), revision: Revision(7))
        let inverse = try InverseChange(of: record(collections: [.init(before: nil, after: album)], lists: [root]))
        #expect(
            inverse.requests == [
                .updateCollection(.init(id: .id(album.id), ifRevision: Revision(7))),
                .deleteCollections(.init(ids: [album.id])),
            ]
        )
    }

    @Test func `new folders are deleted with the new ones in them, if they are unchanged since`() throws {
        var outer = CollectionList(id: try id("l", 1), revision: Revision(7))
        var inner = CollectionList(id: try id("l", 2), revision: Revision(7))
        (outer.parent, inner.parent) = (.root, outer.id)
        let inverse = try InverseChange(
            of: record(lists: [root, .init(before: nil, after: outer), .init(before: nil, after: inner)])
        )
        #expect(
            inverse.requests == [
                .updateList(.init(id: .id(outer.id), ifRevision: Revision(7))),
                .updateList(.init(id: .id(inner.id), ifRevision: Revision(7))),
                .deleteLists(.init(ids: [outer.id])),
            ]
        )
    }

    @Test func `a folder that was renamed, moved or deleted is refused`() throws {
        let before = CollectionList(id: try id("l", 1), revision: Revision(1))
        var (renamed, moved) = (before, before)
        renamed.title = "Trips"
        moved.parent = try id("l", 2)
        for after in [renamed, moved, nil] {
            let error = #expect(throws: CommandFailure.self) {
                try InverseChange(of: record(lists: [root, .init(before: before, after: after)]))
            }
            #expect(error?.name == ErrorCode.requestNotSupported.rawValue)
        }
        // Counts alone are no change of their own.
        #expect(throws: CommandFailure.self) { try InverseChange(of: record(lists: [root])) }
    }

    @Test func `an edit is taken back alone, because it is a request of its own`() throws {
        func edited(_ number: Int) throws -> EntityChange<Asset> {
            let before = Asset(id: try id("a", number), revision: Revision(3), contentRevision: Revision(3))
            var after = Asset(id: before.id, revision: Revision(7), contentRevision: Revision(7))
            after.adjustmentFormatIdentifier = "safelight"
            return EntityChange(before: before, after: after)
        }
        let before = Asset(id: try id("a", 3), revision: Revision(3))
        var after = Asset(id: before.id, revision: Revision(7))
        after.rating = 4
        let rated = EntityChange(before: before, after: after)
        #expect(try InverseChange(of: record(assets: [edited(1)])).edits.map(\.asset) == [id("a", 1)])
        for assets in [[try edited(1), try edited(2)], [try edited(1), rated]] {
            let error = #expect(throws: CommandFailure.self) { try InverseChange(of: record(assets: assets)) }
            #expect(error?.name == ErrorCode.requestNotSupported.rawValue)
        }
    }

    @Test func `assets are restored from the trash if they are unchanged since`() throws {
        let changes = try (1...2).map { number in
            let before = Asset(id: try id("a", number), revision: Revision(3))
            var after = Asset(id: before.id, revision: Revision(7))
            after.trashedDate = 5
            return EntityChange(before: before, after: after)
        }
        let ids = try [id("a", 1), id("a", 2)]
        #expect(
            try InverseChange(of: record(assets: changes)).requests
                == ids.map { .updateAsset(.init(id: .id($0), ifRevision: Revision(7))) }
                + [.restoreAssets(.init(ids: ids))]
        )
    }
}
