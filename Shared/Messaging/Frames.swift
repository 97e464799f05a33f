/// The bytes of one frame or attachment.
public typealias Bytes = [UInt8]

/// One multipart message as it came in, cut off where it passed a limit.
struct IncomingMessage: Sendable {
    /// The frames that were kept, copied out: a kept libzmq message pins its 8 KiB receive block.
    var frames: [Bytes] = []
    /// Bytes of all frames, the dropped ones included.
    var totalBytes = 0
    /// How many frames there were, the dropped ones included.
    var totalFrames = 0
    /// Which limit was passed, if one was.
    var violation: Violation?
    /// The descriptor of the connection, where there is one: none over inproc.
    var descriptor: Int32?
    /// libzmq's `Peer-Address`: `localhost:uid:gid:pid` over ipc, an IP address over tcp.
    var peerAddress: String?
    /// Who connected, over CURVE.
    var holder: KeyHolder?
    /// What it takes of the memory for requests, on a server.
    var reservation: RequestReservation?

    /// Bytes of the frames that were kept.
    var keptBytes: Int { frames.reduce(0) { $0 + $1.count } }

    enum Violation: String, Sendable {
        case tooManyFrames = "too_many_frames"
        case messageTooLarge = "message_too_large"
    }
}

/// One multipart message on its way out.
struct OutgoingMessage: Sendable {
    var frames: [Bytes]
    /// Bytes taken from the outboxes; given back when the last holder lets go, which for large frames is libzmq's I/O
    /// thread after the kernel has them.
    var charge: Charge?

    init(_ frames: [Bytes], charge: Charge? = nil) {
        self.frames = frames
        self.charge = charge
    }

    var byteCount: Int { frames.reduce(0) { $0 + $1.count } }
}

/// Room taken in one or more gates, given back at the end of its life: no path can forget it.
final class Charge: Sendable {
    let bytes: Int
    let gates: [ByteGate]

    /// The room must have been taken already.
    init(bytes: Int, gates: [ByteGate]) {
        self.bytes = bytes
        self.gates = gates
    }

    deinit {
        for gate in gates { gate.give(bytes) }
    }
}
