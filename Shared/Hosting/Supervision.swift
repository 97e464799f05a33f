import Dispatch
import Glibc

/// How a service learns that whoever watches over it is gone, also when that one was killed.
///
/// The watcher sets ``variable`` and holds the service's standard input open for as long as it lives; the end of the
/// input is taken as SIGTERM. Unlike a death signal this does not depend on the thread that started the service, and
/// the service still finishes what it took.
public enum Supervision {
    /// Set to 1 by the watcher.
    public static let variable = "SAFELIGHT_SUPERVISED"

    /// Calls `gone` once at the end of standard input; `nil` where nobody watches.
    static func watch(gone: @escaping @Sendable () -> Void) -> (any DispatchSourceRead)? {
        guard Environment[variable] == "1" else { return nil }
        let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: .global())
        source.setEventHandler {
            var byte: UInt8 = 0
            let count = read(STDIN_FILENO, &byte, 1)
            if count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN)) { return }
            source.cancel()
            gone()
        }
        source.resume()
        return source
    }
}
