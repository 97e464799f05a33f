import CZeroMQ
import Glibc
import Synchronization

/// What happened to a socket's connections, in order.
enum ConnectionEvent: Sendable, Equatable {
    /// A connection was made or taken in; over ipc and tcp with its descriptor.
    case opened(descriptor: Int32)
    /// ZeroMQ's handshake is done: messages flow.
    case ready
    /// A connection is gone.
    case closed(descriptor: Int32)
    /// A peer failed the handshake.
    case refused
}

/// The monitor of one socket, on the same thread.
struct SocketMonitor: ~Copyable {
    let socket: Socket
    private static let counter = Atomic<UInt64>(0)

    init(of watched: borrowing Socket, context: MessagingContext) throws(MessagingError) {
        let number = Self.counter.add(1, ordering: .relaxed).newValue
        let name = "inproc://safelight-monitor-\(number)"
        let events =
            ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED
            | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
            | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
        guard zmq_socket_monitor(watched.pointer, name, events) == 0 else {
            throw .noSocket(reason: Socket.lastErrorText)
        }
        let socket = try Socket(ZMQ_PAIR, context: context)
        // No mark: a full monitor would block libzmq's I/O thread, which sends events without asking.
        try socket.set(ZMQ_RCVHWM, 0 as Int32)
        try socket.set(ZMQ_LINGER, 0 as Int32)
        guard zmq_connect(socket.pointer, name) == 0 else { throw .noSocket(reason: Socket.lastErrorText) }
        self.socket = socket
    }

    /// All events since the last call.
    func drain() -> [ConnectionEvent] {
        var events: [ConnectionEvent] = []
        while let message = socket.receive(maxFrames: 2, maxBytes: 4096) {
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
