import Glibc

/// Starts threads that are not joined.
///
/// They replace Foundation's Thread, which does not report that the system could not start one: a caller that waits for
/// its work would wait indefinitely.
public enum DetachedThread {
    private final class Start {
        let body: @Sendable () -> Void

        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Starts a thread.
    ///
    /// - Returns: false if the system cannot start one; the body is not called then
    public static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        var thread = pthread_t()
        let start = Unmanaged.passRetained(Start(body))
        let status = pthread_create(
            &thread,
            nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            },
            start.toOpaque()
        )
        guard status == 0 else {
            start.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
