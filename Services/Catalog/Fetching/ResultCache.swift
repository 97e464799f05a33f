import PhotoModel
import Synchronization

/// A cache of the results that clients page through, with a bounded number of bytes; the least recently used go first.
final class ResultCache: Sendable {
    struct Key: Hashable, Sendable {
        let fetch: Fetch
        let sequence: Int64
    }

    private struct State {
        /// Row numbers in the order of the result, including those of assets deleted since.
        var arrays: [Key: (rows: [Int64], used: UInt64)] = [:]
        var bytes = 0
        var clock: UInt64 = 0
        /// Counts of results whose array is not cached.
        var counts: [Fetch: (sequence: Int64, count: Int)] = [:]
    }

    /// The maximum number of cached counts; beyond it all are dropped.
    private static let maxCounts = 4096

    private let state = Mutex(State())
    private let maxBytes: Int

    init(maxBytes: Int) { self.maxBytes = maxBytes }

    var bytes: Int { state.withLock { $0.bytes } }
    var count: Int { state.withLock { $0.arrays.count } }

    subscript(key: Key) -> [Int64]? {
        state.withLock { state in
            guard let found = state.arrays[key] else { return nil }
            state.clock += 1
            state.arrays[key]?.used = state.clock
            return found.rows
        }
    }

    /// Returns the latest cached result of a fetch whose sequence is within the bounds.
    func newest(of fetch: Fetch, from oldest: Int64, through last: Int64) -> (sequence: Int64, rows: [Int64])? {
        state.withLock { state in
            let found = state.arrays.filter { key, _ in
                key.sequence >= oldest && key.sequence <= last && key.fetch == fetch
            }
            guard let newest = found.max(by: { $0.key.sequence < $1.key.sequence }) else { return nil }
            return (newest.key.sequence, newest.value.rows)
        }
    }

    func count(of fetch: Fetch, at sequence: Int64) -> Int? {
        state.withLock { state in
            if let known = state.counts[fetch], known.sequence == sequence { return known.count }
            return state.arrays[Key(fetch: fetch, sequence: sequence)]?.rows.count
        }
    }

    /// Returns the latest cached count of a fetch.
    func newestCount(of fetch: Fetch) -> (sequence: Int64, count: Int)? { state.withLock { $0.counts[fetch] } }

    func insert(count: Int, of fetch: Fetch, at sequence: Int64) {
        state.withLock { state in
            if let known = state.counts[fetch], known.sequence > sequence { return }
            if state.counts.count >= Self.maxCounts { state.counts = [:] }
            state.counts[fetch] = (sequence, count)
        }
    }

    /// Caches a result unless it is larger than the whole cache may be.
    func insert(_ rows: [Int64], for key: Key) {
        guard Self.bytes(rows) <= maxBytes else { return }
        state.withLock { state in
            state.clock += 1
            if let old = state.arrays.updateValue((rows, state.clock), forKey: key) {
                state.bytes -= Self.bytes(old.rows)
            }
            state.bytes += Self.bytes(rows)
            while state.bytes > maxBytes, let oldest = state.arrays.min(by: { $0.value.used < $1.value.used }) {
                state.arrays[oldest.key] = nil
                state.bytes -= Self.bytes(oldest.value.rows)
            }
        }
    }

    private static func bytes(_ rows: [Int64]) -> Int { rows.count * 8 + 256 }
}
