import Foundation
import PhotoModel
import TestSupport
import Testing

@testable import PhotoKit

extension PhotoKitTests {
    /// The details of a change, for results and objects that the program references.
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct Details {
        @Test(.spec("S-26", "S-29", "S-65", "S-67"))
        func `a result whose album, moment or folder was deleted is empty, searchable and countable`() async throws {
            try await LibraryFixture.with("gone", services: [.catalog, .changeBroker]) { _ in
                let library = PHPhotoLibrary.shared()
                let photos = try LibraryFixture.importImages(2)
                var ids: [String] = []
                try library.performChangesAndWait {
                    let album = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "Gone")
                    album.addAssets([photos[0]])
                    let folder = PHCollectionListChangeRequest.creationRequestForCollectionList(withTitle: "Gone too")
                    let inner = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "Inside")
                    folder.addChildCollections([inner.placeholderForCreatedAssetCollection])
                    ids = [
                        album.placeholderForCreatedAssetCollection.localIdentifier,
                        folder.placeholderForCreatedCollectionList.localIdentifier,
                    ]
                }
                let album = try #require(
                    PHAssetCollection.fetchAssetCollections(withLocalIdentifiers: ids, options: nil).firstObject
                )
                let folder = try #require(
                    PHCollectionList.fetchCollectionLists(withLocalIdentifiers: ids, options: nil).firstObject
                )
                let moments = PHAssetCollection.fetchAssetCollectionsContaining(photos[1], with: .moment, options: nil)
                let moment = try #require(moments.firstObject)
                let inAlbum = PHAsset.fetchAssets(in: album, options: nil)
                let inMoment = PHAsset.fetchAssets(in: moment, options: nil)
                let inFolder = PHCollection.fetchCollections(in: folder, options: nil)
                let inner = try #require(inFolder.firstObject)
                #expect(inAlbum.contains(photos[0]) && inMoment.contains(photos[1]) && inFolder.contains(inner))
                let observer = RecordingObserver()
                library.register(observer)

                try library.performChangesAndWait {
                    PHAssetCollectionChangeRequest.deleteAssetCollections([album])
                    PHCollectionListChangeRequest.deleteCollectionLists([folder])
                    PHAssetChangeRequest(for: photos[1]).isHidden = true
                }
                let change = try #require(await observer.changes.next())
                let noAlbum = try #require(change.changeDetails(for: inAlbum)).fetchResultAfterChanges
                let noMoment = try #require(change.changeDetails(for: inMoment)).fetchResultAfterChanges
                let noFolder = try #require(change.changeDetails(for: inFolder)).fetchResultAfterChanges
                for (empty, photo) in [(noAlbum, photos[0]), (noMoment, photos[1])] {
                    #expect(empty.isEmpty && empty.firstObject == nil)
                    #expect(!empty.contains(photo) && empty.index(of: photo) == NSNotFound)
                    #expect(empty.index(of: photo, in: NSRange(location: 0, length: 10)) == NSNotFound)
                    #expect(empty.countOfAssets(with: .image) == 0)
                    #expect(empty.error == nil, "no request was sent, so none was refused")
                }
                #expect(noFolder.isEmpty && !noFolder.contains(inner) && noFolder.error == nil)
                let same = PHFetchResultChangeDetails(from: noAlbum, to: noAlbum)
                #expect(same.hasIncrementalChanges && same.removedIndexes == [] && same.insertedIndexes == [])

                // The next change does not affect a result that was empty before.
                try library.performChangesAndWait { PHAssetChangeRequest(for: photos[0]).isFavorite = true }
                let next = try #require(await observer.changes.next())
                #expect(next.changeDetails(for: noAlbum) == nil && next.changeDetails(for: noMoment) == nil)

                // The history no longer includes the token of a result: it is fetched again, in a deleted album.
                let fetch = FetchDescription(.assets, in: album.id)
                let expired = PHFetchResult<PHAsset>(
                    fetch,
                    ChangeToken(library: String(repeating: "0", count: 32), sequence: 1),
                    count: 1,
                    library.connection,
                    Interest(fetch),
                    isIncremental: true
                )
                let lost = try #require(next.changeDetails(for: expired))
                #expect(!lost.hasIncrementalChanges && lost.fetchResultAfterChanges.isEmpty)
            }
        }

        @Test(.spec("S-67", "S-68", "D1"))
        func `changed objects are in the order of the changed indexes, also if they move`() async throws {
            try await LibraryFixture.with("order", services: [.catalog, .changeBroker]) { _ in
                let library = PHPhotoLibrary.shared()
                let photos = try LibraryFixture.importImages(4).sorted { $0.localIdentifier < $1.localIdentifier }
                // The last one has the smallest identifier, which decides between equal dates.
                let order = [photos[3], photos[1], photos[2], photos[0]]
                for asset in order.reversed() {
                    try library.performChangesAndWait { PHAssetChangeRequest(for: asset).rating = 1 }
                }
                let options = PHFetchOptions()
                options.sortDescriptors = [NSSortDescriptor(key: "modificationDate", ascending: false)]
                let before = PHAsset.fetchAssets(with: options)
                #expect(Array(before) == order)
                let observer = RecordingObserver()
                library.register(observer)

                try library.performChangesAndWait {
                    PHAssetChangeRequest(for: order[0]).isFavorite = true
                    PHAssetChangeRequest(for: order[3]).isFavorite = true
                    PHAssetChangeRequest.deleteAssets([order[1]])
                }
                let change = try #require(await observer.changes.next())
                let details = try #require(change.changeDetails(for: before))
                #expect(Array(details.fetchResultAfterChanges) == [order[3], order[0], order[2]])
                #expect(details.removedIndexes == [1] && details.hasMoves)
                #expect(details.changedIndexesBefore == [0, 3] && details.changedIndexesAfter == [0, 1])
                // The list after the removal and before the moves.
                let middle = [order[0], order[2], order[3]]
                let indexes = try #require(details.changedIndexes)
                #expect(indexes == [0, 2])
                for (index, object) in zip(indexes, details.changedObjects) { #expect(middle[index] == object) }
                #expect(details.changedObjects.count == 2 && details.changedObjects.allSatisfy(\.isFavorite))
                // The objects are those after the change, and programs request the details of their change.
                for object in details.changedObjects {
                    #expect(change.changeDetails(for: object)?.objectAfterChanges?.isFavorite == true)
                }
            }
        }

        @Test(.spec("S-65", "S-66"))
        func `the details of a change never have an older object than the given one`() async throws {
            try await LibraryFixture.with("fresh", services: [.catalog, .changeBroker]) { _ in
                let library = PHPhotoLibrary.shared()
                let photo = try #require(try LibraryFixture.importImages(1).first)
                try library.performChangesAndWait {
                    _ = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "First")
                }
                func fetchPhoto() throws -> PHAsset { try #require(PHAsset.fetchAssets(with: nil).firstObject) }
                func fetchAlbum() throws -> PHAssetCollection {
                    let albums = PHAssetCollection.fetchAssetCollections(with: .album, subtype: .any, options: nil)
                    return try #require(albums.firstObject)
                }
                let album = try fetchAlbum()
                let observer = RecordingObserver()
                library.register(observer)
                var (photos, albums) = ([photo], [album])
                for (isFavorite, title) in [(true, "Second"), (false, "Third")] {
                    try library.performChangesAndWait {
                        PHAssetChangeRequest(for: photo).isFavorite = isFavorite
                        PHAssetCollectionChangeRequest(for: album)?.title = title
                    }
                    photos.append(try fetchPhoto())
                    albums.append(try fetchAlbum())
                }
                let first = try #require(await observer.changes.next())
                #expect(first.changeDetails(for: photos[0])?.objectAfterChanges?.isFavorite == true)
                #expect(first.changeDetails(for: photos[1])?.objectAfterChanges?.isFavorite == true)
                #expect(first.changeDetails(for: photos[2]) == nil)
                #expect(first.changeDetails(for: albums[0])?.objectAfterChanges?.localizedTitle == "Second")
                #expect(first.changeDetails(for: albums[1])?.objectAfterChanges?.localizedTitle == "Second")
                #expect(first.changeDetails(for: albums[2]) == nil)
                let second = try #require(await observer.changes.next())
                #expect(second.changeDetails(for: photos[1])?.objectAfterChanges?.isFavorite == false)
                #expect(second.changeDetails(for: photos[2])?.objectAfterChanges?.isFavorite == false)
                #expect(second.changeDetails(for: albums[2])?.objectAfterChanges?.localizedTitle == "Third")
                let after = try #require(first.changeDetails(for: photos[0])?.objectAfterChanges)
                #expect(first.changeDetails(for: after)?.objectAfterChanges?.isFavorite == true)
                #expect(second.changeDetails(for: after)?.objectAfterChanges?.isFavorite == false)

                // Revisions of different histories cannot be compared.
                let restored = PHAsset(
                    photos[2].asset,
                    library.connection,
                    photos[2].interest,
                    history: String(repeating: "0", count: 32)
                )
                #expect(first.changeDetails(for: restored)?.objectAfterChanges?.isFavorite == true)
            }
        }
    }
}
