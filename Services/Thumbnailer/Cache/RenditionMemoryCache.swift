import Synchronization

/// The memory cache: recently used renditions within a byte budget.
final class RenditionMemoryCache<Key: Hashable & Sendable>: Sendable {
    private let state: Mutex<State>

    private struct State {
        var accounting: LRUIndex<Key>
        var entries: [Key: Entry] = [:]
    }

    private struct Entry {
        let rendition: EncodedRendition
        /// The time at which a use was last reported, in microseconds.
        var reported: Int64
    }

    /// The interval at which uses of one rendition are reported, in microseconds.
    private static var interval: Int64 { 10_000_000 }

    init(budget: Int64) {
        state = Mutex(State(accounting: LRUIndex(budget: budget)))
    }

    func rendition(_ key: Key) -> EncodedRendition? {
        state.withLock { state in
            guard state.accounting.touch(key) else { return nil }
            return state.entries[key]?.rendition
        }
    }

    /// Returns the rendition, and whether its use should be reported to the disk cache, which happens once per
    /// interval.
    ///
    /// - Parameter mayReport: false for a caller that cannot report a use. It gets no rendition whose use is due to be
    ///   reported.
    func use(
        _ key: Key,
        now: Int64,
        mayReport: Bool = true
    ) -> (rendition: EncodedRendition, shouldReport: Bool)? {
        state.withLock { state in
            guard let entry = state.entries[key] else { return nil }
            let shouldReport = now - entry.reported >= Self.interval
            guard mayReport || !shouldReport, state.accounting.touch(key) else { return nil }
            if shouldReport { state.entries[key]?.reported = now }
            return (entry.rendition, shouldReport)
        }
    }

    /// - Parameter now: the time at which its use was last reported
    func insert(_ rendition: EncodedRendition, _ key: Key, now: Int64 = 0) {
        state.withLock { state in
            state.entries[key] = Entry(rendition: rendition, reported: now)
            for evicted in state.accounting.insert(key, cost: rendition.cost) { state.entries[evicted] = nil }
        }
    }

    func remove(_ key: Key) {
        state.withLock { state in
            state.accounting.remove(key)
            state.entries[key] = nil
        }
    }

    /// The number of entries and their size in bytes.
    var size: (count: Int, bytes: Int64) {
        state.withLock { ($0.accounting.count, $0.accounting.total) }
    }
}
