import Synchronization

/// The pictures asked for lately, in memory, within a budget of bytes.
final class RenditionMemory<Key: Hashable & Sendable>: Sendable {
    private let state: Mutex<State>

    private struct State {
        var accounting: LeastRecent<Key>
        var held: [Key: Held] = [:]
    }

    private struct Held {
        let rendition: StoredRendition
        /// When a use was last reported, in microseconds.
        var reported: Int64
    }

    /// How often the uses of one picture are reported, in microseconds.
    private static var interval: Int64 { 10_000_000 }

    init(budget: Int64) {
        state = Mutex(State(accounting: LeastRecent(budget: budget)))
    }

    func rendition(_ key: Key) -> StoredRendition? {
        state.withLock { state in
            guard state.accounting.touch(key) else { return nil }
            return state.held[key]?.rendition
        }
    }

    /// The picture, and whether whoever keeps it on the disk should hear of its use: not of each one of many.
    ///
    /// - Parameter mayReport: false leaves a picture whose use is to be reported to who may
    func use(
        _ key: Key,
        now: Int64,
        mayReport: Bool = true
    ) -> (rendition: StoredRendition, isToBeReported: Bool)? {
        state.withLock { state in
            guard let held = state.held[key] else { return nil }
            let isToBeReported = now - held.reported >= Self.interval
            guard mayReport || !isToBeReported, state.accounting.touch(key) else { return nil }
            if isToBeReported { state.held[key]?.reported = now }
            return (held.rendition, isToBeReported)
        }
    }

    /// - Parameter now: when its use was last reported
    func insert(_ rendition: StoredRendition, _ key: Key, now: Int64 = 0) {
        state.withLock { state in
            state.held[key] = Held(rendition: rendition, reported: now)
            for gone in state.accounting.insert(key, cost: rendition.cost) { state.held[gone] = nil }
        }
    }

    func remove(_ key: Key) {
        state.withLock { state in
            state.accounting.remove(key)
            state.held[key] = nil
        }
    }

    /// Entries and bytes held.
    var size: (count: Int, bytes: Int64) {
        state.withLock { ($0.accounting.count, $0.accounting.total) }
    }
}
