import Logging
import Messaging
import ServiceLifecycle

/// Makes the changes that nobody asks for: what the passing of time does to recently added assets and to the trash, once
/// at the start and then every hour, as transactions of the origin `clock` (DESIGN 3.2).
struct ClockPart: Service {
    let writer: Writer
    /// Microseconds.
    let interval: Int64
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await pass()
            for await _ in Waiting.ticks(every: .microseconds(interval)) { await pass() }
        }
    }

    private func pass() async {
        var hasMore = true
        while hasMore, !Task.isCancelled {
            do throws(WriteFailure) {
                hasMore = try await writer.perform(.clock).hasMore
            } catch {
                // A full queue or disk: the next look does it.
                logger.warning("what is old was not looked at", metadata: ["error": "\(error)"])
                return
            }
        }
    }
}
