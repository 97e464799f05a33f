/// Whose turn it is: work under one key is done one after the other, in the order in which it came; work under
/// different keys has nothing to do with each other.
///
/// A pure table; ``Turns`` carries out what it says.
struct TurnTable<Key: Hashable & Sendable>: Sendable {
    enum Entering: Equatable {
        case itsTurn
        case waits
        /// As many wait for this key, or for all keys together, as may.
        case full
    }

    let limitPerKey: Int
    let limit: Int
    /// Those who work or wait, in all.
    private(set) var count = 0
    /// The first of each queue is the one whose turn it is.
    private var queues: [Key: [UInt64]] = [:]

    init(limitPerKey: Int, limit: Int) {
        self.limitPerKey = max(1, limitPerKey)
        self.limit = max(1, limit)
    }

    /// Keys under which work is done.
    var keys: Int { queues.count }

    mutating func enter(_ key: Key, waiter: UInt64) -> Entering {
        guard count < limit, queues[key, default: []].count < limitPerKey else { return .full }
        count += 1
        queues[key, default: []].append(waiter)
        return queues[key]?.count == 1 ? .itsTurn : .waits
    }

    func isFirst(_ key: Key, waiter: UInt64) -> Bool { queues[key]?.first == waiter }

    /// One is done, or has given up waiting; who has the turn now because of it.
    mutating func leave(_ key: Key, waiter: UInt64) -> UInt64? {
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
