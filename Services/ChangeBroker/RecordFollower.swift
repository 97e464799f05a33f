import Basics
import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// Follows the change log of the catalog, or of another change-broker, and republishes each record; resumes after
/// interruptions.
struct RecordFollower: Sendable {
    let source: RecordSource
    let catalog: ServiceClient
    let feed: RecordFeed
    let configuration: ChangeBrokerConfiguration

    /// The maximum time in which another change-broker has to deliver the records that the catalog has committed.
    private static let maxLag = Duration.seconds(2)
    private static let maxRetryDelay = Duration.seconds(5)

    /// Follows and reconnects until cancelled.
    func run() async {
        await withTaskGroup { group in
            group.addTask { await refreshOldest() }
            if case .broker = source { group.addTask { await watchSource() } }
            var delay = configuration.catalogRetryDelay
            while !Task.isCancelled {
                do throws(RPCError) {
                    try await follow()
                    delay = configuration.catalogRetryDelay
                    await feed.noteUnreachable("the stream of records has ended")
                } catch {
                    // An unreadable record, for example of a newer catalog, is read again at each attempt.
                    let isInternal = error.errorCode == .internalError
                    delay = isInternal ? min(delay * 2, Self.maxRetryDelay) : configuration.catalogRetryDelay
                    if error.errorCode == .tokenExpired {
                        await restart()
                    } else if !Task.isCancelled {
                        await feed.noteUnreachable(error.message)
                    }
                }
                await TaskDelay.retryDelay(delay)
            }
            group.cancelAll()
        }
    }

    /// Follows until the stream ends, or until the catalog that sends it, one of several, does not answer requests.
    private func follow() async throws(RPCError) {
        // Waits for the connection. The current token is requested first, because it contains the history, which may
        // have changed.
        let token = await feed.adopt(try await source.current(deadline: .seconds(10)))
        guard let catalog = source.currentCatalog else { return try await read(source, after: token) }
        try await catalog.whileAnswering { () async throws(RPCError) -> Void in
            try await read(.catalog(catalog), after: token)
        }
    }

    private func read(_ source: RecordSource, after token: ChangeToken) async throws(RPCError) {
        for try await event in source.records(after: token, credit: configuration.catalogCredit) {
            guard case .notification(let notification) = event, notification.method == source.notification
            else { continue }
            do throws(JSONProblem) {
                try await handle(notification)
            } catch {
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
            try JSONCursor.read(notification.frame) { (cursor) throws(JSONError) in
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

    /// Restarts the feed at the head of the history, which no longer reaches back to the feed's position.
    private func restart() async {
        do throws(RPCError) {
            await feed.restart(at: try await source.current(deadline: .seconds(10)))
        } catch {
            await feed.noteUnreachable(error.message)
        }
    }

    /// Compares the feed with the catalog: a change-broker that cannot reach the catalog keeps its streams open and
    /// sends nothing.
    private func watchSource() async {
        for await _ in TaskDelay.ticks(every: .seconds(1)) {
            guard let token = try? await catalog.ask(CurrentToken(), deadline: .seconds(1)).result.token else {
                continue
            }
            await feed.wait(for: token, atMost: Self.maxLag)
            await feed.noteSource(at: token)
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

// MARK: - Source

/// The service whose records a change-broker publishes: the catalog, or another change-broker. One catalog can thus
/// serve few change-brokers, and each of these many others.
enum RecordSource: Sendable {
    case catalog(ServiceClient)
    case broker(ServiceClient)

    /// Returns the newest token, and the one after which the history is complete.
    func current(deadline: Duration) async throws(RPCError) -> CurrentToken.Result {
        switch self {
        case .catalog(let catalog): return try await catalog.ask(CurrentToken(), deadline: deadline).result
        case .broker(let broker):
            let head = try await broker.ask(FeedHeadRequest(), deadline: deadline).result
            return CurrentToken.Result(
                token: head.token,
                oldest: ChangeToken(library: head.library, sequence: head.oldest)
            )
        }
    }

    /// Returns the stream of the records after a token.
    func records(after token: ChangeToken, credit: Int) -> EncodedStream {
        switch self {
        case .catalog(let catalog): catalog.encodedStream(ChangesFollow(token: token), credit: credit)
        case .broker(let broker): broker.encodedStream(FeedFollow(token: token), credit: credit)
        }
    }

    /// The catalog to read from, if there are several; nil if there is only one source.
    var currentCatalog: ServiceClient? {
        guard case .catalog(let catalog) = self else { return nil }
        return catalog.currentCatalog
    }

    /// The method of the notifications that have records.
    var notification: String {
        switch self {
        case .catalog: ChangesFollow.notification
        case .broker: FeedFollow.notification
        }
    }
}
