import Basics
import CZeroMQ
import Glibc

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

    /// Sets the options of every socket of this module before it binds or connects: changing a high-water mark
    /// afterwards can crash libzmq 4.3.4 (#4524).
    ///
    /// A socket that stops reading on purpose, like a puller with a full inbox, has no heartbeat: libzmq would not see
    /// the peer's heartbeat behind unread messages, and would close the connection with all messages on their way.
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
