/// The accounting of a least-recently-used cache with a byte budget.
///
/// Holds keys and costs only; the owner holds the content. Every operation takes constant time, so a cache hit costs
/// the same with a hundred and with a million entries.
struct LRUIndex<Key: Hashable & Sendable>: Sendable {
    /// The most bytes that the entries may cost together.
    let budget: Int64
    /// The cost of all entries, in bytes.
    private(set) var total: Int64 = 0
    private var places: [Key: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    /// The slots of the most and the least recently used entry.
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

    /// The keys, least recently used first.
    var keysFromOldest: [Key] {
        var keys: [Key] = []
        var place = oldest
        while place >= 0 {
            if let key = nodes[place].key { keys.append(key) }
            place = nodes[place].newer
        }
        return keys
    }

    /// Marks an entry as used. Returns false if there is none.
    @discardableResult
    mutating func touch(_ key: Key) -> Bool {
        guard let place = places[key] else { return false }
        unlink(place)
        link(place)
        return true
    }

    /// Returns true if an entry of this cost fits into the empty cache.
    func fits(_ cost: Int64) -> Bool { cost >= 0 && cost <= budget }

    /// Inserts an entry as the most recently used one, replacing the entry of the same key.
    ///
    /// - Returns: the keys evicted for it, least recently used first; the key itself if its cost exceeds the budget
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

    /// Removes an entry. Returns its cost, or nil if there is none.
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

    /// Evicts the least recently used entries until at most `bytes` remain.
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
