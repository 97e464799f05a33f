import CZeroMQ

/// libzmq's context: its I/O thread and the names of its `inproc://` addresses.
///
/// One per process, never ended: 4.3.4 crashes when one of several contexts with CURVE ends (bcb659e0 is not in it).
public final class MessagingContext: Sendable {
    /// The context of this process.
    public static let shared = MessagingContext()

    // A context may be used from every thread (zmq_ctx_new(3)); the pointer itself never changes.
    nonisolated(unsafe) let pointer: UnsafeMutableRawPointer?

    private init() {
        pointer = zmq_ctx_new()
        guard let pointer else { return }
        zmq_ctx_set(pointer, ZMQ_BLOCKY, 0)
        zmq_ctx_set(pointer, ZMQ_MAX_SOCKETS, 4096)
    }
}
