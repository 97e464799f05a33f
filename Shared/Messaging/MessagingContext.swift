import CZeroMQ
import Dispatch
import Glibc
public import Logging
import Synchronization

/// libzmq's context: its I/O thread and the names of its `inproc://` addresses.
///
/// One per process: 4.3.4 crashes when one of several contexts with CURVE ends (bcb659e0 is not in it).
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

    /// Decides who may connect to the CURVE servers of this context.
    public let doorkeeper = Doorkeeper()
    private let base: Mutex<Base?>

    init() {
        let base = zmq_ctx_new().map(Base.init)
        if let base {
            zmq_ctx_set(base.pointer, ZMQ_BLOCKY, 0)
            zmq_ctx_set(base.pointer, ZMQ_MAX_SOCKETS, 4096)
        }
        self.base = Mutex(base)
    }

    /// A socket, or `nil` where libzmq gives none or the context has ended.
    func makeSocket(_ kind: Int32) -> UnsafeMutableRawPointer? {
        base.withLock { base in base.flatMap { zmq_socket($0.pointer, kind) } }
    }

    /// The last thing of a process: waits until closed sockets have sent what they took.
    ///
    /// That is at most their linger time, provided that every ``PollThread`` has been shut down before. Returns after
    /// the bound in any case. No socket can be opened afterwards.
    public func finish(within bound: Duration = .seconds(5)) async {
        let base = base.withLock { base in
            defer { base = nil }
            return base
        }
        guard let base else { return }
        await withCheckedContinuation { continuation in
            let done = FirstCall(continuation)
            let microseconds = Int(clamping: bound.microseconds)
            DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds)) { done.call() }
            // A queue of its own: libzmq waits here, and nobody else should.
            DispatchQueue(label: "messaging-finish").async {
                while zmq_ctx_term(base.pointer) != 0, zmq_errno() == EINTR {}
                done.call()
            }
        }
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

/// Resumes with the first of several calls.
private final class FirstCall: Sendable {
    private let continuation: Mutex<CheckedContinuation<Void, Never>?>

    init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = Mutex(continuation) }

    func call() { continuation.withLock { $0.take() }?.resume() }
}
