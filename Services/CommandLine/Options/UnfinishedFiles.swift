import Glibc
import Synchronization

/// The temporary files that ``OutputFileWriter`` is writing, for a command that is interrupted.
enum UnfinishedFiles {
    private static let paths = Mutex<Set<String>>([])

    static func insert(_ path: String) { paths.withLock { _ = $0.insert(path) } }
    static func remove(_ path: String) { paths.withLock { _ = $0.remove(path) } }

    /// Makes the usual signals delete the files and end the program, as long as the result is kept.
    static func removeAtSignals() -> StopSignals { StopSignals { end(by: $0) } }

    /// Ends the program while it holds the lock, so that no other file is begun.
    private static func end(by number: Int32) {
        paths.withLock { paths in
            for path in paths { unlink(path) }
            _exit(128 + number)
        }
    }
}
