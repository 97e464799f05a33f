import PhotoKit
import Synchronization

/// Keeps a list equal to a fetch result.
final class Follower: PHPhotoLibraryChangeObserver {
    /// A line for each change.
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
            output.yield("changed: \(details.changedIndexes.map { Array($0) } ?? []) of \(photos.count)")
        }
    }
}
