import CProcess
import Glibc

/// An exclusive lock between processes, held for as long as this value lives.
///
/// The system releases it when the process ends, however it ends; the file stays.
public final class LockFile: Sendable {
    /// Where the lock file is.
    public let path: String
    private let descriptor: Int32

    /// Takes the lock without waiting.
    ///
    /// - Parameters:
    ///   - path: the lock file, created 0600 where there is none.
    ///   - program: who takes it, as in "catalog"; used in the message to the second.
    ///   - using: what it guards, as in the library's folder.
    ///   - advice: what the second can do, as in "stop it or choose another --library".
    /// - Throws: ``StorageError/inUse(_:)`` naming the process that holds it.
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
