import Storage
import Synchronization

/// The library's lock, held until every other component has stopped.
final class LibraryLock: Sendable {
    private let file: Mutex<LockFile?>

    init(_ folder: String) throws {
        file = Mutex(try LibraryFolder.lock(folder))
    }

    func release() { file.withLock { $0 = nil } }
}
