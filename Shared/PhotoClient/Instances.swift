import Basics
import Messaging
import PhotoModel

/// A connection to one instance of a service.
protocol InstanceConnection: Sendable {
    var address: EndpointAddress { get }
    var connection: ConnectionState { get }
}

extension RequestClient: InstanceConnection {}
extension Pusher: InstanceConnection {}

/// The connections to the instances of a service, at least one. Each request goes to one of them.
struct Instances<Connection: InstanceConnection>: Sendable {
    let connections: [Connection]

    var count: Int { connections.count }
    var first: Connection { connections[0] }
    var addresses: [EndpointAddress] { connections.map(\.address) }

    /// The time to wait for an instance after its connection was lost or begun: enough for a restart. A request that is
    /// sent to another instance at once would not find its images in the cache.
    static var restartTime: Duration { .milliseconds(500) }

    /// Returns the instance for requests about an asset: the first in its ``Rendezvous`` order that is connected.
    ///
    /// If none is connected, it waits for the first that is.
    ///
    /// - Parameters:
    ///   - asset: nil for requests about none, which go to the first instance of the list that is connected
    ///   - limit: the maximum time to wait; nil for no limit
    /// - Returns: the instance, and whether it is connected; after `limit`, or if the task is cancelled, the preferred
    ///   one
    func choose(
        for asset: ObjectID?,
        within limit: Duration? = nil
    ) async -> (connection: Connection, isConnected: Bool) {
        guard count > 1 else { return (first, first.connection.isUsable) }
        let order = asset.map { Rendezvous.order(addresses.map(\.description), for: $0.text) }
        let ordered = order?.map { connections[$0] } ?? connections
        let preferred = ordered[0].connection
        if preferred.isUsable { return (ordered[0], true) }
        let grace = min(Self.restartTime - preferred.absence, limit ?? Self.restartTime)
        if grace > .zero { await TaskDelay.withTimeout(grace) { await preferred.waitUntilUsable() } }
        if !ordered.contains(where: \.connection.isUsable) { await waitForAny(within: limit) }
        guard let connected = ordered.first(where: \.connection.isUsable) else { return (ordered[0], false) }
        return (connected, true)
    }

    /// Waits until any instance is connected.
    func waitForAny(within limit: Duration?) async {
        await withTaskGroup(of: Void.self) { group in
            for connection in connections { group.addTask { await connection.connection.waitUntilUsable() } }
            if let limit { group.addTask { _ = await TaskDelay.timeout(limit) } }
            await group.next()
            group.cancelAll()
        }
    }
}

/// Rendezvous hashing (Thaler and Ravishankar, 1998): clients that know the same addresses prefer the same instance for
/// an asset, each instance gets an equal share, and when one is added or removed only its share moves.
enum Rendezvous {
    /// Returns the indexes of the addresses, the preferred instance first.
    ///
    /// The weight of an address is the number in the first 8 bytes of the SHA-256 of `address`, a line feed and `key`.
    static func order(_ addresses: [String], for key: String) -> [Int] {
        let weights = addresses.map { address in
            SHA256.hash(data: Array("\(address)\n\(key)".utf8)).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        return weights.indices.sorted { (weights[$0], addresses[$0]) > (weights[$1], addresses[$1]) }
    }
}
