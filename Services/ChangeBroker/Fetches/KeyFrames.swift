import Basics
import JSONValue
import Contracts
import PhotoModel

/// The keys of a result as the catalog sends them: frames of length-prefixed keys (see ``FetchKeys``).
struct KeyFrames: Sendable {
    private var bytes: Bytes = []
    private var ends: [Int] = []

    var count: Int { ends.count }
    /// The bytes of all keys.
    var byteCount: Int { bytes.count }

    /// Appends a frame.
    ///
    /// - Throws: an error if the keys are malformed or not in ascending order, because a result cannot be updated
    ///   from them
    mutating func add(_ frame: Bytes) throws(RPCError) {
        var position = 0
        while position < frame.count {
            guard frame.count - position >= 4 else { throw .malformedKeys }
            let size = frame[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            position += 4
            guard size >= ObjectID.length, size <= frame.count - position else { throw .malformedKeys }
            let key = frame[position..<position + size]
            if let last = ends.last {
                let start = ends.count > 1 ? ends[ends.count - 2] : 0
                guard bytes[start..<last].lexicographicallyPrecedes(key) else { throw .malformedKeys }
            }
            bytes.append(contentsOf: key)
            ends.append(bytes.count)
            position += size
        }
    }

    private func key(_ index: Int) -> ArraySlice<UInt8> { bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]] }

    /// Returns the complete result as a tree.
    func tree() -> sending KeyTree { KeyTree(ascending: ends.indices.lazy.map(key)) }

    /// Returns the changes that lead from an earlier result to these keys, without the entities that have the same key
    /// in both.
    func changes(since tree: KeyTree) -> NetChanges {
        var changes = NetChanges()
        var next = 0
        func add(_ key: ArraySlice<UInt8>, isAfter: Bool) {
            guard let id = ResultKey.id(in: key) else { return }
            let found = ResultKey(bytes: Array(key))
            var change = changes.byEntity[id] ?? NetChange(id: id)
            if isAfter { change.after = found } else { change.before = found }
            changes.replace(change)
        }
        tree.forEach { key in
            while next < count, self.key(next).lexicographicallyPrecedes(key) {
                add(self.key(next), isAfter: true)
                next += 1
            }
            if next < count, self.key(next) == key { next += 1 } else { add(key, isAfter: false) }
        }
        for index in next..<count { add(key(index), isAfter: true) }
        return changes
    }
}
