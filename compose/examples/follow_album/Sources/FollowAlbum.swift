import Foundation
import PhotoKit
import Synchronization

/// Prints the photos of an album, and then each photo that is added, removed or changed, until it is stopped:
///
///     swift run --package-path compose/examples/follow_album FollowAlbum Holidays
@main
struct FollowAlbum {
    static func main() async throws {
        guard CommandLine.arguments.count == 2 else {
            say("usage: FollowAlbum TITLE")
            exit(2)
        }
        var configuration = PHPhotoLibrary.Configuration()
        configuration.client = "follow-album"
        configuration.purpose = "prints the changes of an album"
        try PHPhotoLibrary.connect(configuration)
        _ = await PHPhotoLibrary.requestAuthorization(for: .readWrite)

        let options = PHFetchOptions()
        options.predicate = NSPredicate(format: "title == %@", CommandLine.arguments[1])
        let albums = PHAssetCollection.fetchAssetCollections(with: .album, subtype: .any, options: options)
        if let error = albums.error {
            say("the library cannot be read: \(error)")
            exit(1)
        }
        guard let album = albums.firstObject else {
            say("there is no album \(CommandLine.arguments[1])")
            exit(1)
        }
        let photos = PHAsset.fetchAssets(in: album, options: nil)
        for photo in photos { say("  \(name(photo))") }
        // Without access the loop ends early.
        if let error = photos.error {
            say("the album cannot be read: \(error)")
            exit(1)
        }

        // The library does not retain observers.
        let follower = Follower(photos)
        PHPhotoLibrary.shared().register(follower)
        follower.catchUp(with: album)
        say("following \(album.localizedTitle ?? "")")
        for await line in follower.lines { say(line) }
    }

    /// Prints a line at once, also into a pipe.
    static func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

    static func name(_ photo: PHAsset) -> String { photo.originalFilename ?? photo.localIdentifier }
}

/// Compares the album before and after each change of the library.
final class Follower: PHPhotoLibraryChangeObserver {
    /// A line for each photo that was added, removed or changed.
    let lines: AsyncStream<String>
    private let output: AsyncStream<String>.Continuation
    private let photos: Mutex<PHFetchResult<PHAsset>>

    init(_ photos: PHFetchResult<PHAsset>) {
        self.photos = Mutex(photos)
        (lines, output) = AsyncStream.makeStream()
    }

    func photoLibraryDidChange(_ changeInstance: PHChange) {
        photos.withLock { photos in
            guard let details = changeInstance.changeDetails(for: photos) else { return }
            photos = details.fetchResultAfterChanges
            show(details) { changeInstance.changeDetails(for: $0)?.assetContentChanged == true }
        }
    }

    /// Shows the changes between the fetch and the registration of this observer, which is not notified of them.
    func catchUp(with album: PHAssetCollection) {
        photos.withLock { photos in
            let current = PHAsset.fetchAssets(in: album, options: nil)
            guard current.error == nil else { return }
            let details = PHFetchResultChangeDetails(from: photos, to: current)
            photos = current
            show(details) { _ in false }
        }
    }

    private func show(_ details: PHFetchResultChangeDetails<PHAsset>, isEdited: (PHAsset) -> Bool) {
        for photo in details.removedObjects { output.yield("- \(FollowAlbum.name(photo))") }
        for photo in details.insertedObjects { output.yield("+ \(FollowAlbum.name(photo))") }
        for photo in details.changedObjects {
            output.yield("\(isEdited(photo) ? "e" : "*") \(FollowAlbum.name(photo))")
        }
    }
}
