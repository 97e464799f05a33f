/// The queues of a keyed serializer: work of one key runs one at a time in order of arrival; keys are independent.
///
/// Pure; ``PerAssetSerializer`` carries out its decisions.
struct KeyedQueue<Key: Hashable & Sendable>: Sendable {
    enum EnterResult: Equatable {
        case mayStart
        case mustWait
        /// The limit of this key or of all keys together is reached.
        case full
    }

    let limitPerKey: Int
    let limit: Int
    /// The number of waiters running or waiting, of all keys.
    private(set) var count = 0
    /// The first waiter of each queue is the one running.
    private var queues: [Key: [UInt64]] = [:]

    init(limitPerKey: Int, limit: Int) {
        self.limitPerKey = max(1, limitPerKey)
        self.limit = max(1, limit)
    }

    /// The number of keys with work.
    var keys: Int { queues.count }

    mutating func enter(_ key: Key, waiter: UInt64) -> EnterResult {
        guard count < limit, queues[key, default: []].count < limitPerKey else { return .full }
        count += 1
        queues[key, default: []].append(waiter)
        return queues[key]?.count == 1 ? .mayStart : .mustWait
    }

    /// Removes a waiter that has finished or given up. Returns the next waiter to run because of it, if any.
    mutating func finish(_ key: Key, waiter: UInt64) -> UInt64? {
        guard let place = queues[key]?.firstIndex(of: waiter) else { return nil }
        count -= 1
        queues[key]?.remove(at: place)
        guard let next = queues[key]?.first else {
            queues[key] = nil
            return nil
        }
        return place == 0 ? next : nil
    }
}
