import Dispatch
import Storage
import Synchronization

/// Makes staged resources durable in groups: those that arrive during a sync are synced together by the next one.
final class ResourceSyncQueue: Sendable {
    private struct Waiting: Sendable {
        let staged: [StagedResource]
        let continuation: CheckedContinuation<Result<Void, StorageError>, Never>
    }

    private struct State {
        var waiting: [Waiting] = []
        var isScheduled = false
    }

    private let resources: ResourceStore
    /// A serial queue, used as one thread that exists only while there is work.
    private let queue = DispatchQueue(label: "files.sync")
    private let state = Mutex(State())

    init(_ resources: ResourceStore) { self.resources = resources }

    /// Waits until the resources are durable.
    ///
    /// - Throws: ``StorageError`` of the whole group; nothing may refer to the resources then
    func makeDurable(_ staged: [StagedResource]) async throws(StorageError) {
        guard !staged.isEmpty else { return }
        let result = await withCheckedContinuation { continuation in
            let isFirst = state.withLock { state in
                state.waiting.append(Waiting(staged: staged, continuation: continuation))
                defer { state.isScheduled = true }
                return !state.isScheduled
            }
            if isFirst { queue.async { [self] in run() } }
        }
        try result.get()
    }

    private func run() {
        while true {
            let group = state.withLock { state in
                defer { state.waiting = [] }
                state.isScheduled = !state.waiting.isEmpty
                return state.waiting
            }
            if group.isEmpty { return }
            let resources = resources
            let result = Result { () throws(StorageError) in try resources.makeDurable(group.flatMap(\.staged)) }
            for waiting in group { waiting.continuation.resume(returning: result) }
        }
    }
}
