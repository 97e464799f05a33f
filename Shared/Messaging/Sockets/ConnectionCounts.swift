import Synchronization

/// Counts the TCP connections of a process, over all of its sockets, so that no client uses all of them.
final class ConnectionCounts: Sendable {
    private let limit = Atomic(Int.max)
    private let all = Atomic(0)
    private let clients = Atomic(0)

    /// The number of connections that the process accepts.
    var maxCount: Int {
        get { limit.load(ordering: .relaxed) }
        set { limit.store(newValue, ordering: .relaxed) }
    }

    /// The maximum number of connections of one key at one socket: a quarter of all.
    var maxPerKey: Int { max(16, maxCount / 4) }

    /// The number of connections above half, and above three quarters; zero or less if there are fewer.
    var surplus: (ofHalf: Int, ofThreeQuarters: Int) {
        let all = all.load(ordering: .relaxed)
        return (all - maxCount / 2, all - maxCount / 4 * 3)
    }

    /// Returns true if the keys of clients have more than three quarters of the connections, and this key has several.
    /// The last quarter is for keys with few connections, and for services.
    func isFull(forKeyWith count: Int) -> Bool {
        clients.load(ordering: .relaxed) > maxCount / 4 * 3 && count > max(1, maxCount / 512)
    }

    func add(_ count: Int) { all.wrappingAdd(count, ordering: .relaxed) }

    /// Counts connections that are known to be of clients with keys, other than services.
    func addOfClients(_ count: Int) { clients.wrappingAdd(count, ordering: .relaxed) }
}
