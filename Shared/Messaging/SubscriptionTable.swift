/// The topics that a publisher's readers have subscribed to, each counted once for each connection.
///
/// libzmq names the connection of a subscription by its descriptor alone, and the end of a connection by an event of
/// the socket's monitor. If a descriptor is used again before the last subscriptions of its former connection are read,
/// those count for the new one until it ends: a topic may be published in vain, but none is left out.
struct SubscriptionTable {
    private struct Connection {
        let serial: UInt64
        var topics: Set<Bytes> = []
        /// Its end has been asked for: what it still sends is ignored.
        var isEnding = false
    }

    /// What a subscription came to.
    enum Outcome: Equatable {
        case added
        /// It is known already, or of a connection that has ended.
        case ignored
        /// The connection is not known: its event has yet to be read.
        case unknownConnection
    }

    private var connections: [Int32: Connection] = [:]
    /// How many connections want each topic.
    private var readers: [Bytes: Int] = [:]
    private var lastSerial: UInt64 = 0
    /// Topics of all connections together.
    private(set) var total = 0

    /// Connections that have subscribed to something or may do so.
    var connectionCount: Int { connections.count }

    /// A connection was accepted.
    mutating func open(_ descriptor: Int32) {
        guard connections[descriptor] == nil else { return }
        lastSerial += 1
        connections[descriptor] = Connection(serial: lastSerial)
    }

    /// A connection is gone.
    ///
    /// - Returns: the topics that nobody wants any more
    mutating func close(_ descriptor: Int32) -> [Bytes] {
        guard let connection = connections.removeValue(forKey: descriptor) else { return [] }
        return connection.topics.filter { release($0) }
    }

    /// A connection is about to be ended: its topics do not count any more.
    ///
    /// - Returns: the topics that nobody wants any more
    mutating func markEnding(_ descriptor: Int32) -> [Bytes] {
        let topics = connections[descriptor]?.topics ?? []
        connections[descriptor]?.topics = []
        connections[descriptor]?.isEnding = true
        return topics.filter { release($0) }
    }

    /// Counts a subscription.
    ///
    /// - Parameter descriptor: nil: of a peer in this process, whose subscriptions are not told apart
    mutating func add(_ topic: Bytes, of descriptor: Int32?) -> Outcome {
        if let descriptor {
            // Nothing else may refer to the set while it grows: it would be copied for each topic.
            guard let isEnding = connections[descriptor]?.isEnding else { return .unknownConnection }
            guard !isEnding, connections[descriptor]?.topics.insert(topic).inserted == true else { return .ignored }
        }
        readers[topic, default: 0] += 1
        total += 1
        return .added
    }

    /// Takes a subscription back; one that is not there is ignored.
    ///
    /// - Returns: whether nobody wants the topic any more
    mutating func remove(_ topic: Bytes, of descriptor: Int32?) -> Bool {
        if let descriptor {
            guard connections[descriptor]?.topics.remove(topic) != nil else { return false }
        }
        return release(topic)
    }

    private mutating func release(_ topic: Bytes) -> Bool {
        guard let count = readers[topic] else { return false }
        total -= 1
        readers[topic] = count > 1 ? count - 1 : nil
        return count == 1
    }

    /// How many topics a connection has.
    func count(of descriptor: Int32) -> Int { connections[descriptor]?.topics.count ?? 0 }

    /// Tells a connection from later ones with its descriptor; nil for one that is gone.
    func serial(of descriptor: Int32) -> UInt64? { connections[descriptor]?.serial }

    /// The connection with the most topics; of several the newest.
    var largest: Int32? {
        connections.max { ($0.value.topics.count, $0.value.serial) < ($1.value.topics.count, $1.value.serial) }?.key
    }
}
