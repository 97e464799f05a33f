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
                try? await Task.sleep(for: configuration.catalogPause)
            }
            group.cancelAll()
        }
    }

    /// Follows until the stream breaks off.
    private func follow() async throws(RPCError) {
        // Waits for the connection; asked first so that it is known at once whether it is the same history.
        let current = try await catalog.ask(CurrentToken(), deadline: .seconds(10)).result
        let token = await feed.meet(current)
        let stream = catalog.encodedStream(ChangesFollow(token: token), credit: configuration.catalogCredit)
        for try await event in stream {
            guard case .notification(let notification) = event, notification.method == ChangesFollow.notification
            else { continue }
            do throws(JSONProblem) {
                try await take(notification)
            } catch {
                logger.error("a record of the catalog cannot be read", metadata: ["why": "\(error)"])
                throw Refusal.internalError.error("a record of the catalog cannot be read: \(error)")
            }
        }
    }

    /// Takes in the records of a notification; those before an unreadable one too.
    private func take(_ notification: EncodedNotification) async throws(JSONProblem) {
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
        try await feed.take(records)
        if let problem { throw problem }
    }

    /// Where the records stand in a notification's frame.
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
        while (try? await Task.sleep(for: configuration.catalogInterval)) != nil {
            if let current = try? await catalog.ask(CurrentToken(), deadline: .seconds(5)).result {
                await feed.note(oldest: current.oldest)
            }
        }
    }
}
