import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// The whole history: the newest records from the ring, older ones from the catalog.
struct ChangeHistory: Sendable {
    let feed: RecordFeed
    let catalog: ServiceClient

    /// How long a page waits for the ring before the catalog is asked.
    static let maxWait = Duration.milliseconds(250)

    /// Returns the page after a token.
    ///
    /// - Parameters:
    ///   - token: nil for the beginning of the history
    ///   - deadline: the time limit of the catalog's response, if it has to be asked
    /// - Throws: `token_expired` as the catalog does; `unavailable` if the catalog is needed and unreachable
    func page(
        after token: ChangeToken?,
        limit: Int,
        filter: FeedTopicFilter,
        maxBytes: Int,
        deadline: Duration
    ) async throws(RPCError) -> EncodedPage {
        // A client that comes from the catalog may know a commit that reaches the broker in a moment. The ring costs
        // less than the catalog.
        if let token { await feed.wait(for: token, atMost: min(deadline, Self.maxWait)) }
        if let page = await feed.page(after: token, limit: limit, filter: filter, maxBytes: maxBytes) {
            return page
        }
        let page: EncodedPage
        do throws(RPCError) {
            let request = ChangesSince(token: token, limit: limit, topics: filter.topics.sorted())
            page = try await catalog.encodedPage(request, deadline: deadline)
        } catch  where error.isTransient && error.errorCode != .deadlineExceeded {
            throw .catalogUnreachable(has: "older history")
        }
        await feed.note(oldest: page.oldest)
        return page
    }
}
