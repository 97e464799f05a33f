import Contracts
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel

/// Keeps the feed at the catalog's heels: follows its records, and takes them up again where they broke off.
struct CatalogFollower: Sendable {
    let catalog: ServiceClient
    let feed: RecordFeed
    let configuration: ChangeBrokerConfiguration
    let logger: Logger

    /// Runs until cancelled.
    func run() async {
        await withTaskGroup { group in
            group.addTask { await refreshOldest() }
            while !Task.isCancelled {
                do throws(RPCError) {
                    try await follow()
                    await feed.lose("the catalog ended the stream of records")
                } catch {
                    if error.refusal == .tokenExpired { await restart() } else { await feed.lose(error.message) }
                }
                await Waiting.beforeRetry(configuration.catalogPause)
            }
            group.cancelAll()
        }
    }

    /// Follows until the stream breaks off.
    private func follow() async throws(RPCError) {
        // Waits for the connection; asked first so that it is known at once whether it is the same history.
        let current = try await catalog.ask(CurrentToken(), deadline: .seconds(10)).result
        let token = await feed.meet(current)
        for try await event in catalog.stream(ChangesFollow(token: token), credit: configuration.catalogCredit) {
            guard case .notification(ChangesFollow.notification, let params, _) = event else { continue }
            do throws(JSONProblem) {
                guard let records = params["records"]?.arrayValue else { throw JSONProblem("has no records") }
                try await feed.take(records)
            } catch {
                logger.error("a record of the catalog cannot be read", metadata: ["why": "\(error)"])
                throw Refusal.internalError.error("a record of the catalog cannot be read: \(error)")
            }
        }
    }

    /// The catalog's history does not reach back to the feed's place: begins at its head.
    private func restart() async {
        do throws(RPCError) {
            await feed.restart(at: try await catalog.ask(CurrentToken(), deadline: .seconds(10)).result)
        } catch {
            await feed.lose(error.message)
        }
    }

    /// History gets shorter at its far end while the feed runs.
    private func refreshOldest() async {
        for await _ in Waiting.ticks(every: configuration.catalogInterval) {
            if let current = try? await catalog.ask(CurrentToken(), deadline: .seconds(5)).result {
                await feed.note(oldest: current.oldest)
            }
        }
    }
}
