import CZeroMQ
public import Logging

/// libzmq's context: its I/O thread and the names of its `inproc://` addresses.
///
/// One per process, never ended: 4.3.4 crashes when one of several contexts with CURVE ends (bcb659e0 is not in it).
public final class MessagingContext: Sendable {
    /// The context of this process.
    public static let shared = MessagingContext()

    // A context may be used from every thread (zmq_ctx_new(3)); the pointer itself never changes.
    nonisolated(unsafe) let pointer: UnsafeMutableRawPointer?

    /// Decides who may connect to the CURVE servers of this context.
    public let doorkeeper = Doorkeeper()

    /// For the process one is enough; tests make more, and never end them.
    init() {
        pointer = zmq_ctx_new()
        guard let pointer else { return }
        zmq_ctx_set(pointer, ZMQ_BLOCKY, 0)
        zmq_ctx_set(pointer, ZMQ_MAX_SOCKETS, 4096)
    }

    /// Says who may connect to the CURVE servers of a domain; to be called before they are bound.
    ///
    /// Another list of the same domain is replaced. Throws where the doorkeeper's socket cannot be made.
    ///
    /// - Parameters:
    ///   - domain: as in ``SocketSecurity/curveServer(secretKey:domain:)``
    ///   - logger: hears of refusals, at most once a second
    ///   - admission: the name of a key that may connect; nil for all others
    public func admit(
        to domain: String,
        logger: Logger,
        admission: @escaping Doorkeeper.Admission
    ) throws(MessagingError) {
        try doorkeeper.open(domain, context: self, logger: logger, admission: admission)
    }
}
