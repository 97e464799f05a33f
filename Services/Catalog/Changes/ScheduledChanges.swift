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

    /// The maximum number of assets of one transaction.
    private static let maxAssets = 250

    /// Makes the changes that are due. A transaction that is too large is tried again with fewer assets, so that large
    /// ones do not keep the others back.
    func pass() async {
        var limit = Self.maxAssets
        var hasMore = true
        while hasMore, !Task.isCancelled {
            do throws(WriteFailure) {
                hasMore = try await writer.perform(.clock(max: limit)).hasMore
                limit = min(Self.maxAssets, limit * 2)
            } catch {
                if error.isTooLarge, limit > 1 {
                    limit = max(1, limit / 4)
                    continue
                }
                // The queue or the disk is full: the next run tries again.
                logger.warning("time-based changes failed; will be retried", metadata: ["error": "\(error)"])
                return
            }
        }
    }
}
