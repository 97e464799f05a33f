import Synchronization

/// The pictures asked for lately, in memory, within a budget of bytes.
final class RenditionMemory: Sendable {
    private let state: Mutex<State>

    private struct State {
        var accounting: LeastRecent<RenditionKey>
        var renditions: [RenditionKey: StoredRendition] = [:]
    }

    init(budget: Int64) {
        state = Mutex(State(accounting: LeastRecent(budget: budget)))
    }

    func rendition(_ key: RenditionKey) -> StoredRendition? {
        state.withLock { state in
            guard state.accounting.touch(key) else { return nil }
            return state.renditions[key]
        }
    }

    func insert(_ rendition: StoredRendition, _ key: RenditionKey) {
        state.withLock { state in
            state.renditions[key] = rendition
            for gone in state.accounting.insert(key, cost: rendition.cost) { state.renditions[gone] = nil }
        }
    }

    func remove(_ key: RenditionKey) {
        state.withLock { state in
            state.accounting.remove(key)
            state.renditions[key] = nil
        }
    }

    /// Entries and bytes held.
    var size: (count: Int, bytes: Int64) {
        state.withLock { ($0.accounting.count, $0.accounting.total) }
    }
}
