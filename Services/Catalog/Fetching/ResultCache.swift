import DequeModule
import PhotoModel
import Synchronization

/// A cache of the results that clients page through, with a bounded number of bytes; the least recently used are
/// removed first.
final class ResultCache: Sendable {
    struct Key: Hashable, Sendable {
        let fetch: Fetch
        let sequence: Int64
    }

    /// The results of one fetch.
    private struct Results {
        let fetch: Fetch
        /// The estimated bytes of the fetch itself.
        let bytes: Int
        /// By sequence: row numbers in the order of the result, including those of assets deleted since.
        var bySequence: [Int64: (rows: [Int64], lastUse: UInt64)] = [:]
    }

    /// A use of a result; outdated if the result has been used again since.
    private struct Use {
        /// The number of the fetch.
        let number: UInt64
        let sequence: Int64
        let time: UInt64
    }

    private struct State {
        /// The number of each fetch that has results.
        var numbers: [Fetch: UInt64] = [:]
        var results: [UInt64: Results] = [:]
        /// The uses of results, oldest first.
        var uses = Deque<Use>()
        var count = 0
        var bytes = 0
        /// The number of uses so far.
        var clock: UInt64 = 0
        /// Counts of results whose array is not cached.
        var counts: [Fetch: (sequence: Int64, count: Int)] = [:]
        var countBytes = 0

        mutating func recordUse(_ number: UInt64, _ sequence: Int64) -> UInt64 {
            clock += 1
            uses.append(Use(number: number, sequence: sequence, time: clock))
            if uses.count > 4 * count + 64 {
                // Most are outdated.
                uses.removeAll { results[$0.number]?.bySequence[$0.sequence]?.lastUse != $0.time && $0.time != clock }
            }
            return clock
        }

        mutating func remove(_ number: UInt64, _ sequence: Int64) {
            guard let removed = results[number]?.bySequence.removeValue(forKey: sequence) else { return }
            count -= 1
            bytes -= ResultCache.bytes(removed.rows)
            if let rest = results[number], rest.bySequence.isEmpty {
                results[number] = nil
                numbers[rest.fetch] = nil
                bytes -= rest.bytes
            }
        }
    }

    /// The maximum number of cached counts; beyond it all are removed.
    private static let maxCounts = 4096
    /// The maximum number of sequences at which results of one fetch are cached: a client that fetches again after each
    /// change adds one each time.
    static let maxSequences = 64

    private let state = Mutex(State())
    private let maxBytes: Int

    init(maxBytes: Int) { self.maxBytes = maxBytes }

    /// The estimated bytes of the results, including their fetches.
    var bytes: Int { state.withLock { $0.bytes } }
    var count: Int { state.withLock { $0.count } }

    subscript(key: Key) -> [Int64]? {
        state.withLock { state in
            guard let number = state.numbers[key.fetch],
                let found = state.results[number]?.bySequence[key.sequence]
            else { return nil }
            let use = state.recordUse(number, key.sequence)
            state.results[number]?.bySequence[key.sequence]?.lastUse = use
            return found.rows
        }
    }

    /// Returns the latest cached result of a fetch whose sequence is within the bounds.
    func newest(of fetch: Fetch, from oldest: Int64, through last: Int64) -> (sequence: Int64, rows: [Int64])? {
        state.withLock { state in
            guard let number = state.numbers[fetch], let results = state.results[number]?.bySequence,
                let sequence = results.keys.filter({ $0 >= oldest && $0 <= last }).max(),
                let found = results[sequence]
            else { return nil }
            return (sequence, found.rows)
        }
    }

    func count(of fetch: Fetch, at sequence: Int64) -> Int? {
        state.withLock { state in
            if let known = state.counts[fetch], known.sequence == sequence { return known.count }
            return state.numbers[fetch].flatMap { state.results[$0]?.bySequence[sequence]?.rows.count }
        }
    }

    /// Returns the latest cached count of a fetch.
    func newestCount(of fetch: Fetch) -> (sequence: Int64, count: Int)? { state.withLock { $0.counts[fetch] } }

    func insert(count: Int, of fetch: Fetch, at sequence: Int64) {
        let bytes = Self.bytes(fetch)
        state.withLock { state in
            if let known = state.counts[fetch] {
                if known.sequence <= sequence { state.counts[fetch] = (sequence, count) }
                return
            }
            if state.counts.count >= Self.maxCounts || state.countBytes + bytes > maxBytes / 4 {
                state.counts = [:]
                state.countBytes = 0
            }
            state.counts[fetch] = (sequence, count)
            state.countBytes += bytes
        }
    }

    /// Caches a result unless it is larger than the whole cache may be.
    func insert(_ rows: [Int64], for key: Key) {
        let own = Self.bytes(key.fetch)
        guard own + Self.bytes(rows) <= maxBytes else { return }
        state.withLock { state in
            let number = state.numbers[key.fetch] ?? state.clock + 1
            if state.results[number] == nil {
                state.numbers[key.fetch] = number
                state.results[number] = Results(fetch: key.fetch, bytes: own)
                state.bytes += own
            }
            let use = state.recordUse(number, key.sequence)
            if let old = state.results[number]?.bySequence.updateValue((rows, use), forKey: key.sequence) {
                state.bytes -= Self.bytes(old.rows)
            } else {
                state.count += 1
            }
            state.bytes += Self.bytes(rows)
            if let results = state.results[number]?.bySequence, results.count > Self.maxSequences,
                let oldest = results.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                state.remove(number, oldest.key)
            }
            while state.bytes > maxBytes, let oldest = state.uses.popFirst() {
                guard state.results[oldest.number]?.bySequence[oldest.sequence]?.lastUse == oldest.time else {
                    continue
                }
                state.remove(oldest.number, oldest.sequence)
            }
        }
    }

    private static func bytes(_ rows: [Int64]) -> Int { rows.count * 8 + 128 }

    /// Returns the estimated bytes of a fetch in the tables: the structure twice, its parsed predicate, and its lists.
    private static func bytes(_ fetch: Fetch) -> Int {
        1024 + 8 * fetch.canonical.count + 64 * (fetch.granted?.ids.count ?? 0) + 64 * (fetch.scope?.count ?? 0)
    }
}
