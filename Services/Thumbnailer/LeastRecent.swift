/// What a cache holds, how much of its budget that takes, and what has to go first.
///
/// Accounting only: the bytes themselves are somebody else's. Every operation takes constant time, so that a cache hit
/// costs the same in a cache of a hundred and of a million entries.
struct LeastRecent<Key: Hashable & Sendable>: Sendable {
    /// Bytes that may be held.
    let budget: Int64
    /// Bytes that are held.
    private(set) var total: Int64 = 0
    private var places: [Key: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    /// The place of the entry that was used last and of the one to go first.
    private var newest = -1
    private var oldest = -1

    private struct Node: Sendable {
        var key: Key?
        var cost: Int64
        var newer: Int
        var older: Int
    }

    init(budget: Int64) {
        self.budget = max(0, budget)
    }

    var count: Int { places.count }

    func contains(_ key: Key) -> Bool { places[key] != nil }

    func cost(of key: Key) -> Int64? { places[key].map { nodes[$0].cost } }

    /// The keys, the one that would go first at the front.
    var keysFromOldest: [Key] {
        var keys: [Key] = []
        var place = oldest
        while place >= 0 {
            if let key = nodes[place].key { keys.append(key) }
            place = nodes[place].newer
        }
        return keys
    }

    /// Notes a use; whether the key is held.
    @discardableResult
    mutating func touch(_ key: Key) -> Bool {
        guard let place = places[key] else { return false }
        unlink(place)
        link(place)
        return true
    }

    /// Whether an entry of this cost fits at all.
    func fits(_ cost: Int64) -> Bool { cost >= 0 && cost <= budget }

    /// Takes an entry in as the newest one, in place of the one of the same key.
    ///
    /// - Returns: what must be given up for it, oldest first; the entry itself where it is larger than the budget.
    mutating func insert(_ key: Key, cost: Int64) -> [Key] {
        guard fits(cost) else {
            remove(key)
            return [key]
        }
        if let place = places[key] {
            total += cost - nodes[place].cost
            nodes[place].cost = cost
            unlink(place)
            link(place)
        } else {
            let node = Node(key: key, cost: cost, newer: -1, older: -1)
            let place: Int
            if let reused = free.popLast() {
                nodes[reused] = node
                place = reused
            } else {
                nodes.append(node)
                place = nodes.count - 1
            }
            places[key] = place
            total += cost
            link(place)
        }
        return trim(to: budget)
    }

    /// Forgets an entry; what it cost.
    @discardableResult
    mutating func remove(_ key: Key) -> Int64? {
        guard let place = places.removeValue(forKey: key) else { return nil }
        unlink(place)
        let cost = nodes[place].cost
        total -= cost
        nodes[place].key = nil
        free.append(place)
        return cost
    }

    /// Gives entries up, the oldest first, until at most `bytes` are held.
    private mutating func trim(to bytes: Int64) -> [Key] {
        var gone: [Key] = []
        while total > bytes, oldest >= 0, let key = nodes[oldest].key {
            remove(key)
            gone.append(key)
        }
        return gone
    }

    private mutating func link(_ place: Int) {
        nodes[place].older = newest
        nodes[place].newer = -1
        if newest >= 0 { nodes[newest].newer = place }
        newest = place
        if oldest < 0 { oldest = place }
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (nodes[place].newer, nodes[place].older)
        if newer >= 0 { nodes[newer].older = older } else { newest = older }
        if older >= 0 { nodes[older].newer = newer } else { oldest = newer }
    }
}
