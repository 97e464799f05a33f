import Foundation
import PhotoKit
import Synchronization
import TestSupport
import Testing

extension PhotoKitTests {
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct FetchResults {
        @Test(.spec("S-25", "S-26", "S-27", "S-28", "S-29"))
        func `a fetch result never changes, and any thread can read its pages`() async throws {
            try await LibraryFixture.with("pages", services: [.catalog], generated: 3000) { _ in
                let options = PHFetchOptions()
                options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: false)]
                let result = PHAsset.fetchAssets(with: options)
                #expect(result.error == nil)
                #expect(result.count > 2500)
                let identifiers = result.map(\.localIdentifier)
                #expect(identifiers.count == result.count && Set(identifiers).count == result.count)
                #expect(result.firstObject?.localIdentifier == identifiers.first)
                #expect(result.lastObject?.localIdentifier == identifiers.last)
                #expect(result[1234].localIdentifier == identifiers[1234])
                #expect(result.object(at: 1234) == result[1234])
                #expect(result.index(of: result[2000]) == 2000)
                #expect(result.index(of: result[2000], in: NSRange(location: 0, length: 100)) == NSNotFound)
                #expect(result.contains(result[7]))
                let some = IndexSet([3, 1, 900])
                #expect(result.objects(at: some).map(\.localIdentifier) == some.map { identifiers[$0] })
                let counts = [PHAssetMediaType.image, .video, .audio, .unknown].map { result.countOfAssets(with: $0) }
                #expect(counts.reduce(0, +) == result.count)
                #expect(counts[1] == result.count { $0.mediaType == .video })

                var enumerated: [Int] = []
                result.enumerateObjects(options: .reverse) { object, index, stop in
                    #expect(object.localIdentifier == identifiers[index])
                    enumerated.append(index)
                    if enumerated.count == 3 { stop.pointee = true }
                }
                #expect(enumerated == [result.count - 1, result.count - 2, result.count - 3])

                // A change does not change the result (S-25).
                let first = try #require(result.firstObject)
                try PHPhotoLibrary.shared().performChangesAndWait { PHAssetChangeRequest.deleteAssets([first]) }
                #expect(result.count == identifiers.count)
                #expect(try await result.objects(in: 0..<600).map(\.localIdentifier) == Array(identifiers[..<600]))
                let later = PHAsset.fetchAssets(with: options)
                #expect(later.count == result.count - 1)

                let wrong = Mutex(0)
                DispatchQueue.concurrentPerform(iterations: 32) { worker in
                    for index in stride(from: worker * 37, to: later.count, by: 501) {
                        if later[index].localIdentifier != identifiers[index + 1] { wrong.withLock { $0 += 1 } }
                    }
                }
                #expect(wrong.withLock { $0 } == 0)
            }
        }

        @Test func `a page whose assets are too large for one message is read in parts`() async throws {
            try await LibraryFixture.with("large", services: [.catalog], generated: 400) { _ in
                let all = Array(PHAsset.fetchAssets(with: nil))
                try #require(all.count > 300)
                let caption = String(repeating: "c", count: 63 << 10)
                for start in stride(from: 0, to: all.count, by: 100) {
                    try PHPhotoLibrary.shared().performChangesAndWait {
                        for asset in all.dropFirst(start).prefix(100) {
                            PHAssetChangeRequest(for: asset).caption = caption
                        }
                    }
                }
                let result = PHAsset.fetchAssets(with: nil)
                #expect(result.error == nil && result.count == all.count)
                #expect(Set(result.map(\.localIdentifier)) == Set(all.map(\.localIdentifier)))
                #expect(result.allSatisfy { $0.caption == caption })
            }
        }

        @Test func `after the library was closed, searches find no object, and no call waits`() async throws {
            try await LibraryFixture.with("closed", services: [.catalog], generated: 200) { fixture in
                let library = try PHPhotoLibrary.connect(LibraryFixture.configuration(of: fixture))
                let result = PHAsset.fetchAssets(with: nil)
                let first = try #require(result.firstObject)
                #expect(result.contains(first))
                await library.close()
                #expect(result.index(of: first) == NSNotFound && !result.contains(first))
                #expect(result.countOfAssets(with: .image) == 0)
                #expect(result.firstObject == first, "a cached page can be read")
                #expect(PHAsset.fetchAssets(with: nil).error != nil)
            }
        }

        @Test(.spec("S-14", "T-40"))
        func `more synchronous calls than there are threads do not wait for each other`() async throws {
            try await LibraryFixture.with("threads", services: [.catalog], generated: 500) { _ in
                // Each task blocks a thread of Swift's pool in every call.
                let counts = await withTaskGroup(of: Int.self) { group in
                    for _ in 0..<64 {
                        group.addTask {
                            let result = PHAsset.fetchAssets(with: nil)
                            return result.reduce(0) { sum, _ in sum + 1 } == result.count ? 1 : 0
                        }
                    }
                    return await group.reduce(0, +)
                }
                #expect(counts == 64)
            }
        }

        @Test(.spec("S-20", "D11", "P-20"))
        func `the library evaluates predicates and sort keys, and unsupported ones have a named error`() async throws {
            try await LibraryFixture.with("predicates", services: [.catalog]) { _ in
                let photos = try LibraryFixture.importImages(3)
                func fetch(_ predicate: NSPredicate) -> PHFetchResult<PHAsset> {
                    let options = PHFetchOptions()
                    options.predicate = predicate
                    options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: true)]
                    return PHAsset.fetchAssets(with: options)
                }
                let day = try #require(photos[1].creationDate)
                #expect(Array(fetch(NSPredicate(format: "creationDate >= %@", day))) == Array(photos[1...]))
                #expect(Array(fetch(NSPredicate(format: "%K == %@", "creationDate", day))) == [photos[1]])
                #expect(
                    fetch(NSPredicate(format: "(mediaSubtypes & %d) != 0", PHAssetMediaSubtype.photoHDR.rawValue))
                        .isEmpty
                )
                let ids = photos[..<2].map(\.localIdentifier)
                #expect(fetch(NSPredicate(format: "localIdentifier IN %@", ids)).count == 2)
                #expect(fetch(NSPredicate(value: false)).isEmpty && fetch(NSPredicate(value: true)).count == 3)
                let late = NSPredicate(format: "creationDate > %@", day)
                let wide = NSPredicate(format: "pixelWidth == %d", 320)
                let both = NSCompoundPredicate(andPredicateWithSubpredicates: [late, wide])
                #expect(Array(fetch(both)) == [photos[2]])
                #expect(fetch(NSCompoundPredicate(notPredicateWithSubpredicate: both)).count == 2)
                // The same predicate evaluates objects in this process.
                #expect(late.evaluate(with: photos[2]) && !late.evaluate(with: photos[0]))

                #expect(fetch(NSPredicate(format: "nonsense == 1")).error?.name == "unsupported_predicate")
                #expect(fetch(NSPredicate(format: "((")).error?.name == "invalid_predicate")
                #expect(fetch(NSPredicate { _, _ in true }).error?.name == "unsupported_predicate")
                let options = PHFetchOptions()
                options.sortDescriptors = [NSSortDescriptor(key: "nonsense", ascending: true)]
                let unsorted = PHAsset.fetchAssets(with: options)
                #expect(unsorted.error?.name == "unsupported_sort_key" && unsorted.isEmpty)
                await #expect(throws: PHPhotosError.self) { try await PHAsset.assets(with: options) }
                options.sortDescriptors = [NSSortDescriptor(keyPath: \PHAsset.pixelWidth, ascending: true)]
                #expect(try await PHAsset.assets(with: options).count == 3)
            }
        }

        @Test(.spec("S-20", "P-20"))
        func `durations in predicates are in seconds, as the property is`() async throws {
            try await LibraryFixture.with("durations", services: [.catalog]) { fixture in
                let photo = try #require(try LibraryFixture.importImages(1).first)
                let path = fixture.folder.file("film.mp4")
                try FFmpegVideos.make(path, ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"])
                try PHPhotoLibrary.shared().performChangesAndWait {
                    _ = PHAssetChangeRequest.creationRequestForAssetFromVideo(atFileURL: URL(fileURLWithPath: path))
                }
                let video = try #require(PHAsset.fetchAssets(with: .video, options: nil).firstObject)
                try #require(abs(video.duration - 1) < 0.2)
                let videoType = PHAssetMediaType.video.rawValue
                let expected: [(predicate: NSPredicate, found: Set<PHAsset>)] = [
                    (NSPredicate(format: "duration > %f", 0.5), [video]),
                    (NSPredicate(format: "duration > %f", 2.0), []),
                    (NSPredicate(format: "duration < 60"), [photo, video]),
                    (NSPredicate(format: "0.5 < duration"), [video]),
                    (NSPredicate(format: "duration BETWEEN %@", [0.5, 2.0]), [video]),
                    (NSPredicate(format: "mediaType == %d AND duration <= %d", videoType, 2), [video]),
                    (NSPredicate(format: "%K == %@", "duration", video.duration), [video]),
                    (NSPredicate(format: "duration IN {0, 20}"), [photo]),
                    (NSPredicate(format: "duration > 500 ms"), [video]),
                    (NSPredicate(format: "duration < %f", Double.infinity), [photo, video]),
                ]
                for (predicate, found) in expected {
                    let options = PHFetchOptions()
                    options.predicate = predicate
                    let result = PHAsset.fetchAssets(with: options)
                    #expect(result.error == nil && Set(result) == found, "\(predicate)")
                    for asset in [photo, video] { #expect(predicate.evaluate(with: asset) == found.contains(asset)) }
                }
                let options = PHFetchOptions()
                options.predicate = NSPredicate(format: "duration > %@", "long")
                let refused = PHAsset.fetchAssets(with: options).error
                #expect(refused?.name == "invalid_predicate" && refused?.message.contains("seconds") == true)
            }
        }

        @Test(.spec("S-30", "S-31", "S-32", "S-06", "S-80", "T-01", "T-02", "T-05", "T-18", "T-25"))
        func `collections have members, folders and covers, and allow some operations`() async throws {
            try await LibraryFixture.with("collections", services: [.catalog]) { _ in
                let photos = try LibraryFixture.importImages(4)
                var ids: [String] = []
                try PHPhotoLibrary.shared().performChangesAndWait {
                    let album = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "A")
                    album.addAssets(photos)
                    let folder = PHCollectionListChangeRequest.creationRequestForCollectionList(withTitle: "F")
                    folder.addChildCollections([album.placeholderForCreatedAssetCollection])
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
                #expect(Array(PHCollection.fetchCollections(in: folder, options: nil)) == [album])
                #expect(Array(PHCollection.fetchTopLevelUserCollections(with: nil)) == [folder])
                #expect(
                    Array(PHCollectionList.fetchCollectionListsContaining(album, options: nil)) == [folder]
                )
                #expect(
                    Array(PHAssetCollection.fetchAssetCollectionsContaining(photos[0], with: .album, options: nil))
                        == [album]
                )
                #expect(PHAsset.fetchKeyAssets(in: album, options: nil)?.count == 3)
                #expect(album.canPerform(.rename) && folder.canPerform(.delete))
                let smart = PHAssetCollection.fetchAssetCollections(with: .smartAlbum, subtype: .any, options: nil)
                #expect(
                    smart.count == 21 && smart.allSatisfy { !$0.canPerform(.addContent) && !$0.canPerform(.rename) }
                )

                // With a result in another order than the folder's, indexes would refer to other children.
                let skipping = PHFetchOptions()
                skipping.fetchOffset = 1
                let children = PHCollection.fetchCollections(in: folder, options: skipping)
                #expect(children.error == nil)
                let refused = #expect(throws: PHPhotosError.self) {
                    try PHPhotoLibrary.shared().performChangesAndWait {
                        let change = PHCollectionListChangeRequest(for: folder, childCollections: children)
                        change?.removeChildCollections(at: [0])
                    }
                }
                #expect(refused?.name == "invalid_options")
                #expect(Array(PHCollection.fetchCollections(in: folder, options: nil)) == [album])

                let transient = PHAssetCollection.transientAssetCollection(
                    with: [photos[3], photos[0], photos[3]],
                    title: "Both"
                )
                #expect(transient.localizedTitle == "Both" && transient.estimatedAssetCount == 2)
                #expect(Array(PHAsset.fetchAssets(in: transient, options: nil)) == [photos[3], photos[0]])
                let options = PHFetchOptions()
                options.predicate = NSPredicate(format: "SELF == %@", photos[0])
                #expect(Array(PHAsset.fetchAssets(in: transient, options: options)) == [photos[0]])
                let copy = PHAssetCollection.transientAssetCollection(
                    withAssetFetchResult: PHAsset.fetchAssets(in: album, options: nil),
                    title: nil
                )
                #expect(Array(PHAsset.fetchAssets(in: copy, options: nil)) == photos)
                let list = PHCollectionList.transientCollectionList(with: [folder, album], title: "T")
                #expect(Array(PHCollection.fetchCollections(in: list, options: nil)) == [folder, album])

                // Index operations refer to a fetch result, even if the album has changed since (T-13).
                let snapshot = PHAsset.fetchAssets(in: album, options: nil)
                try PHPhotoLibrary.shared().performChangesAndWait {
                    PHAssetCollectionChangeRequest(for: album)?.removeAssets([photos[0]])
                }
                try PHPhotoLibrary.shared().performChangesAndWait {
                    let change = PHAssetCollectionChangeRequest(for: album, assets: snapshot)
                    change?.title = "Renamed"
                    change?.moveAssets(at: [2], to: 0)
                }
                #expect(Array(PHAsset.fetchAssets(in: album, options: nil)) == [photos[2], photos[1], photos[3]])
                try PHPhotoLibrary.shared().performChangesAndWait {
                    PHCollectionListChangeRequest.deleteCollectionLists([folder])
                }
                #expect(PHCollection.fetchTopLevelUserCollections(with: nil).isEmpty)
                #expect(PHAsset.fetchAssets(with: nil).count == 4)
            }
        }
    }
}
