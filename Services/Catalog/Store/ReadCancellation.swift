import Synchronization

/// Tells a read of the database that nobody waits for its result any more: it runs on a thread of the database, where
/// `Task.isCancelled` says nothing about the task that waits.
final class ReadCancellation: Sendable {
    private let isCancelled = Atomic(false)

    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// - Throws: `CancellationError` if the task that waits was cancelled
    func check() throws { if isCancelled.load(ordering: .relaxed) { throw CancellationError() } }
}
