/// The accounting of a least-recently-used cache with a budget.
///
/// It contains only keys and costs; its owner stores the content. Every operation takes constant time, so a cache hit
/// costs the same with a hundred and with a million entries.
struct LRUIndex<Key: Hashable & Sendable>: Sendable {
    /// The maximum total cost of the entries, in bytes or another unit of the owner.
    let budget: Int64
    /// The cost of all entries.
    private(set) var total: Int64 = 0
    /// The index of each key's node.
    private var slots: [Key: Int] = [:]
    private var nodes: [Node] = []
    private var freeSlots: [Int] = []
    /// The slots of the most and the least recently used entry; -1 if there is none.
    private var mostRecent = -1
    private var leastRecent = -1

    private struct Node: Sendable {
        /// Nil while the slot is free.
        var key: Key?
        var cost: Int64
        /// The slots of the entries used right after and right before this one; -1 for none.
        var moreRecent: Int
        var lessRecent: Int
    }

    init(budget: Int64) {
        self.budget = max(0, budget)
    }

    var count: Int { slots.count }

    func contains(_ key: Key) -> Bool { slots[key] != nil }

    func cost(of key: Key) -> Int64? { slots[key].map { nodes[$0].cost } }

    /// The keys, least recently used first.
    var keysLeastRecentFirst: [Key] {
        var keys: [Key] = []
        var slot = leastRecent
        while slot >= 0 {
            if let key = nodes[slot].key { keys.append(key) }
            slot = nodes[slot].moreRecent
        }
        return keys
    }

    /// Marks an entry as used. Returns false if there is none.
    @discardableResult
    mutating func touch(_ key: Key) -> Bool {
        guard let slot = slots[key] else { return false }
        unlink(slot)
        link(slot)
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
        if let slot = slots[key] {
            total += cost - nodes[slot].cost
            nodes[slot].cost = cost
            unlink(slot)
            link(slot)
        } else {
            let node = Node(key: key, cost: cost, moreRecent: -1, lessRecent: -1)
            let slot: Int
            if let reused = freeSlots.popLast() {
                nodes[reused] = node
                slot = reused
            } else {
                nodes.append(node)
                slot = nodes.count - 1
            }
            slots[key] = slot
            total += cost
            link(slot)
        }
        return trim(to: budget)
    }

    /// Removes an entry. Returns its cost, or nil if there is none.
    @discardableResult
    mutating func remove(_ key: Key) -> Int64? {
        guard let slot = slots.removeValue(forKey: key) else { return nil }
        unlink(slot)
        let cost = nodes[slot].cost
        total -= cost
        nodes[slot].key = nil
        freeSlots.append(slot)
        return cost
    }

    /// Evicts the least recently used entries until at most `bytes` remain.
    private mutating func trim(to bytes: Int64) -> [Key] {
        var evicted: [Key] = []
        while total > bytes, leastRecent >= 0, let key = nodes[leastRecent].key {
            remove(key)
            evicted.append(key)
        }
        return evicted
    }

    private mutating func link(_ slot: Int) {
        nodes[slot].lessRecent = mostRecent
        nodes[slot].moreRecent = -1
        if mostRecent >= 0 { nodes[mostRecent].moreRecent = slot }
        mostRecent = slot
        if leastRecent < 0 { leastRecent = slot }
    }

    private mutating func unlink(_ slot: Int) {
        let (moreRecent, lessRecent) = (nodes[slot].moreRecent, nodes[slot].lessRecent)
        if moreRecent >= 0 { nodes[moreRecent].lessRecent = lessRecent } else { mostRecent = lessRecent }
        if lessRecent >= 0 { nodes[lessRecent].moreRecent = moreRecent } else { leastRecent = moreRecent }
    }
}
