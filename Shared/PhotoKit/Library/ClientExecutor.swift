import Basics
import Dispatch

/// The thread on which the client of the synchronous functions runs.
///
/// A synchronous function blocks its caller, which may be a thread of Swift's pool. The work that it waits for must not
/// need that pool: otherwise as many callers as the machine has cores would wait for each other.
final class ClientExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "photokit.client")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Waits before a request is sent again. Callers may block all threads of Swift's pool, so it does not use them.
    ///
    /// The cancellation of the task does not end it.
    func pause(milliseconds: Int) async {
        await TaskDelay.retryDelay(.milliseconds(milliseconds), on: queue)
    }
}
