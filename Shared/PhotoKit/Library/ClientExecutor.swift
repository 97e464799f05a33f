import Basics
import Dispatch

/// The thread on which the client of the synchronous functions runs.
///
/// A synchronous function blocks its caller, which may be a thread of Swift's pool. The work for which it waits must
/// not need that pool: otherwise as many callers as the machine has cores would deadlock.
final class ClientExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "photokit.client")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Waits before a request is sent again, without Swift's pool, whose threads may all be blocked by callers.
    ///
    /// The cancellation of the task does not end the wait.
    func waitBeforeRetry(milliseconds: Int) async {
        await TaskDelay.retryDelay(.milliseconds(milliseconds), on: queue)
    }
}
