import Hosting
import Synchronization

/// A worker pool that is started on first use.
final class LazyWorkerPool: Sendable {
    let pool: WorkerPool
    private let isStarted = Mutex(false)

    init(_ pool: WorkerPool) { self.pool = pool }

    func start() async throws {
        guard !isStarted.withLock({ $0 }) else { return }
        try await pool.start(isRequired: false)
        isStarted.withLock { $0 = true }
    }

    func stop() async {
        if isStarted.withLock({ $0 }) { await pool.stop() }
    }
}
