import Basics
import JSONValue

/// The connections of one server: found by routing id, ended by descriptor.
struct ConnectionTable {
    private(set) var byRouting: [Bytes: Connection] = [:]
    /// A descriptor has more than one routing id if leftover messages of an ended connection are read after its
    /// descriptor was reused. Which of them owns the descriptor is unknown then, so none is ended before the descriptor
    /// is closed again.
    private var byDescriptor: [Int32: Set<Bytes>] = [:]
    /// Closed descriptors that no new connection has reused yet.
    private var gone: Set<Int32> = []
    private var lastSerial: UInt64 = 0
    private(set) var seen = 0
    private let transport: EndpointAddress.Transport
    private let capacity: ServerCapacity
    /// The parts of the capacity that keys of clients have, by key.
    private var parts: [String: ServerCapacity.Part] = [:]
    /// All connections of the socket, those without a message too.
    let peers: PeerTable

    init(transport: EndpointAddress.Transport, capacity: ServerCapacity, peers: PeerTable) {
        self.transport = transport
        self.capacity = capacity
        self.peers = peers
    }

    enum LookupResult {
        case connection(Connection)
        /// The peer has already disconnected.
        case gone
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
            if gone.contains(descriptor) { return .gone }
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
        let part = capacity.partOfKey()
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
        gone.remove(descriptor)
        peers.opened(descriptor, at: now)
    }

    /// Removes and returns the connections of a closed descriptor.
    mutating func closed(_ descriptor: Int32) -> [Connection] {
        gone.insert(descriptor)
        // A part whose requests still end stays until the key's next connection is closed.
        if let key = peers.closed(descriptor), parts[key]?.isIdle == true { parts[key] = nil }
        let ended = byDescriptor.removeValue(forKey: descriptor) ?? []
        return ended.compactMap { byRouting.removeValue(forKey: $0) }
    }
}
