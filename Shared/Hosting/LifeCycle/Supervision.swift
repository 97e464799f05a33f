import Dispatch
import Glibc

/// Detects that the supervisor of a service has ended, even if it was killed.
///
/// The supervisor sets ``variable`` and keeps the service's standard input open while it runs; end of file on the input
/// is handled like SIGTERM. Unlike a parent death signal this does not depend on the thread that started the service,
/// and the service still finishes the requests it has accepted.
public enum Supervision {
    /// The environment variable that the supervisor sets to 1.
    public static let variable = "SAFELIGHT_SUPERVISED"

    /// Calls `onEnd` once at the end of standard input; returns nil if there is no supervisor.
    static func watch(onEnd: @escaping @Sendable () -> Void) -> (any DispatchSourceRead)? {
        guard Environment[variable] == "1" else { return nil }
        let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: .global())
        source.setEventHandler {
            var byte: UInt8 = 0
            let count = read(STDIN_FILENO, &byte, 1)
            if count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN)) { return }
            source.cancel()
            onEnd()
        }
        source.resume()
        return source
    }
}
