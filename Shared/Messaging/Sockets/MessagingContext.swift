import Basics
import CZeroMQ
import Dispatch
import Glibc
public import Logging
import Synchronization

/// The libzmq context: its I/O thread and the namespace of `inproc://` addresses.
///
/// One per process: libzmq 4.3.4 can crash when one of several contexts with CURVE is terminated (it
/// does not contain the fix, libzmq commit bcb659e0).
public final class MessagingContext: Sendable {
    /// The context of this process.
    public static let shared = MessagingContext()

    /// The version of libzmq, as in "4.3.4".
    public static var libraryVersion: String {
        var (major, minor, patch): (Int32, Int32, Int32) = (0, 0, 0)
        zmq_version(&major, &minor, &patch)
        return "\(major).\(minor).\(patch)"
    }

    private struct Base: @unchecked Sendable {
        // A context may be used from every thread (zmq_ctx_new(3)).
        let pointer: UnsafeMutableRawPointer
    }

    /// Authenticates connections to the CURVE servers of this context.
    public let authenticator = ZAPAuthenticator()
    /// The TCP connections of the listening sockets.
    let tcpConnections = ConnectionCounts()
    private let base: Mutex<Base?>

    init() {
        let base = zmq_ctx_new().map(Base.init)
        if let base {
            zmq_ctx_set(base.pointer, ZMQ_BLOCKY, 0)
            zmq_ctx_set(base.pointer, ZMQ_MAX_SOCKETS, 4096)
        }
        self.base = Mutex(base)
    }

    /// Makes a socket; `nil` if libzmq cannot make one or the context was terminated.
    func makeSocket(_ kind: Int32) -> UnsafeMutableRawPointer? {
        base.withLock { base in base.flatMap { zmq_socket($0.pointer, kind) } }
    }

    /// Terminates the context, waiting until closed sockets have sent their messages. Call it last in a process.
    ///
    /// The wait takes at most the sockets' linger time, provided that every ``PollThread`` has been shut down before,
    /// and never longer than `bound`. No socket can be opened afterwards.
    public func finish(within bound: Duration = .seconds(5)) async {
        let base = base.withLock { base in
            defer { base = nil }
            return base
        }
        guard let base else { return }
        await withCheckedContinuation { continuation in
            let done = OneShotContinuation(continuation)
            let microseconds = Int(clamping: bound.microseconds)
            DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds)) { done.call() }
            // A separate queue, because zmq_ctx_term blocks its thread.
            DispatchQueue(label: "messaging-finish").async {
                while zmq_ctx_term(base.pointer) != 0, zmq_errno() == EINTR {}
                done.call()
            }
        }
    }

    /// Sets how many TCP connections the process accepts. Near this number connections that have sent nothing are
    /// ended, and keys with many connections get no others.
    public func limitTCPConnections(to maximum: Int) { tcpConnections.maxCount = maximum }

    /// Sets the list of keys that may connect to the CURVE servers of a domain; call it before the servers are bound.
    ///
    /// An earlier list of the same domain is replaced. Throws if the ZAP handler's socket cannot be made.
    ///
    /// - Parameters:
    ///   - domain: as in ``SocketSecurity/curveServer(secretKey:domain:)``
    ///   - logger: logs refused connections, at most once a second
    ///   - approval: a further condition on the identities of listed keys; nil for none
    ///   - isService: returns whether a listed key is that of a service on another machine, which shares the capacity
    ///     of local clients
    ///   - admission: returns the name of a key that may connect, nil for all others
    public func admit(
        to domain: String,
        logger: Logger,
        approval: ZAPAuthenticator.Approval? = nil,
        isService: @escaping ZAPAuthenticator.ServiceCheck = { _, _ in false },
        admission: @escaping ZAPAuthenticator.Admission
    ) throws(MessagingError) {
        try authenticator.open(
            domain,
            context: self,
            logger: logger,
            approval: approval,
            isService: isService,
            admission: admission
        )
    }
}

/// Resumes a continuation at the first of several calls.
private final class OneShotContinuation: Sendable {
    private let continuation: Mutex<CheckedContinuation<Void, Never>?>

    init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = Mutex(continuation) }

    func call() { continuation.withLock { $0.take() }?.resume() }
}
