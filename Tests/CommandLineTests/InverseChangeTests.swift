import Contracts
import PhotoModel
import Testing

@testable import CommandLine

/// The requests that undo a change.
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

    @Test func `a new album is deleted if it has not changed since`() throws {
        let album = AssetCollection(id: try id("c", 1), revision: Revision(7))
        let inverse = try InverseChange(of: record(collections: [.init(before: nil, after: album)], lists: [root]))
        #expect(
            inverse.requests == [
                .updateCollection(.init(id: .id(album.id), ifRevision: Revision(7))),
                .deleteCollections(.init(ids: [album.id])),
            ]
        )
    }

    @Test func `new folders are deleted with the new folders in them, if they have not changed since`() throws {
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
        // A change of only the count cannot be undone.
        #expect(throws: CommandFailure.self) { try InverseChange(of: record(lists: [root])) }
    }

    @Test func `an edit is undone only if it is the only change of the transaction`() throws {
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

    @Test func `assets are restored from the trash if they have not changed since`() throws {
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

    /// Returns the record of an asset being added to an album.
    private func added(_ asset: Int, before: Int64, after: Int64) throws -> ChangeRecord {
        let album = try id("c", 1)
        var (old, new) = (Asset(id: try id("a", asset)), Asset(id: try id("a", asset)))
        new.memberships = [Membership(collection: album, key: OrderKey.after(nil))]
        new.revision = Revision(after)
        old.revision = Revision(before)
        let change = EntityChange(
            before: AssetCollection(id: album, revision: Revision(before)),
            after: AssetCollection(id: album, revision: Revision(after))
        )
        return record(assets: [.init(before: old, after: new)], collections: [change])
    }

    @Test func `changes of an album are undone one after another, if nothing else has changed it`() throws {
        let album = try id("c", 1)
        let later = try InverseChange(of: added(2, before: 7, after: 8))
        let revisions = try #require(later.albums[album])
        #expect(revisions.before == Revision(7) && revisions.after == Revision(8))
        let undone = [album: InverseChange.UndoneAlbum(before: revisions.before, now: Revision(9))]

        var earlier = try InverseChange(of: added(1, before: 6, after: 7))
        try earlier.updateConditions(undone)
        let asset = try id("a", 1)
        #expect(
            earlier.requests == [
                .updateCollection(.init(id: .id(album), remove: [asset], ifRevision: Revision(9)))
            ]
        )
        var other = try InverseChange(of: added(1, before: 5, after: 6))
        let error = #expect(throws: CommandFailure.self) { try other.updateConditions(undone) }
        #expect(error?.name == ErrorCode.conflict.rawValue)
    }

    @Test func `the error names the deletion of an asset, even if the asset was in an album`() throws {
        let change = try added(1, before: 6, after: 7)
        let deleted = EntityChange(before: change.assets[0].after, after: nil)
        let error = #expect(throws: CommandFailure.self) {
            try InverseChange(of: record(assets: [deleted], collections: change.collections))
        }
        #expect(error?.message.hasPrefix("the deletion of") == true, "\(error as Any)")
    }
}
