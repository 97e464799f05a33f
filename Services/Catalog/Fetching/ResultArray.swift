import PhotoModel
import Synchronization

/// The assets of a fetch at one moment, in order: row numbers, and identifiers of those that are gone since.
struct ResultArray: Sendable {
    /// A negative number `-n` stands for the asset `ghosts[n - 1]`.
    private(set) var keys: [Int64]
    private(set) var ghosts: [ObjectID] = []

    init(_ rows: [Int64]) { keys = rows }

    enum Element: Sendable, Hashable {
        case row(Int64)
        case ghost(ObjectID)
    }

    var count: Int { keys.count }

    subscript(index: Int) -> Element {
        let key = keys[index]
        return key < 0 ? .ghost(ghosts[Int(-key) - 1]) : .row(key)
    }

    mutating func removeRows(_ rows: Set<Int64>) { keys.removeAll(where: rows.contains) }

    mutating func insert(_ element: Element, at index: Int) {
        switch element {
        case .row(let row): keys.insert(row, at: index)
        case .ghost(let id):
            ghosts.append(id)
            keys.insert(-Int64(ghosts.count), at: index)
        }
    }

    /// Memory it takes, about.
    var bytes: Int { keys.count * 8 + ghosts.count * 64 + 128 }
}

/// Results that are being paged through, within a bound of memory; those unused longest go first.
final class ResultCache: Sendable {
    struct Key: Hashable, Sendable {
        let fetch: Fetch
        let sequence: Int64
    }

    private struct State {
        var arrays: [Key: (array: ResultArray, used: UInt64)] = [:]
        var bytes = 0
        var clock: UInt64 = 0
    }

    private let state = Mutex(State())
    private let maxBytes: Int

    init(maxBytes: Int) { self.maxBytes = maxBytes }

    var bytes: Int { state.withLock { $0.bytes } }
    var count: Int { state.withLock { $0.arrays.count } }

    subscript(key: Key) -> ResultArray? {
        state.withLock { state in
            guard let found = state.arrays[key] else { return nil }
            state.clock += 1
            state.arrays[key]?.used = state.clock
            return found.array
        }
    }

    /// Keeps a result, where it is not larger than all that may be kept.
    func keep(_ array: ResultArray, for key: Key) {
        guard array.bytes <= maxBytes else { return }
        state.withLock { state in
            state.clock += 1
            if let old = state.arrays.updateValue((array, state.clock), forKey: key) { state.bytes -= old.array.bytes }
            state.bytes += array.bytes
            while state.bytes > maxBytes, let oldest = state.arrays.min(by: { $0.value.used < $1.value.used }) {
                state.arrays[oldest.key] = nil
                state.bytes -= oldest.value.array.bytes
            }
        }
    }
}
