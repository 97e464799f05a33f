import Foundation
import PhotoKit

/// The tour of Shared/docs/swift.md as a program: it imports the photos whose paths are its arguments, and prints what it
/// does.
@main
struct PhotoKitSample {
    static func main() async throws {
        let files = CommandLine.arguments.dropFirst().map { URL(fileURLWithPath: $0) }
        try await authorize()
        let album = try await importPhotos(files, title: "Lisbon")
        let photos = listNewest(in: album)
        try await followChanges(of: photos)
        try await saveThumbnail(of: photos, to: URL(fileURLWithPath: "thumbnail.jpg"))
        try await edit(photos)
    }

    static func authorize() async throws {
        var configuration = PHPhotoLibrary.Configuration()
        configuration.client = "sample"
        configuration.purpose = "shows what PhotoKit can do"
        try PHPhotoLibrary.connect(configuration)

        let status = await PHPhotoLibrary.requestAuthorization(for: .readWrite)
        print("access: \(status)")
    }

    static func importPhotos(_ files: [URL], title: String) async throws -> PHAssetCollection {
        var placeholder: PHObjectPlaceholder?
        try await PHPhotoLibrary.shared().performChanges {
            let album = PHAssetCollectionChangeRequest.creationRequestForAssetCollection(withTitle: title)
            placeholder = album.placeholderForCreatedAssetCollection

            let photos = files.compactMap { file in
                PHAssetChangeRequest.creationRequestForAssetFromImage(atFileURL: file)?.placeholderForCreatedAsset
            }
            album.addAssets(photos)
        }

        let identifiers = [placeholder?.localIdentifier].compactMap { $0 }
        let albums = PHAssetCollection.fetchAssetCollections(withLocalIdentifiers: identifiers, options: nil)
        guard let album = albums.firstObject else { throw CocoaError(.fileReadUnknown) }
        print("album: \(album.localizedTitle ?? ""), \(album.estimatedAssetCount) photos")
        return album
    }

    static func listNewest(in album: PHAssetCollection) -> PHFetchResult<PHAsset> {
        let options = PHFetchOptions()
        options.predicate = NSPredicate(
            format: "mediaType == %d AND pixelWidth > %d",
            PHAssetMediaType.image.rawValue,
            100
        )
        options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: false)]

        let photos = PHAsset.fetchAssets(in: album, options: options)
        for photo in photos {
            print("photo: \(photo.originalFilename ?? ""), \(photo.pixelWidth) × \(photo.pixelHeight)")
        }
        return photos
    }

    static func followChanges(of photos: PHFetchResult<PHAsset>) async throws {
        let follower = Follower(photos)
        PHPhotoLibrary.shared().register(follower)

        try await PHPhotoLibrary.shared().performChanges {
            guard let first = photos.firstObject else { return }
            PHAssetChangeRequest(for: first).isFavorite = true
        }
        for await line in follower.lines {
            print(line)
            break
        }
        PHPhotoLibrary.shared().unregisterChangeObserver(follower)
    }

    static func saveThumbnail(of photos: PHFetchResult<PHAsset>, to file: URL) async throws {
        guard let photo = photos.firstObject else { return }
        let options = PHImageRequestOptions()
        options.resizeMode = .exact

        let image = try await PHImageManager.default().image(
            for: photo,
            targetSize: CGSize(width: 100, height: 100),
            contentMode: .aspectFill,
            options: options
        )
        try image.jpegData(compressionQuality: 0.8)?.write(to: file)
        print("thumbnail: \(Int(image.size.width)) × \(Int(image.size.height))")
    }

    static func edit(_ photos: PHFetchResult<PHAsset>) async throws {
        guard let photo = photos.firstObject else { return }
        let input = try await photo.contentEditingInput()
        let output = PHContentEditingOutput(contentEditingInput: input)
        output.adjustmentData = PHAdjustmentData(
            formatIdentifier: "org.example.sample",
            formatVersion: "1.0",
            data: Data("half size".utf8)
        )
        let options = PHImageRequestOptions()
        options.resizeMode = .exact
        let half = CGSize(width: photo.pixelWidth / 2, height: photo.pixelHeight / 2)
        let image = try await PHImageManager.default().image(for: photo, targetSize: half, options: options)
        try image.data.write(to: output.renderedContentURL)

        try await PHPhotoLibrary.shared().performChanges {
            PHAssetChangeRequest(for: photo).contentEditingOutput = output
        }
        let edited = PHAsset.fetchAssets(withLocalIdentifiers: [photo.localIdentifier], options: nil).firstObject
        print(
            "edited: \(edited?.pixelWidth ?? 0) × \(edited?.pixelHeight ?? 0), by \(edited?.adjustmentFormatIdentifier ?? "")"
        )
    }
}
