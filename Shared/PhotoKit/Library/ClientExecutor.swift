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
}
