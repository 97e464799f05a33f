import PhotoModel
import Synchronization

/// Results that are being paged through, within a bound of memory; those unused longest go first.
final class ResultCache: Sendable {
    struct Key: Hashable, Sendable {
        let fetch: Fetch
        let sequence: Int64
    }

    private struct State {
        /// Row numbers in the order of the result; also those of assets that are deleted since.
        var arrays: [Key: (rows: [Int64], used: UInt64)] = [:]
        var bytes = 0
        var clock: UInt64 = 0
        /// How many there were in results that nobody has the array of.
        var counts: [Fetch: (sequence: Int64, count: Int)] = [:]
    }

    /// Counts that are kept; beyond that all are forgotten.
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

    /// The latest result of a fetch that is kept, of a moment within bounds.
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

    /// The latest count of a fetch that is kept.
    func newestCount(of fetch: Fetch) -> (sequence: Int64, count: Int)? { state.withLock { $0.counts[fetch] } }

    func keep(count: Int, of fetch: Fetch, at sequence: Int64) {
        state.withLock { state in
            if let known = state.counts[fetch], known.sequence > sequence { return }
            if state.counts.count >= Self.maxCounts { state.counts = [:] }
            state.counts[fetch] = (sequence, count)
        }
    }

    /// Keeps a result, where it is not larger than all that may be kept.
    func keep(_ rows: [Int64], for key: Key) {
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
