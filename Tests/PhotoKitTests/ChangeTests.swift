import Foundation
import Synchronization
import TestSupport
import Testing

@testable import PhotoKit

/// Records the changes that it receives.
final class RecordingObserver: PHPhotoLibraryChangeObserver {
    let changes = Recorded<PHChange>()

    func photoLibraryDidChange(_ changeInstance: PHChange) { changes.add(changeInstance) }
}

/// Unregisters another observer when it is notified.
private final class UnregisteringObserver: PHPhotoLibraryChangeObserver {
    let changes = Recorded<PHChange>()
    let other: RecordingObserver

    init(_ other: RecordingObserver) { self.other = other }

    func photoLibraryDidChange(_ changeInstance: PHChange) {
        PHPhotoLibrary.shared().unregisterChangeObserver(other)
        changes.add(changeInstance)
    }
}

extension PhotoKitTests {
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct Changes {
        @Test(.spec("S-63", "S-64", "S-65", "S-66", "S-67", "S-68", "D1", "D2", "D6"))
        func `observers are notified, and change details convert a result to the next one`() async throws {
            try await LibraryFixture.with("observe", services: [.catalog, .changeBroker]) { _ in
                let photos = try LibraryFixture.importImages(3)
                let options = PHFetchOptions()
                options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: false)]
                let before = PHAsset.fetchAssets(with: options)
                #expect(Array(before) == [photos[2], photos[1], photos[0]])
                let observer = RecordingObserver()
                let library = PHPhotoLibrary.shared()
                library.register(observer)

                // The second photo becomes the newest (V4), and the third one is deleted.
                let newest = try #require(photos[2].creationDate).addingTimeInterval(86_400)
                try library.performChangesAndWait {
                    PHAssetChangeRequest(for: photos[1]).creationDate = newest
                }
                let change = try #require(await observer.changes.next())
                #expect(change.originClient == "photokit-tests")
                let moved = try #require(change.changeDetails(for: before))
                #expect(moved.hasIncrementalChanges && moved.hasMoves)
                #expect(moved.fetchResultBeforeChanges === before)
                #expect(moved.changedIndexes == [1])
                #expect(moved.changedIndexesAfter == [0] && moved.changedIndexesBefore == [1])
                var moves: [[Int]] = []
                moved.enumerateMoves { moves.append([$0, $1]) }
                #expect(moves == [[0, 1], [1, 0]])
                let after = moved.fetchResultAfterChanges
                #expect(Array(after) == [photos[1], photos[2], photos[0]])
                let object = try #require(change.changeDetails(for: photos[1]))
                #expect(object.objectBeforeChanges === photos[1])
                #expect(object.objectAfterChanges?.creationDate == newest)
                #expect(!object.assetContentChanged && !object.objectWasDeleted)
                #expect(change.changeDetails(for: photos[0]) == nil)
                // A result that was fetched after the change has no changes.
                #expect(change.changeDetails(for: PHAsset.fetchAssets(with: options)) == nil)

                try library.performChangesAndWait { PHAssetChangeRequest.deleteAssets([photos[2]]) }
                let second = try #require(await observer.changes.next())
                let removal = try #require(second.changeDetails(for: after))
                #expect(removal.removedIndexes == [1] && removal.insertedIndexes == [] && !removal.hasMoves)
                #expect(removal.removedObjects == [photos[2]])
                #expect(second.changeDetails(for: photos[2])?.objectWasDeleted == true)
                // The details of the first result include both changes.
                let whole = try #require(second.changeDetails(for: before))
                #expect(Array(whole.fetchResultAfterChanges) == [photos[1], photos[0]])
                let difference = PHFetchResultChangeDetails(from: before, to: removal.fetchResultAfterChanges)
                #expect(difference.removedIndexes == [0])

                library.unregisterChangeObserver(observer)
                try library.performChangesAndWait { PHAssetChangeRequest(for: photos[0]).isFavorite = true }
                // The next observer's first change is the next transaction.
                let other = RecordingObserver()
                library.register(other)
                try library.performChangesAndWait { PHAssetChangeRequest(for: photos[0]).isFavorite = false }
                let third = try #require(await other.changes.next())
                #expect(third.changeDetails(for: photos[0])?.objectAfterChanges?.isFavorite == false)
                #expect(observer.changes.all.count == 2)
            }
        }

        @Test(.spec("S-24", "S-63"))
        func `observers are notified only of changes to objects that are still referenced`() async throws {
            try await LibraryFixture.with("interest", services: [.catalog, .changeBroker]) { _ in
                let ids = try LibraryFixture.importImages(2).map(\.localIdentifier)
                let library = PHPhotoLibrary.shared()
                let options = PHFetchOptions()
                options.predicate = NSPredicate(format: "favorite == YES")
                options.wantsIncrementalChangeDetails = false
                let favorites = PHAsset.fetchAssets(with: options)
                let observer = RecordingObserver()
                library.register(observer)
                func change(_ id: String, _ set: @escaping (PHAssetChangeRequest) -> Void) throws {
                    // The fetched objects are released before the change.
                    let asset = PHAsset.fetchAssets(withLocalIdentifiers: [id], options: nil).firstObject
                    guard let asset else { return }
                    try library.performChangesAndWait { set(PHAssetChangeRequest(for: asset)) }
                }
                try await PHPhotoLibrary.shared().performChanges {
                    _ = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "Unrelated")
                }
                try change(ids[0]) { $0.isFavorite = true }
                let notification = try #require(await observer.changes.next())
                let details = try #require(notification.changeDetails(for: favorites))
                #expect(!details.hasIncrementalChanges && details.removedIndexes == nil)
                #expect(details.fetchResultAfterChanges.map(\.localIdentifier) == [ids[0]])
                #expect(observer.changes.all.count == 1)

                // The object has left its fetch and is still referenced.
                let object = details.fetchResultAfterChanges[0]
                try library.performChangesAndWait { PHAssetChangeRequest(for: object).isFavorite = false }
                #expect(await observer.changes.next()?.changeDetails(for: object) != nil)
                try library.performChangesAndWait { PHAssetChangeRequest(for: object).caption = "held" }
                let edited = try #require(await observer.changes.next()).changeDetails(for: object)
                #expect(edited?.objectAfterChanges?.caption == "held")
            }
        }

        @Test(.spec("S-64"))
        func `an observer that another one has unregistered is not called`() async throws {
            try await LibraryFixture.with("unregister", services: [.catalog, .changeBroker]) { _ in
                let asset = try #require(try LibraryFixture.importImages(1).first)
                let library = PHPhotoLibrary.shared()
                let second = RecordingObserver()
                let first = UnregisteringObserver(second)
                library.register(first)
                library.register(second)
                // All observers have been called for a change before any is called for the next one.
                for isFavorite in [true, false] {
                    try library.performChangesAndWait { PHAssetChangeRequest(for: asset).isFavorite = isFavorite }
                    #expect(await first.changes.next() != nil)
                }
                #expect(second.changes.all.isEmpty)
            }
        }

        @Test(.spec("S-66"))
        func `without the history, objects are compared with the library`() async throws {
            try await LibraryFixture.with("no-history", services: [.catalog]) { _ in
                let library = PHPhotoLibrary.shared()
                let photos = try LibraryFixture.importImages(3)
                try library.performChangesAndWait {
                    PHAssetChangeRequest(for: photos[0]).isFavorite = true
                    PHAssetChangeRequest.deleteAssets([photos[1]])
                }
                let change = PHChange(library.currentChangeToken.token, record: nil, library.connection)
                let changed = try #require(change.changeDetails(for: photos[0]))
                #expect(changed.objectAfterChanges?.isFavorite == true)
                #expect(!changed.assetContentChanged && !changed.objectWasDeleted)
                let deleted = try #require(change.changeDetails(for: photos[1]))
                #expect(deleted.objectWasDeleted && deleted.objectAfterChanges == nil)
                #expect(change.changeDetails(for: photos[2]) == nil)
            }
        }

        @Test(.spec("S-71", "S-72", "S-73", "S-75", "S-76", "S-77", "S-78", "T-19", "T-20", "T-27", "T-29", "P-15"))
        func `a change block is committed as a whole, or fails with a named error`() async throws {
            try await LibraryFixture.with("changes", services: [.catalog]) { _ in
                let library = PHPhotoLibrary.shared()
                let photos = try LibraryFixture.importImages(2)
                let location = CLLocation(latitude: 38.7, longitude: -9.1)
                try await library.performChanges {
                    let change = PHAssetChangeRequest(for: photos[0])
                    #expect(!change.isFavorite && change.creationDate == photos[0].creationDate)
                    change.isFavorite = true
                    change.location = location
                    change.rating = 4
                    change.caption = "A caption"
                    change.addKeyword("sea")
                    change.addKeyword("sun")
                    #expect(change.isFavorite && change.location == location)
                }
                func fetchAgain(_ asset: PHAsset) throws -> PHAsset {
                    try #require(
                        PHAsset.fetchAssets(withLocalIdentifiers: [asset.localIdentifier], options: nil).firstObject
                    )
                }
                let changed = try fetchAgain(photos[0])
                #expect(changed.isFavorite && changed.location == location && changed.rating == 4)
                #expect(changed.keywords.sorted() == ["sea", "sun"] && changed.caption == "A caption")
                // The object that was fetched before keeps its values (S-02).
                #expect(!photos[0].isFavorite)

                // If a file is not an image, the whole block fails.
                let failed = Recorded<(Bool, PHPhotosError?)>()
                library.performChanges {
                    PHAssetChangeRequest(for: photos[1]).isFavorite = true
                    PHAssetCreationRequest.forAsset().addResource(with: .photo, data: Data("text".utf8), options: nil)
                } completionHandler: { success, error in
                    failed.add((success, error as? PHPhotosError))
                }
                let (success, error) = try #require(await failed.next())
                #expect(!success)
                // The error of a photo resource with text has a name, not the code -1.
                #expect(error?.name == "invalid_resource" || error?.name == "unsupported_format")
                #expect(try !fetchAgain(photos[1]).isFavorite)

                // A block in a block is refused (T-29).
                let nested = Recorded<String?>()
                try library.performChangesAndWait {
                    PHAssetChangeRequest(for: photos[1]).isHidden = true
                    library.performChanges {
                    } completionHandler: {
                        nested.add(($1 as? PHPhotosError)?.name)
                    }
                }
                #expect(await nested.next() == "nested_change")
                #expect(try fetchAgain(photos[1]).isHidden)

                // A task that was started in a block may perform changes after it.
                let (ends, end) = AsyncStream.makeStream(of: Void.self)
                let later = Recorded<String>()
                try library.performChangesAndWait {
                    _ = Task {
                        for await _ in ends {}
                        do {
                            try await library.performChanges { PHAssetChangeRequest(for: photos[1]).rating = 2 }
                            later.add("performed")
                        } catch {
                            later.add("\(error)")
                        }
                    }
                }
                end.finish()
                #expect(await later.next() == "performed")
                #expect(try fetchAgain(photos[1]).rating == 2)

                // Successive calls become one edit, because a request has at most 100.
                let album = Mutex<String?>(nil)
                try library.performChangesAndWait {
                    let request = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "Steps")
                    for _ in 0..<51 { for asset in photos { request.addAssets([asset]) } }
                    album.withLock { $0 = request.placeholderForCreatedAssetCollection.localIdentifier }
                }
                #expect(album.withLock { $0 } != nil)

                do {
                    try await library.performChanges {
                        PHAssetChangeRequest.deleteAssets(photos)
                        PHAssetChangeRequest.deleteAssets(photos)
                    }
                    Issue.record("deleted twice")
                } catch PHPhotosError.identifierNotFound {
                    #expect(
                        PHAsset.fetchAssets(withLocalIdentifiers: photos.map(\.localIdentifier), options: nil).count
                            == 2
                    )
                }
                #expect(PHAssetCreationRequest.supportsAssetResourceTypes([1, 9]))
                #expect(!PHAssetCreationRequest.supportsAssetResourceTypes([1, 1]))

                // A file is moved into the library: it is removed after the commit, and only then (T-21).
                let folder = try TemporaryFolder("move")
                let path = try folder.write(TestImages.jpeg(seed: 77), to: "moved.jpg")
                try await library.performChanges {
                    let options = PHAssetResourceCreationOptions()
                    options.shouldMoveFile = true
                    options.originalFilename = "other.jpg"
                    let request = PHAssetCreationRequest.forAsset()
                    request.addResource(with: .photo, fileURL: URL(fileURLWithPath: path), options: options)
                }
                #expect(!FileManager.default.fileExists(atPath: path))
                let options = PHFetchOptions()
                options.predicate = NSPredicate(format: "originalFilename == %@", "other.jpg")
                #expect(PHAsset.fetchAssets(with: options).count == 1)
            }
        }

        @Test func `a block with the maximum number of edits is committed, and a larger one is refused`() async throws {
            try await LibraryFixture.with("edits", services: [.catalog]) { _ in
                let library = PHPhotoLibrary.shared()
                /// Creates photos together with an edit: each has two files and adjustment data.
                func add(_ count: Int) async throws {
                    try await library.performChanges {
                        for number in 0..<count {
                            let request = PHAssetCreationRequest.forAsset()
                            let photo = TestImages.jpeg(width: 32, height: 24, seed: UInt64(number))
                            request.addResource(with: .photo, data: Data(photo), options: nil)
                            guard let placeholder = request.placeholderForCreatedAsset else { return }
                            let output = PHContentEditingOutput(placeholderForCreatedAsset: placeholder)
                            output.adjustmentData = PHAdjustmentData(
                                formatIdentifier: "x",
                                formatVersion: "1",
                                data: Data([1])
                            )
                            try? Data(TestImages.jpeg(width: 24, height: 32)).write(to: output.renderedContentURL)
                            request.contentEditingOutput = output
                        }
                    }
                }
                // 21 of the files are attached, and 63 are uploaded.
                try await add(42)
                for count in [43, 64] {
                    let error = await #expect(throws: PHPhotosError.self) { try await add(count) }
                    #expect(error?.name == "limit_exceeded")
                }
                let assets = PHAsset.fetchAssets(with: PHFetchOptions())
                #expect(assets.count == 42 && assets.firstObject?.pixelWidth == 24)
            }
        }

        @Test func `a date and a size that are not numbers do not stop the program`() async throws {
            try await LibraryFixture.with("nan", services: [.catalog, .thumbnailer]) { _ in
                let asset = try #require(try LibraryFixture.importImages(1).first)
                try await PHPhotoLibrary.shared().performChanges {
                    PHAssetChangeRequest(for: asset).creationDate = Date(timeIntervalSince1970: .nan)
                }
                let error = await #expect(throws: PHPhotosError.self) {
                    try await PHImageManager.default().image(
                        for: asset,
                        targetSize: CGSize(width: CGFloat.nan, height: 100)
                    )
                }
                #expect(error?.name == "invalid_options")
            }
        }

        @Test func `a change is committed even if the program ends without waiting for it`() async throws {
            try await LibraryFixture.with("exit", services: [.catalog]) { fixture in
                // The closure runs in its own process, which inherits the variable.
                setenv("SAFELIGHT_RUN", fixture.folder.file("run"), 1)
                await #expect(processExitsWith: .success) {
                    PHPhotoLibrary.shared().performChanges {
                        _ = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "Last")
                    }
                    exit(0)
                }
                unsetenv("SAFELIGHT_RUN")
                let options = PHFetchOptions()
                options.predicate = NSPredicate(format: "title == %@", "Last")
                let albums = PHAssetCollection.fetchAssetCollections(with: .album, subtype: .any, options: options)
                #expect(albums.count == 1)
            }
        }

        @Test(.spec("T-35", "T-36", "T-37", "T-39"))
        func `the history has each change, and cloud identifiers find objects`() async throws {
            try await LibraryFixture.with("history", services: [.catalog]) { _ in
                let library = PHPhotoLibrary.shared()
                let start = library.currentChangeToken
                let photos = try LibraryFixture.importImages(2)
                try library.performChangesAndWait { PHAssetChangeRequest(for: photos[0]).isHidden = true }
                try library.performChangesAndWait { PHAssetChangeRequest.deleteAssets([photos[1]]) }
                let stored = try JSONEncoder().encode(start)
                let token = try JSONDecoder().decode(PHPersistentChangeToken.self, from: stored)
                let changes = Array(try library.fetchPersistentChanges(since: token))
                #expect(changes.count == 3)
                let details = try changes.map { try $0.changeDetails(for: .asset) }
                #expect(details[0].insertedLocalIdentifiers == Set(photos.map(\.localIdentifier)))
                #expect(details[1].updatedLocalIdentifiers == [photos[0].localIdentifier])
                #expect(details[2].deletedLocalIdentifiers == [photos[1].localIdentifier])
                #expect(changes.last?.changeToken == library.currentChangeToken)
                let other = try #require(PHPersistentChangeToken(stringValue: String(repeating: "0", count: 32) + ".5"))
                #expect {
                    try library.fetchPersistentChanges(since: other)
                } throws: {
                    ($0 as? PHPhotosError)?.code == .persistentChangeTokenExpired
                }

                let id = photos[0].localIdentifier
                let cloud = library.cloudIdentifierMappings(forLocalIdentifiers: [id, "nothing"])
                let identifier = try #require(try cloud[id]?.get())
                #expect(throws: PHPhotosError.self) { try cloud["nothing"]?.get() }
                let back = library.localIdentifierMappings(for: [identifier])
                #expect(try back[identifier]?.get() == id)

                // The photo is in the library twice: both identifiers are returned, and the program chooses.
                let original = try #require(PHAssetResource.assetResources(for: photos[0]).first)
                var bytes = Data()
                for try await part in PHAssetResourceManager.default().data(for: original) { bytes += part }
                let image = try #require(UIImage(data: bytes))
                var copy = ""
                try library.performChangesAndWait {
                    let request = PHAssetChangeRequest.creationRequestForAsset(from: image)
                    copy = request.placeholderForCreatedAsset?.localIdentifier ?? ""
                }
                let twice = try #require(library.localIdentifierMappings(for: [identifier])[identifier])
                let ambiguous = #expect(throws: PHPhotosError.self) { try twice.get() }
                #expect(ambiguous?.code == .multipleIdentifiersFound)
                #expect(Set(ambiguous?.localIdentifiers ?? []) == [id, copy])
                let candidates = ambiguous?.errorUserInfo[PHLocalIdentifiersErrorKey] as? [String]
                #expect(candidates?.count == 2 && candidates == ambiguous?.localIdentifiers)
            }
        }
    }
}
