import Basics
import Contracts
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel

/// Follows the catalog's change log and republishes each record; resumes after interruptions.
struct CatalogFollower: Sendable {
    let catalog: ServiceClient
    let feed: RecordFeed
    let configuration: ChangeBrokerConfiguration
    let logger: Logger

    /// Follows the catalog and reconnects until cancelled.
    func run() async {
        await withTaskGroup { group in
            group.addTask { await refreshOldest() }
            while !Task.isCancelled {
                do throws(RPCError) {
                    try await follow()
                    await feed.dropHistory("the catalog ended the stream of records")
                } catch {
                    if error.errorCode == .tokenExpired {
                        await restart()
                    } else {
                        await feed.dropHistory(error.message)
                    }
                }
                await TaskDelay.retryDelay(configuration.catalogPause)
            }
            group.cancelAll()
        }
    }

    /// Follows until the stream ends.
    private func follow() async throws(RPCError) {
        // Waits for the connection. The current token is requested first, because it says whether the history is the
        // same.
        let current = try await catalog.ask(CurrentToken(), deadline: .seconds(10)).result
        let token = await feed.adopt(current)
        let stream = catalog.encodedStream(ChangesFollow(token: token), credit: configuration.catalogCredit)
        for try await event in stream {
            guard case .notification(let notification) = event, notification.method == ChangesFollow.notification
            else { continue }
            do throws(JSONProblem) {
                try await handle(notification)
            } catch {
                logger.error("cannot parse a change record of the catalog", metadata: ["why": "\(error)"])
                throw RPCError.unreadableRecord(error)
            }
        }
    }

    /// Applies the records of a notification, including those before an unreadable one.
    private func handle(_ notification: EncodedNotification) async throws(JSONProblem) {
        var records: [BrokerRecord] = []
        var problem: JSONProblem?
        do throws(JSONProblem) {
            for range in try Self.records(in: notification) {
                records.append(try BrokerRecord(Bytes(notification.frame[range])))
            }
        } catch {
            problem = error
            await feed.noteUnreadable()
        }
        await feed.waitForSubscribers()
        try await feed.append(records)
        if let problem { throw problem }
    }

    /// Returns the ranges of the records in a notification's frame.
    private static func records(in notification: EncodedNotification) throws(JSONProblem) -> [Range<Int>] {
        var ranges: [Range<Int>]?
        do throws(JSONError) {
            try JSONCursor.reading(notification.frame) { (cursor) throws(JSONError) in
                try cursor.move(to: notification.range.lowerBound)
                try cursor.enterObject()
                while let name = try cursor.nextMember() {
                    guard name == "records", try cursor.peek() == UInt8(ascii: "[") else {
                        try cursor.skip()
                        continue
                    }
                    try cursor.enterArray()
                    var found: [Range<Int>] = []
                    while try cursor.nextElement() { found.append(try cursor.skip()) }
                    ranges = found
                }
            }
        } catch {
            throw JSONProblem("is not JSON: \(error)")
        }
        guard let ranges else { throw JSONProblem("has no records") }
        return ranges
    }

    /// The catalog's history no longer reaches back to the feed's position: restarts at the catalog's head.
    private func restart() async {
        do throws(RPCError) {
            await feed.restart(at: try await catalog.ask(CurrentToken(), deadline: .seconds(10)).result)
        } catch {
            await feed.dropHistory(error.message)
        }
    }

    /// Updates the oldest sequence: history is trimmed while the feed runs.
    private func refreshOldest() async {
        for await _ in TaskDelay.ticks(every: configuration.catalogInterval) {
            if let current = try? await catalog.ask(CurrentToken(), deadline: .seconds(5)).result {
                await feed.note(oldest: current.oldest)
            }
        }
    }
}
