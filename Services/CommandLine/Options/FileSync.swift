import CProcess
import Glibc
import SystemPackage

/// Makes files durable: a file with a new name may be empty after a power failure if only the name was on the disk.
///
/// It is a value, so that tests can see the order of the calls and make them fail.
struct FileSync: Sendable {
    typealias Call = @Sendable (FileDescriptor) throws -> Void

    /// Waits until the content of an open file is on the disk.
    var content: Call
    /// Waits until the names in an open folder are on the disk.
    var names: Call
    /// Waits until everything that was written to the filesystem of an open folder is on the disk; nil to sync each
    /// file by itself.
    var filesystem: Call?

    static let system = FileSync(
        content: { file in try check { fsync(file.rawValue) } },
        names: { folder in try check { fsync(folder.rawValue) } },
        filesystem: { folder in try check { safelight_sync_filesystem(folder.rawValue) } }
    )

    /// Repeats a call that a signal has interrupted. Ignores that a filesystem cannot sync, as some in user space.
    private static func check(_ call: () -> Int32) throws {
        while call() != 0 {
            switch errno {
            case EINTR: continue
            case EINVAL, ENOSYS, EOPNOTSUPP: return
            default: throw Errno(rawValue: errno)
            }
        }
    }

    /// Opens the folder of a file; nil if it may be written, but not read.
    static func folder(of file: FilePath) -> FileDescriptor? {
        let folder = file.removingLastComponent()
        return try? FileDescriptor.open(folder.isEmpty ? "." : folder, .readOnly, options: .directory)
    }
}
