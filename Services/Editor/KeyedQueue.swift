import Hosting

/// The queues of a keyed serializer: work of one key runs one at a time in order of arrival; keys are independent.
///
/// It has no tasks or locks; ``PerAssetSerializer`` carries out its decisions.
struct KeyedQueue<Key: Hashable & Sendable>: Sendable {
    enum EnterResult: Equatable {
        case mayStart
        case mustWait
        /// The limit of this key is reached, or that of all keys is and the client has some of the work.
        case full
    }

    let limitPerKey: Int
    let limit: Int
    /// The number of waiters running or waiting, of all keys.
    private(set) var count = 0
    /// The first waiter of each queue is the one running.
    private var queues: [Key: [(waiter: UInt64, source: WorkSource)]] = [:]
    /// The waiters of each client that has some.
    private var countBySource: [WorkSource: Int] = [:]

    init(limitPerKey: Int, limit: Int) {
        self.limitPerKey = max(1, limitPerKey)
        self.limit = max(1, limit)
    }

    /// The number of keys with work.
    var keyCount: Int { queues.count }

    /// Adds a waiter to the queue of a key.
    ///
    /// - Parameter source: the client that waits. A client with few waiters may always add one, so that another client
    ///   with many does not exclude it.
    mutating func enter(_ key: Key, waiter: UInt64, from source: WorkSource = .service) -> EnterResult {
        let own = countBySource[source, default: 0]
        guard count < limit || own < WorkSource.reservedCount(of: limit),
            queues[key, default: []].count < limitPerKey
        else { return .full }
        count += 1
        countBySource[source] = own + 1
        queues[key, default: []].append((waiter, source))
        return queues[key]?.count == 1 ? .mayStart : .mustWait
    }

    /// Removes a waiter that has finished or was cancelled. Returns the next waiter to run because of it, if any.
    mutating func finish(_ key: Key, waiter: UInt64) -> UInt64? {
        guard let index = queues[key]?.firstIndex(where: { $0.waiter == waiter }) else { return nil }
        count -= 1
        if let source = queues[key]?.remove(at: index).source, let own = countBySource[source] {
            countBySource[source] = own > 1 ? own - 1 : nil
        }
        guard let next = queues[key]?.first?.waiter else {
            queues[key] = nil
            return nil
        }
        return index == 0 ? next : nil
    }
}
