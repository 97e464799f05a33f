import CProcess
import Glibc

/// An exclusive lock between processes, held as long as this object exists.
///
/// The system releases it when the process ends, however it ends; the file remains.
public final class LockFile: Sendable {
    /// The path of the lock file.
    public let path: String
    private let descriptor: Int32

    /// Acquires the lock without waiting.
    ///
    /// - Parameters:
    ///   - path: the lock file, created with mode 0600 if it does not exist.
    ///   - program: the name of the program, for example "catalog"; used in the error message.
    ///   - using: what the lock protects, for example the library's folder.
    ///   - advice: what to do about the conflict, for example "stop it or choose another --library".
    /// - Throws: ``StorageError/inUse(_:)`` with the process that holds the lock.
    public init(path: String, program: String, using: String, advice: String) throws(StorageError) {
        var holder: Int32 = 0
        let descriptor = safelight_lock(path, &holder)
        let problem = errno
        guard descriptor >= 0 else {
            guard problem == EWOULDBLOCK else { throw .system(problem, "lock \(path)") }
            let process = holder > 0 ? ", pid \(holder)," : ""
            throw .inUse("another \(program)\(process) is using \(using); \(advice)")
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { _ = close(descriptor) }
}
