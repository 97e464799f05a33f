import Dispatch

/// The thread on which transactions are committed, and the executor of the tasks of small changes: such a task is
/// started there, waits for its commit and sends its reply without changing threads.
final class WriterQueue: TaskExecutor, Sendable {
    /// A serial queue, used as one thread that exists only while there is work.
    private let queue = DispatchQueue(label: "writer")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Runs work after everything that is already queued. It may block.
    func async(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }
}
