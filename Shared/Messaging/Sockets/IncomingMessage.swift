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
    /// libzmq's `Peer-Address`: `localhost:uid:gid:pid` over ipc, an IP address over tcp. Nil if the peer is known.
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
