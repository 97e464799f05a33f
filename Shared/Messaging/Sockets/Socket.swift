import Basics
import CZeroMQ
import Glibc
import Synchronization

/// A ZeroMQ socket.
///
/// It belongs to one thread at a time: its creator sets it up and hands it over under a lock; from then on it is used
/// and closed on its poll thread.
struct Socket: ~Copyable {
    let pointer: UnsafeMutableRawPointer

    /// Makes a socket of a libzmq type, for example `ZMQ_ROUTER`.
    init(_ kind: Int32, context: MessagingContext) throws(MessagingError) {
        guard let pointer = context.makeSocket(kind) else {
            throw .noSocket(reason: Self.lastErrorText)
        }
        self.pointer = pointer
    }

    deinit { zmq_close(pointer) }

    static var lastErrorText: String { String(cString: zmq_strerror(zmq_errno())) }

    // MARK: Setting up

    func set(_ option: Int32, _ value: Int32) throws(MessagingError) {
        var value = value
        guard zmq_setsockopt(pointer, option, &value, MemoryLayout<Int32>.size) == 0 else {
            throw .optionRefused(number: option, reason: Self.lastErrorText)
        }
    }

    func set(_ option: Int32, _ value: Int64) throws(MessagingError) {
        var value = value
        guard zmq_setsockopt(pointer, option, &value, MemoryLayout<Int64>.size) == 0 else {
            throw .optionRefused(number: option, reason: Self.lastErrorText)
        }
    }

    func set(_ option: Int32, _ value: Bytes) throws(MessagingError) {
        guard zmq_setsockopt(pointer, option, value, value.count) == 0 else {
            throw .optionRefused(number: option, reason: Self.lastErrorText)
        }
    }

    /// Sets the options that every socket of this module has, before it binds or connects: changing a high-water mark
    /// afterwards can crash libzmq 4.3.4 (#4524).
    ///
    /// A socket that stops reading on purpose, like a puller with a full inbox, has no heartbeat: libzmq would not read
    /// the peer's heartbeat after unread messages, and would close the connection with all messages in flight.
    func configure(
        _ limits: MessagingLimits,
        send: Int32,
        receive: Int32,
        linger: Duration,
        hasHeartbeat: Bool = true
    ) throws(MessagingError) {
        try set(ZMQ_MAXMSGSIZE, Int64(limits.maxMessageBytes))
        try set(ZMQ_SNDHWM, send)
        try set(ZMQ_RCVHWM, receive)
        try set(ZMQ_LINGER, linger.optionMilliseconds)
        try set(ZMQ_BACKLOG, limits.backlog)
        if hasHeartbeat {
            try set(ZMQ_HEARTBEAT_IVL, limits.heartbeatInterval.optionMilliseconds)
            try set(ZMQ_HEARTBEAT_TIMEOUT, limits.heartbeatTimeout.optionMilliseconds)
            try set(ZMQ_HEARTBEAT_TTL, limits.heartbeatTimeout.optionMilliseconds)
        } else {
            try set(ZMQ_TCP_KEEPALIVE, 1 as Int32)
            try set(ZMQ_TCP_KEEPALIVE_IDLE, 30 as Int32)
        }
        try set(ZMQ_HANDSHAKE_IVL, limits.handshakeInterval.optionMilliseconds)
        try set(ZMQ_RECONNECT_IVL, limits.reconnectInterval.optionMilliseconds)
        try set(ZMQ_RECONNECT_IVL_MAX, limits.reconnectIntervalMax.optionMilliseconds)
    }

    /// Binds and returns the address, with the actual port if the given one left it open.
    func bind(
        _ address: EndpointAddress,
        security: SocketSecurity = .none
    ) throws(MessagingError) -> EndpointAddress {
        try protectServer(security, at: address)
        try prepare(for: address)
        guard zmq_bind(pointer, address.description) == 0 else {
            throw .cannotBind(address, reason: Self.lastErrorText)
        }
        var text = [CChar](repeating: 0, count: 512)
        var length = text.count
        guard zmq_getsockopt(pointer, ZMQ_LAST_ENDPOINT, &text, &length) == 0 else { return address }
        let bound = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return try EndpointAddress(bound)
    }

    /// Unbinds from an address that ``bind(_:security:)`` returned; over tcp this ends its connections.
    func unbind(_ address: EndpointAddress) -> Bool { zmq_unbind(pointer, address.description) == 0 }

    /// Binds again after ``unbind(_:)``. Returns false while libzmq's I/O thread still holds the port.
    func rebind(_ address: EndpointAddress) -> Bool { zmq_bind(pointer, address.description) == 0 }

    func connect(_ address: EndpointAddress, security: SocketSecurity = .none) throws(MessagingError) {
        try protectClient(security, to: address)
        try prepare(for: address)
        guard zmq_connect(pointer, address.description) == 0 else {
            throw .cannotConnect(address, reason: Self.lastErrorText)
        }
    }

    private func prepare(for address: EndpointAddress) throws(MessagingError) {
        if address.host?.hasPrefix("[") == true { try set(ZMQ_IPV6, 1 as Int32) }
    }
}

extension Duration {
    /// Whole milliseconds as the 32-bit number that libzmq's options use, saturating.
    fileprivate var optionMilliseconds: Int32 { Int32(clamping: microseconds / 1000) }
}

// MARK: - Receiving

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
    var frameBytes: Int { frames.reduce(0) { $0 + $1.count } }

    enum Violation: String, Sendable {
        case tooManyFrames = "too_many_frames"
        case messageTooLarge = "message_too_large"
    }
}

extension Socket {
    /// Returns the next message, or `nil` if there is none now. Never waits.
    ///
    /// libzmq delivers a multipart message only when it is complete, so frames beyond a limit are dropped one by one
    /// while they are received, and never in memory together on this side. The memory that libzmq itself uses for an
    /// unfinished message has no limit: over TCP ``PeerTable/endless(at:above:bytesReceived:)`` finds its connection.
    ///
    /// The leading frames (a routing id) precede the content and are always kept.
    ///
    /// - Parameter isPeerKnown: returns true if the address of the peer with a routing id and a descriptor need not be
    ///   read, because it is known
    func receive(
        maxFrames: Int,
        maxBytes: Int,
        leadingFrames: Int = 0,
        wantsPeer: Bool = false,
        isPeerKnown: (Bytes, Int32) -> Bool = { _, _ in false }
    ) -> IncomingMessage? {
        var message = IncomingMessage()
        var part = zmq_msg_t()
        return withUnsafeMutablePointer(to: &part) { part in
            zmq_msg_init(part)
            defer { zmq_msg_close(part) }
            while true {
                guard receivePart(part) else { return message.totalFrames == 0 ? nil : message }
                let size = zmq_msg_size(part)
                message.totalFrames += 1
                message.totalBytes += size
                if message.totalFrames - leadingFrames > maxFrames {
                    message.violation = message.violation ?? .tooManyFrames
                } else if message.totalBytes > maxBytes {
                    message.violation = message.violation ?? .messageTooLarge
                }
                if message.violation == nil || message.totalFrames <= leadingFrames {
                    message.frames.append(Bytes(UnsafeRawBufferPointer(start: zmq_msg_data(part), count: size)))
                }
                // Read from a frame after the routing id: 4.3.4's ROUTER loses the metadata of a prefetched routing id
                // frame.
                if wantsPeer, message.totalFrames == leadingFrames + 1 {
                    readPeer(of: part, into: &message, isPeerKnown)
                }
                if zmq_msg_more(part) == 0 { return message }
            }
        }
    }

    private func receivePart(_ part: UnsafeMutablePointer<zmq_msg_t>) -> Bool {
        while true {
            if zmq_msg_recv(part, pointer, ZMQ_DONTWAIT) >= 0 { return true }
            guard zmq_errno() == EINTR else { return false }
        }
    }

    private func readPeer(
        of part: UnsafeMutablePointer<zmq_msg_t>,
        into message: inout IncomingMessage,
        _ isPeerKnown: (Bytes, Int32) -> Bool
    ) {
        if let userID = zmq_msg_gets(part, "User-Id") {
            message.curveIdentity = CurveIdentity(userID: String(cString: userID))
        }
        let descriptor = zmq_msg_get(part, ZMQ_SRCFD)
        if descriptor >= 0, let routing = message.frames.first, isPeerKnown(routing, descriptor) {
            message.descriptor = descriptor
            return
        }
        guard let address = zmq_msg_gets(part, "Peer-Address") else { return }
        message.peerAddress = String(cString: address)
        if descriptor >= 0 { message.descriptor = descriptor }
    }
}

// MARK: - Sending

/// A multipart message to send.
struct OutgoingMessage: Sendable {
    var frames: [Bytes]
    /// Bytes reserved in an outbox or a send queue. They are released with the last reference, which for messages of at
    /// least ``countedBytes`` is dropped on libzmq's I/O thread after the kernel has the data.
    var reservation: ByteReservation?

    /// The number of reserved bytes from which a message counts until it has left libzmq; a smaller one counts until
    /// libzmq has accepted it, because the callback costs more than the copy. A server counts small messages again,
    /// together, with the next message of their connection once they have as many bytes.
    static let countedBytes = 4096

    /// True if the message counts until it has left libzmq.
    var isCounted: Bool { (reservation?.bytes ?? 0) >= Self.countedBytes }

    init(_ frames: [Bytes], reservation: ByteReservation? = nil) {
        self.frames = frames
        self.reservation = reservation
    }

    var byteCount: Int { frames.reduce(0) { $0 + $1.count } }
}

/// The outcome of passing a message to libzmq.
enum SendOutcome: Equatable {
    /// libzmq has accepted the whole message.
    case sent
    /// The queue to this peer is full; nothing was accepted.
    case full
    /// The peer does not exist, or not any more.
    case unreachable
    /// Any other error, with its errno; the message is lost.
    case failed(Int32)
}

extension Socket {
    /// Frames of at least this size are passed to libzmq without copying; for smaller ones the callback costs more than
    /// the copy.
    static let zeroCopyThreshold = 64 << 10

    /// Passes a whole message to libzmq, or none of it. Never waits.
    func send(_ message: OutgoingMessage) -> SendOutcome {
        guard let last = message.frames.indices.last else { return .sent }
        // Frames leave in order, so the reservation is released after the last one.
        let isCounted = message.isCounted
        for (index, frame) in message.frames.enumerated() {
            let flags = ZMQ_DONTWAIT | (index == last ? 0 : ZMQ_SNDMORE)
            let isLent = frame.count >= Self.zeroCopyThreshold || (isCounted && index == last)
            let error = isLent ? sendWithoutCopying(frame, message.reservation, flags) : copy(frame, flags)
            if error == 0 { continue }
            switch error {
            case EAGAIN where index == 0: return .full
            case EHOSTUNREACH where index == 0: return .unreachable
            default: return .failed(error)
            }
        }
        return .sent
    }

    private func copy(_ frame: Bytes, _ flags: Int32) -> Int32 {
        while true {
            if zmq_send(pointer, frame, frame.count, flags) >= 0 { return 0 }
            let error = zmq_errno()
            if error != EINTR { return error }
        }
    }

    private func sendWithoutCopying(_ frame: Bytes, _ reservation: ByteReservation?, _ flags: Int32) -> Int32 {
        let loan = LentBuffer(frame, reservation)
        var part = zmq_msg_t()
        return withUnsafeMutablePointer(to: &part) { part in
            let hint = Unmanaged.passRetained(loan)
            // The loan retains the array until libzmq calls back, and a native array's storage does not move while it
            // is neither changed nor released.
            let status = loan.bytes.withUnsafeBytes { content in
                zmq_msg_init_data(
                    part,
                    UnsafeMutableRawPointer(mutating: content.baseAddress),
                    content.count,
                    { _, hint in hint.map { Unmanaged<LentBuffer>.fromOpaque($0).takeRetainedValue().end() } },
                    hint.toOpaque()
                )
            }
            guard status == 0 else {
                hint.release()
                return zmq_errno()
            }
            while true {
                if zmq_msg_send(part, pointer, flags) >= 0 { return 0 }
                let error = zmq_errno()
                if error == EINTR { continue }
                zmq_msg_close(part)
                return error
            }
        }
    }
}

/// An array lent to libzmq, released on its I/O thread.
private final class LentBuffer: Sendable {
    let bytes: Bytes
    let reservation: ByteReservation?
    private let ended = Atomic(false)

    init(_ bytes: Bytes, _ reservation: ByteReservation?) {
        self.bytes = bytes
        self.reservation = reservation
        ended.store(false, ordering: .releasing)
    }

    /// Orders the release after the initialisation, also for sanitizers, which do not see libzmq's synchronization.
    func end() { _ = ended.exchange(true, ordering: .acquiringAndReleasing) }
}

// MARK: - Ending a connection

extension Socket {
    /// Ends a connection with `shutdown(2)` on its descriptor: libzmq 4.3.4 has no call for that, but handles the end
    /// of the stream like any other.
    ///
    /// The descriptor may be closed at any time and reused for another connection. libzmq reports the end of a
    /// connection before it closes the descriptor: so if no end has been reported after the descriptor was duplicated,
    /// the duplicate belongs to this connection.
    ///
    /// - Parameter isOpen: reads the events that libzmq has reported, and returns whether the connection is still open
    /// - Returns: whether the connection was ended
    static func shutDown(_ descriptor: Int32, if isOpen: () -> Bool) -> Bool {
        let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard duplicate >= 0 else { return false }
        defer { Glibc.close(duplicate) }
        return isOpen() && Glibc.shutdown(duplicate, Int32(SHUT_RDWR)) == 0
    }
}
