import Foundation
import PhotoKit
import Synchronization
import TestSupport
import Testing

/// Every code sample of the articles that the project follows, in today's Swift spelling of PhotoKit, executed against
/// real services. The articles are from 2014 to 2016: their `fetchAssetsWithMediaType(.Image, options: nil)` is now
/// `fetchAssets(with: .image, options: nil)`.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct PhotoKitTests {}

extension PhotoKitTests {
    @Suite(.serialized, .timeLimit(.minutes(5)))
    struct SeedSamples {
        /// `002`: asking for access.
        @Test(.spec("S-10"))
        func `requestAuthorization calls its handler with the decision`() async throws {
            try await LibraryFixture.with("auth", services: [.catalog]) { _ in
                let decided = Recorded<String>()
                PHPhotoLibrary.requestAuthorization { state in
                    switch state {
                    case .authorized:
                        decided.add("authorized")
                    default:
                        decided.add("no access: \(state)")
                    }
                }
                #expect(await decided.next() == "authorized")
                #expect(PHPhotoLibrary.authorizationStatus() == .authorized)
                #expect(PHPhotoLibrary.authorizationStatus(for: .addOnly) == .authorized)
                #expect(await PHPhotoLibrary.requestAuthorization(for: .readWrite) == .authorized)
            }
        }

        /// `002`: fetching all images; options; albums; the smart album of favourites.
        @Test(.spec("S-15", "S-16", "S-18", "S-19", "S-21", "S-22", "S-23", "S-39"))
        func `fetches apply their options, in albums and in smart albums`() async throws {
            try await LibraryFixture.with("fetch", services: [.catalog]) { _ in
                let photos = try LibraryFixture.importImages(4)
                try PHPhotoLibrary.shared().performChangesAndWait {
                    PHAssetChangeRequest(for: photos[3]).isHidden = true
                    PHAssetChangeRequest(for: photos[1]).isFavorite = true
                    let album = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "Holiday")
                    album.addAssets([photos[2], photos[0]])
                }

                let images = PHAsset.fetchAssets(with: .image, options: nil)
                #expect(Array(images) == Array(photos[..<3]))

                let options = PHFetchOptions()
                // Sort by creation date.
                options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: true)]
                options.predicate = NSPredicate(format: "mediaType == %d", PHAssetMediaType.image.rawValue)
                options.fetchLimit = 233  // The maximum number of results.
                options.includeHiddenAssets = true  // Also fetch hidden assets.
                #expect(Array(PHAsset.fetchAssets(with: options)) == photos)

                // Fetch all albums of the user; the elements are PHCollection objects.
                let userAlbums = PHCollectionList.fetchTopLevelUserCollections(with: nil)
                // One of the albums is a PHAssetCollection.
                let userAlbum = try #require(userAlbums[0] as? PHAssetCollection)
                // Fetch all images of the album.
                let assets = PHAsset.fetchAssets(in: userAlbum, options: nil)
                #expect(Array(assets) == [photos[2], photos[0]])
                #expect(userAlbum.localizedTitle == "Holiday")
                #expect(userAlbum.estimatedAssetCount == 2)

                let favoritesAlbum = PHAssetCollection.fetchAssetCollections(
                    with: .smartAlbum,
                    subtype: .smartAlbumFavorites,
                    options: nil
                )
                let favorites = try #require(favoritesAlbum.firstObject)
                #expect(favorites.localizedTitle == "Favorites")
                #expect(favorites.estimatedAssetCount == NSNotFound)
                // Only a fetch returns the exact number.
                #expect(PHAsset.fetchAssets(in: favorites, options: nil).count == 1)
            }
        }

        /// `002`: requesting an image; degraded and final calls; cancelling; the info dictionary.
        @Test(.spec("S-40", "S-41", "S-45", "S-46", "S-50", "S-51", "D3"))
        func `requestImage calls its handler with images, and once at the end`() async throws {
            try await LibraryFixture.with("image") { _ in
                let asset = try #require(try LibraryFixture.importImages(1, width: 1600, height: 1200).first)
                let calls = Recorded<(size: CGSize?, isDegraded: Bool?, isFinal: Bool)>()
                let request = PHImageManager.default().requestImage(
                    for: asset,
                    targetSize: CGSize(width: 50, height: 50),
                    contentMode: .aspectFill,
                    options: nil
                ) { image, info in
                    calls.add(
                        (
                            image?.size, info?[PHImageResultIsDegradedKey] as? Bool,
                            info?[PHImageResultIsFinalKey] as? Bool ?? false
                        )
                    )
                }
                #expect(request != PHInvalidImageRequestID)
                while let call = await calls.next() { if call.isFinal { break } }
                #expect(calls.all.filter(\.isFinal).count == 1)
                #expect(calls.all.last?.isFinal == true)
                #expect(calls.all.last?.isDegraded == false)
                #expect(calls.all.allSatisfy { ($0.size?.width ?? 0) >= 50 && ($0.size?.height ?? 0) >= 50 })

                // Request the original: the maximum size, and the default mode.
                let options = PHImageRequestOptions()
                options.isSynchronous = true
                let original = Recorded<CGSize?>()
                PHImageManager.default().requestImage(
                    for: asset,
                    targetSize: PHImageManagerMaximumSize,
                    contentMode: .default,
                    options: options
                ) { image, _ in original.add(image?.size) }
                // The handler was called before the method returned.
                #expect(original.all == [CGSize(width: 1600, height: 1200)])

                let cancelled = Recorded<(hasImage: Bool, isCancelled: Bool)>()
                let large = PHImageManager.default().requestImage(
                    for: asset,
                    targetSize: CGSize(width: 1500, height: 1100),
                    contentMode: .aspectFit,
                    options: nil
                ) { image, info in
                    guard info?[PHImageResultIsFinalKey] as? Bool == true else { return }
                    cancelled.add((image != nil, info?[PHImageCancelledKey] as? Bool ?? false))
                }
                PHImageManager.default().cancelImageRequest(large)
                let end = try #require(await cancelled.next())
                // The image may have arrived before the cancellation, but there is exactly one final call.
                #expect(end.hasImage != end.isCancelled)
                #expect(cancelled.all.count == 1)
            }
        }

        /// `002`: the enumerations of the options.
        @Test(.spec("S-43", "S-45", "S-49"))
        func `options have PhotoKit's defaults and numbers`() {
            let options = PHImageRequestOptions()
            #expect(options.version == .current)
            #expect(options.deliveryMode == .opportunistic)
            #expect(options.resizeMode == .fast)
            #expect(options.normalizedCropRect == .zero)
            #expect(!options.isNetworkAccessAllowed && !options.isSynchronous)
            #expect(PHImageRequestOptionsVersion.allCases.map(\.rawValue) == [0, 1, 2])
            #expect(PHImageRequestOptionsDeliveryMode.allCases.map(\.rawValue) == [0, 1, 2])
            #expect(PHImageRequestOptionsResizeMode.allCases.map(\.rawValue) == [0, 1, 2])
            #expect(PHImageContentMode.default == .aspectFit)
        }

        /// `002`: the bytes of an image.
        @Test(.spec("S-52", "T-46"))
        func `requestImageDataAndOrientation returns the imported bytes`() async throws {
            try await LibraryFixture.with("data") { _ in
                let bytes = TestImages.jpeg(width: 120, height: 90, orientation: 6)
                var placeholder: PHObjectPlaceholder?
                try PHPhotoLibrary.shared().performChangesAndWait {
                    let request = PHAssetCreationRequest.forAsset()
                    request.addResource(with: .photo, data: Data(bytes), options: nil)
                    placeholder = request.placeholderForCreatedAsset
                }
                let id = try #require(placeholder?.localIdentifier)
                let asset = try #require(PHAsset.fetchAssets(withLocalIdentifiers: [id], options: nil).firstObject)
                #expect(asset == placeholder)
                let answer = Recorded<(Data?, String?, CGImagePropertyOrientation)>()
                PHImageManager.default().requestImageDataAndOrientation(for: asset, options: nil) {
                    data,
                    type,
                    orientation,
                    info in
                    answer.add((data, type, orientation))
                }
                let (data, type, orientation) = try #require(await answer.next())
                #expect(data == Data(bytes))
                #expect(type == "public.jpeg")
                #expect(orientation == .right)
            }
        }

        /// `002`: preparing images for a list.
        @Test(.spec("S-53", "S-54", "S-55", "S-56", "S-57"))
        func `a caching manager prepares images`() async throws {
            try await LibraryFixture.with("cache") { _ in
                let assets = try LibraryFixture.importImages(3)
                let size = CGSize(width: 100, height: 100)
                let manager = PHCachingImageManager()
                #expect(manager.allowsCachingHighQualityImages)
                manager.allowsCachingHighQualityImages = false
                manager.startCachingImages(for: assets, targetSize: size, contentMode: .aspectFill, options: nil)
                let answers = Recorded<Bool>()
                for asset in assets {
                    manager.requestImage(for: asset, targetSize: size, contentMode: .aspectFill, options: nil) {
                        image,
                        info in
                        if info?[PHImageResultIsFinalKey] as? Bool == true { answers.add(image != nil) }
                    }
                }
                for _ in assets { #expect(await answers.next() == true) }
                manager.stopCachingImages(for: assets, targetSize: size, contentMode: .aspectFill, options: nil)
                manager.stopCachingImagesForAllAssets()
            }
        }

        @Test(.spec("S-53", "S-54"))
        func `a caching manager delivers images after the thumbnailer was restarted`() async throws {
            try await LibraryFixture.with("cache-restart") { fixture in
                let assets = try LibraryFixture.importImages(2)
                let size = CGSize(width: 100, height: 100)
                let manager = PHCachingImageManager()
                for isPrepared in [true, false] {
                    if isPrepared {
                        manager.startCachingImages(for: assets, targetSize: size, contentMode: .aspectFit, options: nil)
                    }
                    let answers = Recorded<Bool>()
                    for asset in assets {
                        manager.requestImage(for: asset, targetSize: size, contentMode: .aspectFit, options: nil) {
                            image,
                            info in
                            if info?[PHImageResultIsFinalKey] as? Bool == true { answers.add(image != nil) }
                            if info?[PHImageErrorKey] != nil { answers.add(false) }
                        }
                    }
                    for _ in assets { #expect(await answers.next() == true) }
                    if isPrepared { try fixture.restart(.thumbnailer) }
                }
            }
        }

        /// `003`, listing 1: adding a new asset to an album in the same block.
        @Test(.spec("S-71", "S-73", "S-79", "T-28"))
        func `a new asset is added to an album in one block`() async throws {
            try await LibraryFixture.with("listing", services: [.catalog]) { _ in
                try PHPhotoLibrary.shared().performChangesAndWait {
                    _ = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: "Album")
                }
                let albums = PHAssetCollection.fetchAssetCollections(with: .album, subtype: .any, options: nil)
                let album = try #require(albums.firstObject)
                let image = try #require(UIImage(data: Data(TestImages.jpeg())))
                let finished = Recorded<String>()
                addNewAsset(with: image, to: album) { finished.add($0) }
                #expect(await finished.next() == "Finished adding asset. Success")
                #expect(PHAsset.fetchAssets(in: album, options: nil).count == 1)
            }
        }

        private func addNewAsset(
            with image: UIImage,
            to album: PHAssetCollection,
            log: @escaping @Sendable (String) -> Void
        ) {
            PHPhotoLibrary.shared().performChanges {
                // Request creating an asset from the image.
                let createAssetRequest = PHAssetChangeRequest.creationRequestForAsset(from: image)

                // Request editing the album.
                guard let albumChangeRequest = PHAssetCollectionChangeRequest(for: album) else { return }

                // Get a placeholder for the new asset and add it to the album editing request.
                guard let assetPlaceholder = createAssetRequest.placeholderForCreatedAsset else { return }
                albumChangeRequest.addAssets([assetPlaceholder])
            } completionHandler: { success, error in
                log("Finished adding asset. \(success ? "Success" : String(describing: error))")
            }
        }
    }
}
