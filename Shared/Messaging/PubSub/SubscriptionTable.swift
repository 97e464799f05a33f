import Basics

/// The topics of a publisher's subscribers, each counted once per connection.
///
/// libzmq identifies the connection of a subscription by its descriptor alone, and reports the end of a connection by
/// an event of the socket's monitor. If a descriptor is reused before the last subscriptions of its previous connection
/// are read, those count for the new connection until it ends: a topic may be published needlessly, but none is missed.
struct SubscriptionTable {
    private struct Connection {
        let serial: UInt64
        var topics: Set<Bytes> = []
        /// The publisher is ending the connection; what it still sends is ignored.
        var isEnding = false
    }

    /// The outcome of a subscription.
    enum Outcome: Equatable {
        case added
        /// The topic was already subscribed to, or the connection is ending.
        case ignored
        /// The connection is unknown: its event has not been read yet.
        case unknownConnection
    }

    private var connections: [Int32: Connection] = [:]
    /// The number of connections subscribed to each topic.
    private var readers: [Bytes: Int] = [:]
    private var lastSerial: UInt64 = 0
    /// Topics of all connections together.
    private(set) var total = 0

    /// The topics with at least one subscriber.
    var topics: some Sequence<Bytes> { readers.keys }

    /// Open connections, with or without subscriptions.
    var connectionCount: Int { connections.count }

    /// Adds an accepted connection.
    mutating func open(_ descriptor: Int32) {
        guard connections[descriptor] == nil else { return }
        lastSerial += 1
        connections[descriptor] = Connection(serial: lastSerial)
    }

    /// Removes a closed connection.
    ///
    /// - Returns: the topics without subscribers left
    mutating func close(_ descriptor: Int32) -> [Bytes] {
        guard let connection = connections.removeValue(forKey: descriptor) else { return [] }
        return connection.topics.filter { release($0) }
    }

    /// Records that all connections were closed.
    ///
    /// - Returns: The topics without a subscriber now.
    mutating func closeAll() -> [Bytes] {
        var topics: [Bytes] = []
        for descriptor in Array(connections.keys) { topics += close(descriptor) }
        return topics
    }

    /// Marks a connection that the publisher is about to end, and removes its topics.
    ///
    /// - Returns: the topics without subscribers left
    mutating func markEnding(_ descriptor: Int32) -> [Bytes] {
        let topics = connections[descriptor]?.topics ?? []
        connections[descriptor]?.topics = []
        connections[descriptor]?.isEnding = true
        return topics.filter { release($0) }
    }

    /// Counts a subscription.
    ///
    /// - Parameter descriptor: nil for peers within this process, which cannot be told apart
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

    /// Removes a subscription; an unknown one is ignored.
    ///
    /// - Returns: whether the topic has no subscribers left
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

    /// Returns the number of topics of a connection.
    func count(of descriptor: Int32) -> Int { connections[descriptor]?.topics.count ?? 0 }

    /// Returns a number that distinguishes a connection from later ones with its descriptor; nil if it was closed.
    func serial(of descriptor: Int32) -> UInt64? { connections[descriptor]?.serial }

    /// The descriptor of the connection with the most topics; of several, the newest.
    var largest: Int32? {
        connections.max { ($0.value.topics.count, $0.value.serial) < ($1.value.topics.count, $1.value.serial) }?.key
    }
}
