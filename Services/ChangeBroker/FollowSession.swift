import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel

/// One reader of `feed.follow`: a cursor into the history that advances as far as the reader's byte credit allows.
///
/// The cursor of a slow reader lags; no records are queued for it.
struct FollowSession: Sendable {
    let history: ChangeHistory
    let configuration: ChangeBrokerConfiguration
    let clock: MonotonicClock

    /// The minimum time between progress notifications to a reader for which no record matches, in microseconds. They
    /// are sent at the feed's next signal after this time.
    private static let progressInterval: Int64 = 900_000

    /// The last token sent to the reader, and its time.
    private struct ReportedPosition {
        var token: ChangeToken
        var time: Int64
    }

    /// Sends records until the request ends.
    ///
    /// - Throws: `token_expired` if the cursor fell behind the retained history, `unavailable` if the catalog is needed
    ///   and unreachable; the reader opens the stream again with its last token
    func run(_ request: FeedFollow, _ context: RequestContext) async throws(RPCError) -> FollowEnd {
        let feed = history.feed
        // The token is read before the list, which then has all earlier changes: the stream has no records of these.
        guard var cursor = await startToken(request) else { throw .brokerNotReady }
        var listed: ChangeHistory.ClientList?
        if try await history.view(of: context) != nil {
            listed = try await history.list(of: context.identity, wantsList: true)
        }
        let (id, signal) = try await feed.addFollower(context.identity, at: cursor)
        do throws(RPCError) {
            // A reader without a token starts at the head and must learn that position.
            if request.token == nil { try await context.notifier.notify(FeedFollow.progress, ["token": token(cursor)]) }
            var reported = ReportedPosition(token: cursor, time: clock.nowMicroseconds())
            for await _ in signal {
                while try await step(request, &listed, &cursor, &reported, context.notifier) {
                    await feed.setPosition(of: id, to: cursor)
                }
                await feed.setPosition(of: id, to: cursor)
                if reported.token != cursor, clock.nowMicroseconds() - reported.time >= Self.progressInterval {
                    try await reportProgress(cursor, &reported, context.notifier)
                }
            }
        } catch {
            await feed.removeFollower(id)
            throw error
        }
        await feed.removeFollower(id)
        return FollowEnd(token: cursor)
    }

    /// Sends one page.
    ///
    /// - Returns: true if more may be available at once
    private func step(
        _ request: FeedFollow,
        _ listed: inout ChangeHistory.ClientList?,
        _ cursor: inout ChangeToken,
        _ reported: inout ReportedPosition,
        _ notifier: Notifier
    ) async throws(RPCError) -> Bool {
        let page: EncodedChangePage
        let filter = FeedTopicFilter(request.topics)
        if listed != nil {
            guard let next = try await limitedPage(filter, &listed, cursor) else { return false }
            page = next
        } else {
            page = try await history.page(
                after: cursor,
                limit: configuration.followRecords,
                filter: filter,
                maxBytes: configuration.followBytes,
                deadline: .seconds(30)
            )
        }
        let hasAdvanced = page.token != cursor
        cursor = page.token
        if !page.records.isEmpty {
            try await notifier.notify(
                FeedFollow.notification,
                encoded: EncodedChangePage.notification(page.records, token: page.token)
            )
            reported = ReportedPosition(token: cursor, time: clock.nowMicroseconds())
        } else if cursor.sequence - reported.token.sequence >= Int64(RecordRing.maxExamined) {
            try await reportProgress(cursor, &reported, notifier)
        }
        return hasAdvanced && page.hasMore
    }

    /// Returns the next page of a limited view; nil if there is none yet. Records that do not concern the view are
    /// skipped in memory; the others are rewritten by the catalog.
    private func limitedPage(
        _ filter: FeedTopicFilter,
        _ listed: inout ChangeHistory.ClientList?,
        _ cursor: ChangeToken
    ) async throws(RPCError) -> EncodedChangePage? {
        guard var list = listed else { return nil }
        // Until the cursor has reached it, the list is that of a later sequence.
        if cursor.sequence >= list.token.sequence,
            let skipped = await history.feed.skippingIrrelevantRecords(after: cursor, for: list.assets),
            skipped.token != cursor || !skipped.foundRelevant
        {
            guard skipped.token != cursor else { return nil }
            let head = await history.feed.token ?? skipped.token
            return EncodedChangePage(records: [], token: skipped.token, oldest: skipped.token, head: head)
        }
        let page = try await history.page(
            for: list.client,
            after: cursor,
            limit: configuration.followRecords,
            filter: .everything,
            deadline: .seconds(30)
        )
        var records: [[UInt8]] = []
        for bytes in page.records {
            let record: BrokerRecord
            do throws(JSONProblem) { record = try BrokerRecord(bytes) } catch { throw .unreadableRecord(error) }
            if let grant = record.grant, grant.identity == list.client.identity {
                list.assets.subtract(grant.removed)
                list.assets.formUnion(grant.added)
            }
            if filter.includes(record.parts.map(\.topic)) { records.append(bytes) }
        }
        listed = list
        return EncodedChangePage(records: records, token: page.token, oldest: page.oldest, head: page.head)
    }

    private func reportProgress(
        _ cursor: ChangeToken,
        _ reported: inout ReportedPosition,
        _ notifier: Notifier
    ) async throws(RPCError) {
        try await notifier.notify(FeedFollow.progress, ["token": token(cursor)])
        reported = ReportedPosition(token: cursor, time: clock.nowMicroseconds())
    }

    private func startToken(_ request: FeedFollow) async -> ChangeToken? {
        if let token = request.token { return token }
        return await history.feed.token
    }

    private func token(_ token: ChangeToken) -> JSON { .string(token.description) }
}
