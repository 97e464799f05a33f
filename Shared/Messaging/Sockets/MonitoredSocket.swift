import CZeroMQ
import Synchronization

/// An event of a socket's connections.
enum ConnectionEvent: Sendable, Equatable {
    /// A connection was made or accepted; over ipc and tcp with its descriptor.
    case opened(descriptor: Int32)
    /// The ZeroMQ handshake is complete; messages can be exchanged.
    case ready
    /// A connection was closed.
    case closed(descriptor: Int32)
    /// The handshake with a peer failed.
    case refused
}

/// A socket together with a monitor that reports the events of its connections.
struct MonitoredSocket: ~Copyable {
    let socket: Socket
    let monitor: Socket
    private static let counter = Atomic<UInt64>(0)

    /// Starts monitoring a socket that is not bound or connected yet.
    init(_ watched: consuming Socket, context: MessagingContext) throws(MessagingError) {
        let monitor = try Socket(ZMQ_PAIR, context: context)
        // No high-water mark: libzmq's I/O thread blocks while it sends an event to a full monitor.
        try monitor.set(ZMQ_RCVHWM, 0 as Int32)
        try monitor.set(ZMQ_LINGER, 0 as Int32)
        let number = Self.counter.add(1, ordering: .relaxed).newValue
        let name = "inproc://safelight-monitor-\(number)"
        let events =
            ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED
            | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
            | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
        guard zmq_socket_monitor(watched.pointer, name, events) == 0 else {
            throw .noSocket(reason: Socket.lastErrorText)
        }
        guard zmq_connect(monitor.pointer, name) == 0 else {
            let reason = Socket.lastErrorText
            zmq_socket_monitor(watched.pointer, nil, 0)
            throw .noSocket(reason: reason)
        }
        self.socket = watched
        self.monitor = monitor
    }

    /// Stops monitoring before either socket closes: an event for a monitor that is not read would block libzmq's I/O
    /// thread permanently, and with it every socket of the process.
    deinit { zmq_socket_monitor(socket.pointer, nil, 0) }

    /// Returns all events since the last call.
    func events() -> [ConnectionEvent] {
        var events: [ConnectionEvent] = []
        while let message = monitor.receive(maxFrames: 2, maxBytes: 4096) {
            guard let head = message.frames.first, head.count == 6 else { continue }
            let number = Int32(head[0]) | Int32(head[1]) << 8
            let value = UInt32(head[2]) | UInt32(head[3]) << 8 | UInt32(head[4]) << 16 | UInt32(head[5]) << 24
            let descriptor = Int32(bitPattern: value)
            switch number {
            case ZMQ_EVENT_CONNECTED, ZMQ_EVENT_ACCEPTED: events.append(.opened(descriptor: descriptor))
            case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: events.append(.ready)
            case ZMQ_EVENT_DISCONNECTED: events.append(.closed(descriptor: descriptor))
            default: events.append(.refused)
            }
        }
        return events
    }
}
