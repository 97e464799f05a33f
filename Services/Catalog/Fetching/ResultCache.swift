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
    }

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
