import PhotoModel

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The keys of one result in order: an order-statistic tree, so that a position costs O(log n).
///
/// A leaf stores its keys contiguously in one array of bytes, with an overhead of about 6 bytes per key. With a date as
/// sort key a row takes about 50 bytes.
final class KeyTree {
    private final class Node {
        /// The number of keys below this node.
        var count = 0
        // The members of a leaf:
        var bytes: [UInt8] = []
        /// The end of each key in `bytes`.
        var ends: [UInt32] = []
        // The members of an inner node:
        var children: [Node] = []
        /// The lowest key that belongs to each child; the first child also has all lower keys.
        var lowest: [[UInt8]] = []

        var isLeaf: Bool { children.isEmpty }
        var size: Int { isLeaf ? ends.count : children.count }

        func range(_ index: Int) -> Range<Int> { (index == 0 ? 0 : Int(ends[index - 1]))..<Int(ends[index]) }
    }

    private static let maxKeys = 256
    private static let maxChildren = 64

    private var root = Node()
    /// The total bytes of all keys.
    private(set) var bytes = 0

    init() {}

    /// Creates a tree from keys in ascending order without duplicates.
    init(ascending keys: some Sequence<ArraySlice<UInt8>>) {
        var level: [(lowest: [UInt8], node: Node)] = []
        var leaf = Node()
        var lowest: [UInt8] = []
        func close() {
            guard leaf.count > 0 else { return }
            level.append((lowest, leaf))
            leaf = Node()
        }
        for key in keys {
            if leaf.count == 0 { lowest = Array(key) }
            leaf.bytes.append(contentsOf: key)
            leaf.ends.append(UInt32(leaf.bytes.count))
            leaf.count += 1
            bytes += key.count
            // Leaves are not filled completely, so that the first insertions split nothing.
            if leaf.count == Self.maxKeys * 3 / 4 { close() }
        }
        close()
        while level.count > 1 {
            level = stride(from: 0, to: level.count, by: Self.maxChildren / 2).map { start in
                let part = level[start..<min(start + Self.maxChildren / 2, level.count)]
                let node = Node()
                node.children = part.map(\.node)
                node.lowest = part.map(\.lowest)
                node.count = part.reduce(0) { $0 + $1.node.count }
                return (part.first?.lowest ?? [], node)
            }
        }
        if let top = level.first { root = top.node }
    }

    var count: Int { root.count }

    // MARK: Queries

    /// Returns the number of keys below this one, which need not be in the tree.
    func rank(of key: [UInt8]) -> Int {
        var node = root
        var rank = 0
        while !node.isLeaf {
            let index = Self.child(of: node, for: key)
            for before in node.children[..<index] { rank += before.count }
            node = node.children[index]
        }
        return rank + Self.position(in: node, of: key).index
    }

    func contains(_ key: [UInt8]) -> Bool {
        var node = root
        while !node.isLeaf { node = node.children[Self.child(of: node, for: key)] }
        return Self.position(in: node, of: key).isFound
    }

    /// Returns the entities at some positions, clamped to the existing ones.
    func ids(at positions: Range<Int>) -> [ObjectID] {
        let existing = positions.clamped(to: 0..<count)
        guard !existing.isEmpty else { return [] }
        var ids: [ObjectID] = []
        ids.reserveCapacity(existing.count)
        collect(existing, in: root, startingAt: 0, into: &ids)
        return ids
    }

    private func collect(_ positions: Range<Int>, in node: Node, startingAt start: Int, into ids: inout [ObjectID]) {
        if node.isLeaf {
            let local = positions.clamped(to: start..<start + node.count)
            for index in local {
                if let id = ResultKey.id(in: node.bytes[node.range(index - start)]) { ids.append(id) }
            }
            return
        }
        var begin = start
        for child in node.children {
            if begin >= positions.upperBound { return }
            let end = begin + child.count
            if end > positions.lowerBound { collect(positions, in: child, startingAt: begin, into: &ids) }
            begin = end
        }
    }

    /// Calls a closure with each key, in order.
    func forEach(_ body: (ArraySlice<UInt8>) -> Void) { Self.forEach(in: root, body) }

    private static func forEach(in node: Node, _ body: (ArraySlice<UInt8>) -> Void) {
        for index in node.ends.indices { body(node.bytes[node.range(index)]) }
        for child in node.children { forEach(in: child, body) }
    }

    // MARK: Changes

    /// Inserts a key.
    ///
    /// - Returns: false if the key was already in the tree
    @discardableResult
    func insert(_ key: [UInt8]) -> Bool {
        guard insert(key, into: root) else { return false }
        bytes += key.count
        if let (lowest, right) = split(root) {
            let top = Node()
            top.children = [root, right]
            top.lowest = [[], lowest]
            top.count = root.count + right.count
            root = top
        }
        return true
    }

    private func insert(_ key: [UInt8], into node: Node) -> Bool {
        if node.isLeaf {
            let (index, isFound) = Self.position(in: node, of: key)
            guard !isFound else { return false }
            let start = index == 0 ? 0 : Int(node.ends[index - 1])
            node.bytes.insert(contentsOf: key, at: start)
            node.ends.insert(UInt32(start), at: index)
            for later in index..<node.ends.count { node.ends[later] += UInt32(key.count) }
            node.count += 1
            return true
        }
        let index = Self.child(of: node, for: key)
        let child = node.children[index]
        guard insert(key, into: child) else { return false }
        node.count += 1
        if let (lowest, right) = split(child) {
            node.children.insert(right, at: index + 1)
            node.lowest.insert(lowest, at: index + 1)
        }
        return true
    }

    /// Splits a node that is too large, and returns the upper half.
    private func split(_ node: Node) -> (lowest: [UInt8], right: Node)? {
        let right = Node()
        if node.isLeaf {
            guard node.ends.count > Self.maxKeys else { return nil }
            let half = node.ends.count / 2
            let cut = node.ends[half - 1]
            let lowest = Array(node.bytes[node.range(half)])
            right.bytes = Array(node.bytes[Int(cut)...])
            right.ends = node.ends[half...].map { $0 - cut }
            right.count = right.ends.count
            node.bytes.removeSubrange(Int(cut)...)
            node.ends.removeSubrange(half...)
            node.count = half
            return (lowest, right)
        }
        guard node.children.count > Self.maxChildren else { return nil }
        let half = node.children.count / 2
        let lowest = node.lowest[half]
        right.children = Array(node.children[half...])
        right.lowest = Array(node.lowest[half...])
        right.count = right.children.reduce(0) { $0 + $1.count }
        node.children.removeSubrange(half...)
        node.lowest.removeSubrange(half...)
        node.count -= right.count
        return (lowest, right)
    }

    /// Removes a key.
    ///
    /// - Returns: false if the key was not in the tree
    @discardableResult
    func remove(_ key: [UInt8]) -> Bool {
        guard remove(key, from: root) else { return false }
        bytes -= key.count
        while root.children.count == 1 { root = root.children[0] }
        return true
    }

    private func remove(_ key: [UInt8], from node: Node) -> Bool {
        if node.isLeaf {
            let (index, isFound) = Self.position(in: node, of: key)
            guard isFound else { return false }
            node.bytes.removeSubrange(node.range(index))
            node.ends.remove(at: index)
            for later in index..<node.ends.count { node.ends[later] -= UInt32(key.count) }
            node.count -= 1
            return true
        }
        let index = Self.child(of: node, for: key)
        let child = node.children[index]
        guard remove(key, from: child) else { return false }
        node.count -= 1
        // An empty child is removed; a small one may stay, because a removal never increases the depth.
        if child.count == 0, node.children.count > 1 {
            node.children.remove(at: index)
            node.lowest.remove(at: index)
        }
        return true
    }

    // MARK: Comparing

    /// Returns true if a key comes before another one.
    static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.withUnsafeBytes { left in right.withUnsafeBytes { compare(left, $0) < 0 } }
    }

    /// Returns the index of the last child whose lowest key is not above the key.
    private static func child(of node: Node, for key: [UInt8]) -> Int {
        var (low, high) = (1, node.children.count)
        while low < high {
            let middle = (low + high) / 2
            let isBelow = key.withUnsafeBytes { key in
                node.lowest[middle].withUnsafeBytes { compare(key, $0) < 0 }
            }
            if isBelow { high = middle } else { low = middle + 1 }
        }
        return low - 1
    }

    private static func position(in leaf: Node, of key: [UInt8]) -> (index: Int, isFound: Bool) {
        var (low, high) = (0, leaf.ends.count)
        return key.withUnsafeBytes { key in
            leaf.bytes.withUnsafeBytes { bytes in
                while low < high {
                    let middle = (low + high) / 2
                    let order = compare(key, UnsafeRawBufferPointer(rebasing: bytes[leaf.range(middle)]))
                    if order == 0 { return (middle, true) }
                    if order < 0 { high = middle } else { low = middle + 1 }
                }
                return (low, false)
            }
        }
    }

    private static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        if let first = left.baseAddress, let second = right.baseAddress {
            let order = memcmp(first, second, min(left.count, right.count))
            if order != 0 { return Int(order) }
        }
        return left.count - right.count
    }
}
