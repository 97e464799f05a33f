import Basics
import JSONValue

/// The connections of one server: found by routing id, ended by descriptor.
struct ConnectionTable {
    private(set) var byRouting: [Bytes: Connection] = [:]
    /// A descriptor has more than one routing id if leftover messages of an ended connection are read after its
    /// descriptor was reused. Which of them owns the descriptor is unknown then, so none is ended before the descriptor
    /// is closed again.
    private var byDescriptor: [Int32: Set<Bytes>] = [:]
    /// The number of connections of each key.
    private var countByKey: [String: Int] = [:]
    /// Closed descriptors that no new connection has reused yet.
    private var gone: Set<Int32> = []
    private var lastSerial: UInt64 = 0
    private(set) var seen = 0
    let transport: EndpointAddress.Transport

    init(transport: EndpointAddress.Transport) { self.transport = transport }

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
            limits: limits
        )
        byRouting[routing] = connection
        if let key = connection.curveIdentity?.key {
            let count = countByKey[key, default: 0] + 1
            countByKey[key] = count
            connection.isExcess = count > limits.connectionsPerKey
        }
        return .connection(connection)
    }

    /// Returns whether no other connection has the descriptor of this one, as far as is known.
    func isSoleOwner(_ connection: Connection) -> Bool {
        connection.descriptor.map { byDescriptor[$0]?.count == 1 } ?? false
    }

    private mutating func uncount(_ connection: Connection) {
        guard let key = connection.curveIdentity?.key, let count = countByKey[key] else { return }
        countByKey[key] = count > 1 ? count - 1 : nil
    }

    mutating func remove(_ id: ConnectionID) -> Connection? {
        guard let connection = self[id] else { return nil }
        byRouting[id.routing] = nil
        uncount(connection)
        if let descriptor = connection.descriptor {
            byDescriptor[descriptor]?.remove(id.routing)
            if byDescriptor[descriptor]?.isEmpty == true { byDescriptor[descriptor] = nil }
        }
        return connection
    }

    /// Records that a connection was accepted with this descriptor.
    mutating func opened(_ descriptor: Int32) { gone.remove(descriptor) }

    /// Removes and returns the connections of a closed descriptor.
    mutating func closed(_ descriptor: Int32) -> [Connection] {
        gone.insert(descriptor)
        let ended = byDescriptor.removeValue(forKey: descriptor) ?? []
        let removed = ended.compactMap { byRouting.removeValue(forKey: $0) }
        for connection in removed { uncount(connection) }
        return removed
    }
}
