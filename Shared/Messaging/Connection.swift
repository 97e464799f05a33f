import DequeModule
import JSONValue

/// What a server keeps of one peer; it stays on the poll thread.
final class Connection {
    let id: ConnectionID
    let descriptor: Int32?
    let identity: String
    /// Its key, over CURVE.
    let holder: KeyHolder?
    /// Room for messages on their way to this peer.
    let room: ByteGate
    /// Requests without an answer yet.
    var open: [JSON: OpenRequest] = [:]
    /// Tasks under way for it, those whose answer has gone included.
    var running = 0
    /// Messages that libzmq would not take yet.
    var queue: Deque<OutgoingMessage> = []
    /// Messages that wait because a large one before them is being parsed.
    var held: Deque<(message: IncomingMessage, prefix: [Bytes])> = []
    /// What its requests take.
    let memory = RequestMemory()
    var isParsing = false

    init(id: ConnectionID, message: IncomingMessage, transport: EndpointAddress.Transport, limits: MessagingLimits) {
        self.id = id
        self.descriptor = message.descriptor
        self.identity = Self.identity(of: message, over: transport)
        self.holder = message.holder
        self.room = ByteGate(
            available: limits.outboxBytesPerConnection,
            ceiling: limits.outboxBytesPerConnection,
            lineBound: limits.outboxBytesPerConnection
        )
    }

    /// Who is at the other end: the name of a key, or over ipc libzmq gives `localhost:uid:gid:pid`, as the kernel
    /// vouches for it.
    static func identity(of message: IncomingMessage, over transport: EndpointAddress.Transport) -> String {
        if let holder = message.holder { return holder.identity }
        guard transport == .ipc, let peerAddress = message.peerAddress else { return "loopback" }
        let parts = peerAddress.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 3, let uid = UInt32(parts[parts.count - 3]) else { return "loopback" }
        return "uid:\(uid)"
    }

    /// Whether forgetting it loses nothing.
    var isIdle: Bool { open.isEmpty && running == 0 && queue.isEmpty && held.isEmpty && !isParsing }
}

/// The connections of one server: found by routing id, and ended by descriptor.
struct ConnectionTable {
    private(set) var byRouting: [Bytes: Connection] = [:]
    /// More than one where leftover messages of an ended connection are read after its descriptor has a new owner:
    /// which one is the owner cannot be told, so nobody is ended before the descriptor is closed again.
    private var byDescriptor: [Int32: Set<Bytes>] = [:]
    /// Descriptors whose connection has ended and that no new one has taken yet.
    private var gone: Set<Int32> = []
    private var lastSerial: UInt64 = 0
    private(set) var seen = 0
    private let transport: EndpointAddress.Transport

    init(transport: EndpointAddress.Transport) { self.transport = transport }

    enum Found {
        case connection(Connection)
        /// The peer has gone already.
        case gone
    }

    subscript(id: ConnectionID) -> Connection? {
        guard let connection = byRouting[id.routing], connection.id == id else { return nil }
        return connection
    }

    /// The connection that a message came by.
    ///
    /// Where its peer was connected by another descriptor before, that connection is handed to `ended`.
    mutating func find(
        routing: Bytes,
        message: IncomingMessage,
        limits: MessagingLimits,
        ended: (Connection) -> Void
    ) -> Found {
        if let connection = byRouting[routing] {
            if connection.descriptor == message.descriptor, connection.holder == message.holder {
                return .connection(connection)
            }
            if let old = remove(connection.id) { ended(old) }
        }
        if let descriptor = message.descriptor {
            if gone.contains(descriptor) { return .gone }
            byDescriptor[descriptor, default: []].insert(routing)
        }
        lastSerial += 1
        seen += 1
        let connection = Connection(
            id: ConnectionID(routing: routing, serial: lastSerial),
            message: message,
            transport: transport,
            limits: limits
        )
        byRouting[routing] = connection
        return .connection(connection)
    }

    mutating func remove(_ id: ConnectionID) -> Connection? {
        guard let connection = self[id] else { return nil }
        byRouting[id.routing] = nil
        if let descriptor = connection.descriptor {
            byDescriptor[descriptor]?.remove(id.routing)
            if byDescriptor[descriptor]?.isEmpty == true { byDescriptor[descriptor] = nil }
        }
        return connection
    }

    /// A connection was taken in with this descriptor.
    mutating func opened(_ descriptor: Int32) { gone.remove(descriptor) }

    /// The connections with this descriptor have ended.
    mutating func closed(_ descriptor: Int32) -> [Connection] {
        gone.insert(descriptor)
        let ended = byDescriptor.removeValue(forKey: descriptor) ?? []
        return ended.compactMap { byRouting.removeValue(forKey: $0) }
    }
}
