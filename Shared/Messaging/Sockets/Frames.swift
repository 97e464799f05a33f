import Basics

/// A received multipart message, truncated where it exceeded a limit.
struct IncomingMessage: Sendable {
    /// The frames within the limits, copied: a retained libzmq message would pin its 8 KiB receive block.
    var frames: [Bytes] = []
    /// Bytes of all frames, including dropped ones.
    var totalBytes = 0
    /// Number of frames, including dropped ones.
    var totalFrames = 0
    /// The limit that was exceeded; nil if none was.
    var violation: Violation?
    /// The descriptor of the connection; nil over inproc.
    var descriptor: Int32?
    /// libzmq's `Peer-Address`: `localhost:uid:gid:pid` over ipc, an IP address over tcp.
    var peerAddress: String?
    /// The peer's key; nil without CURVE.
    var curveIdentity: CurveIdentity?
    /// The memory reserved for it; servers only.
    var reservation: RequestReservation?

    /// Bytes of the frames in ``frames``.
    var keptBytes: Int { frames.reduce(0) { $0 + $1.count } }

    enum Violation: String, Sendable {
        case tooManyFrames = "too_many_frames"
        case messageTooLarge = "message_too_large"
    }
}

/// A multipart message to send.
struct OutgoingMessage: Sendable {
    var frames: [Bytes]
    /// Bytes reserved in the outboxes. They are released with the last reference, which for large frames
    /// is dropped on libzmq's I/O thread after the kernel has the data.
    var reservation: ByteReservation?

    init(_ frames: [Bytes], reservation: ByteReservation? = nil) {
        self.frames = frames
        self.reservation = reservation
    }

    var byteCount: Int { frames.reduce(0) { $0 + $1.count } }
}

/// Bytes acquired from one or more semaphores and released in `deinit`, so that no code path can forget it.
final class ByteReservation: Sendable {
    let bytes: Int
    let semaphores: [ByteSemaphore]

    /// Wraps bytes that were already acquired from each semaphore.
    init(bytes: Int, semaphores: [ByteSemaphore]) {
        self.bytes = bytes
        self.semaphores = semaphores
    }

    deinit {
        for gate in semaphores { gate.release(bytes) }
    }
}
