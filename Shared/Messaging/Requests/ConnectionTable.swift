import Basics
import DequeModule
import JSONValue

/// The connections of one server: found by routing id, ended by descriptor.
struct ConnectionTable {
    private(set) var byRouting: [Bytes: Connection] = [:]
    /// A descriptor has more than one routing id if leftover messages of an ended connection are read after its
    /// descriptor was reused. It is then unknown which of them owns the descriptor, so none is ended before the
    /// descriptor is closed again.
    private var byDescriptor: [Int32: Set<Bytes>] = [:]
    /// Closed descriptors that no new connection has reused yet.
    private var closedDescriptors: Set<Int32> = []
    private var lastSerial: UInt64 = 0
    /// The number of connections since the start.
    private(set) var seen = 0
    private let transport: EndpointAddress.Transport
    private let capacity: ServerCapacity
    /// The parts of the capacity that keys of clients have, by key.
    private var parts: [String: ServerCapacity.Part] = [:]
    /// All connections of the socket, including those without a message.
    let peers: PeerTable

    init(transport: EndpointAddress.Transport, capacity: ServerCapacity, peers: PeerTable) {
        self.transport = transport
        self.capacity = capacity
        self.peers = peers
    }

    enum LookupResult {
        case connection(Connection)
        /// The peer has already disconnected.
        case disconnected
    }

    subscript(id: ConnectionID) -> Connection? {
        guard let connection = byRouting[id.routing], connection.id == id else { return nil }
        return connection
    }

    /// Returns the connection that a message arrived on, creating it for a new routing id.
    ///
    /// If the same routing id was on another descriptor or key before, that earlier connection is passed to `ended`.
    mutating func find(
        routing: Bytes,
        message: IncomingMessage,
        limits: MessagingLimits,
        ended: (Connection) -> Void
    ) -> LookupResult {
        if let connection = byRouting[routing] {
            if connection.descriptor == message.descriptor, connection.curveIdentity == message.curveIdentity {
                return .connection(connection)
            }
            if let old = remove(connection.id) { ended(old) }
        }
        if let descriptor = message.descriptor {
            if closedDescriptors.contains(descriptor) { return .disconnected }
            byDescriptor[descriptor, default: []].insert(routing)
        }
        lastSerial += 1
        seen += 1
        let connection = Connection(
            id: ConnectionID(routing: routing, serial: lastSerial),
            message: message,
            transport: transport,
            limits: limits,
            part: part(of: message.curveIdentity)
        )
        byRouting[routing] = connection
        if let descriptor = connection.descriptor {
            connection.isExcess = !peers.identify(descriptor, as: connection.curveIdentity)
        }
        return .connection(connection)
    }

    /// Returns the part of the capacity for connections of an identity.
    private mutating func part(of identity: CurveIdentity?) -> ServerCapacity.Part {
        guard let identity, !peers.isService(identity) else { return capacity.local }
        if let part = parts[identity.key] { return part }
        let part = capacity.makePartOfKey()
        parts[identity.key] = part
        return part
    }

    /// Returns whether no other connection has the descriptor of this one, as far as is known.
    func isSoleOwner(_ connection: Connection) -> Bool {
        connection.descriptor.map { byDescriptor[$0]?.count == 1 } ?? false
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

    /// Removes and returns all connections.
    mutating func removeAll() -> [Connection] {
        defer { (byRouting, byDescriptor, parts) = ([:], [:], [:]) }
        peers.removeAll()
        return Array(byRouting.values)
    }

    /// Records that a connection was accepted with this descriptor.
    mutating func opened(_ descriptor: Int32, at now: Int64) {
        closedDescriptors.remove(descriptor)
        peers.opened(descriptor, at: now)
    }

    /// Removes and returns the connections of a closed descriptor.
    mutating func closed(_ descriptor: Int32) -> [Connection] {
        closedDescriptors.insert(descriptor)
        // A part that is still in use stays until the key's next connection is closed.
        if let key = peers.closed(descriptor), parts[key]?.isIdle == true { parts[key] = nil }
        let ended = byDescriptor.removeValue(forKey: descriptor) ?? []
        return ended.compactMap { byRouting.removeValue(forKey: $0) }
    }
}

// MARK: - A connection

/// A server's connection to one peer; used on the poll thread only.
final class Connection {
    let id: ConnectionID
    let descriptor: Int32?
    let identity: String
    /// The peer's key; nil without CURVE.
    let curveIdentity: CurveIdentity?
    /// The access of the identity as far as the handler knows it; nil if it caches none.
    var cachedPermission: CachedPermission?
    /// The part of the server's capacity that it shares with other connections.
    let part: ServerCapacity.Part
    /// Capacity for messages in flight to this peer.
    let outbox: ConnectionOutbox
    /// Requests without a response yet.
    var open: [JSON: OpenRequest] = [:]
    /// Handler tasks that still run for this connection, including those already answered.
    var running = 0
    /// Messages that libzmq did not accept yet.
    var queue: Deque<OutgoingMessage> = []
    /// The bytes of small messages that libzmq has accepted and that are counted with the next message.
    var uncountedBytes = 0
    /// The number of messages that had left libzmq at the last check, and the time since which no further one has.
    var stall: (releases: Int, since: Int64)?
    /// True if its key already had the maximum number of connections when this one was made.
    var isExcess = false
    /// True once the server has ended it, until libzmq reports its end.
    var isEnding = false
    /// Messages that wait because a large one before them is being parsed.
    var queuedBehindLarge: Deque<(message: IncomingMessage, prefix: [Bytes])> = []
    /// Requests that wait until others have ended.
    var waiting = WaitingRequests()
    /// The time at which a waiting request was last opened, or the first began to wait.
    var lastStart: Int64 = 0
    /// True while it is among the connections whose next waiting request may be opened.
    var hasTurn = false
    /// The memory used by its requests.
    let memory: MemoryQuota
    var isParsing = false

    init(
        id: ConnectionID,
        message: IncomingMessage,
        transport: EndpointAddress.Transport,
        limits: MessagingLimits,
        part: ServerCapacity.Part
    ) {
        self.id = id
        self.descriptor = message.descriptor
        self.identity = Self.identity(of: message, over: transport)
        self.curveIdentity = message.curveIdentity
        self.part = part
        self.outbox = ConnectionOutbox(limits, in: part)
        self.memory = MemoryQuota(limit: limits.requestBytesPerConnection, partOf: part.requests)
    }

    /// Returns the peer's identity: the name of its key over CURVE; over ipc the uid from libzmq's
    /// `localhost:uid:gid:pid`, as reported by the kernel; otherwise `loopback`.
    static func identity(of message: IncomingMessage, over transport: EndpointAddress.Transport) -> String {
        if let curveIdentity = message.curveIdentity { return curveIdentity.identity }
        guard transport == .ipc, let peerAddress = message.peerAddress else { return "loopback" }
        let parts = peerAddress.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 3, let uid = UInt32(parts[parts.count - 3]) else { return "loopback" }
        return "uid:\(uid)"
    }

    /// True if the connection can be removed without losing anything.
    var isIdle: Bool {
        open.isEmpty && running == 0 && queue.isEmpty && queuedBehindLarge.isEmpty && waiting.isEmpty && !isParsing
    }
}
