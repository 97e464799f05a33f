import Basics

/// The topics of a publisher's subscribers, each counted once per connection.
///
/// libzmq identifies the connection of a subscription by its descriptor alone, and reports the end of a connection by
/// an event of the socket's monitor. If a descriptor is reused before the last subscriptions of its previous connection
/// are read, those count for the new connection until it ends: a topic may be published needlessly, but none is missed.
struct SubscriptionTable {
    private struct Connection {
        let serial: UInt64
        /// The key of its peer; nil without CURVE, and before its first topic.
        var key: String?
        var topics: Set<Bytes> = []
        /// The publisher is ending the connection; subscriptions that still arrive from it are ignored.
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
    private var subscriberCounts: [Bytes: Int] = [:]
    private var lastSerial: UInt64 = 0
    /// Topics of all connections together.
    private(set) var total = 0

    /// The topics with at least one subscriber.
    var topics: some Sequence<Bytes> { subscriberCounts.keys }

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
    /// - Returns: the topics without subscribers left
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
    /// - Parameters:
    ///   - descriptor: nil for peers within this process, which cannot be distinguished
    ///   - key: the key of the peer; nil without CURVE
    mutating func add(_ topic: Bytes, of descriptor: Int32?, key: String? = nil) -> Outcome {
        if let descriptor {
            // The set must have no other reference while it grows: it would be copied for each topic.
            guard let isEnding = connections[descriptor]?.isEnding else { return .unknownConnection }
            connections[descriptor]?.key = key
            guard !isEnding, connections[descriptor]?.topics.insert(topic).inserted == true else { return .ignored }
        }
        subscriberCounts[topic, default: 0] += 1
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
        guard let count = subscriberCounts[topic] else { return false }
        total -= 1
        subscriberCounts[topic] = count > 1 ? count - 1 : nil
        return count == 1
    }

    /// Returns the number of topics of a connection.
    func count(of descriptor: Int32) -> Int { connections[descriptor]?.topics.count ?? 0 }

    /// The descriptor of the connection to end if there are too many topics. It belongs to the key with the most
    /// topics, and is the one of its connections with the most; of several, the newest. A connection without a key
    /// counts as a key of its own.
    var largest: Int32? {
        var countByKey: [String: Int] = [:]
        for connection in connections.values {
            if let key = connection.key { countByKey[key, default: 0] += connection.topics.count }
        }
        func rank(_ connection: Connection) -> (Int, Int, UInt64) {
            let count = connection.topics.count
            return (connection.key.flatMap { countByKey[$0] } ?? count, count, connection.serial)
        }
        return connections.max { rank($0.value) < rank($1.value) }?.key
    }
}
