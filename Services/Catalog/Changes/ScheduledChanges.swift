import Basics
import Logging
import ServiceLifecycle

/// Makes the changes that depend only on the time, to recently added assets and to the trash: once at the start and
/// then every interval (an hour by default), as transactions of origin `clock`.
struct ScheduledChanges: Service {
    let writer: TransactionWriter
    /// The interval in microseconds.
    let interval: Int64
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await pass()
            for await _ in TaskDelay.ticks(every: .microseconds(interval)) { await pass() }
        }
    }

    private func pass() async {
        var hasMore = true
        while hasMore, !Task.isCancelled {
            do throws(WriteFailure) {
                hasMore = try await writer.perform(.clock).hasMore
            } catch {
                // The queue or the disk is full: the next run tries again.
                logger.warning("time-based changes failed; will be retried", metadata: ["error": "\(error)"])
                return
            }
        }
    }
}
