import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// The whole history: the newest records from the ring, older ones from the catalog.
struct ChangeHistory: Sendable {
    let feed: RecordFeed
    /// The connection for records and results.
    let catalog: ServiceClient
    /// The connection for requests that the catalog answers at once.
    let catalogForStatus: ServiceClient

    /// The maximum time for which a page waits for the ring before the catalog is asked.
    static let maxWait = Duration.milliseconds(250)

    // MARK: Limited views

    /// Returns the client of a request if it sees only a list of assets; nil if it sees the whole library.
    ///
    /// - Throws: `access_denied` if it sees nothing, `unavailable` if the catalog cannot be asked
    func view(of context: RequestContext) async throws(RPCError) -> LimitedClient? {
        guard let cached = context.cachedPermission, !Permission(byte: cached.value).seesEverything else { return nil }
        return try await list(of: context.identity)?.client
    }

    /// The list of a limited client at a token.
    struct ClientList: Sendable {
        let client: LimitedClient
        var assets: Set<ObjectID>
        let token: ChangeToken
    }

    /// Returns the current list of a client; nil if it sees the whole library.
    ///
    /// - Parameter wantsList: true to read the assets of the list, at the feed's position or later
    func list(of identity: String, wantsList: Bool = false) async throws(RPCError) -> ClientList? {
        let status: GrantStatus.Result
        do throws(RPCError) {
            let known = await wantsList ? feed.token : feed.newestGrant
            let request = GrantStatus(identity: identity, wantsList: wantsList, atLeast: known)
            status = try await catalogForStatus.ask(request, deadline: .seconds(5)).result
        } catch  where error.isTransient {
            throw .catalogUnreachable(has: "list of assets that \(identity) sees")
        }
        guard !status.permission.seesEverything else { return nil }
        if let error = status.permission.refusal(of: "the feed", needing: .view, for: identity) { throw error }
        let client = LimitedClient(identity: identity, key: status.key)
        return ClientList(client: client, assets: Set(status.list ?? []), token: status.token ?? .none)
    }

    /// Returns the page after a token as a client with a limited grant sees it, which only the catalog can compute.
    func page(
        for client: LimitedClient,
        after token: ChangeToken?,
        limit: Int,
        filter: FeedTopicFilter,
        deadline: Duration
    ) async throws(RPCError) -> EncodedChangePage {
        do throws(RPCError) {
            let topics = filter.topics.sorted()
            let request = ChangesSince(token: token, limit: limit, topics: topics, onBehalfOf: client.identity)
            return try await catalog.encodedChangePage(request, deadline: deadline)
        } catch  where error.isTransient && error.errorCode != .deadlineExceeded {
            throw .catalogUnreachable(has: "records of a limited view")
        }
    }

    // MARK: Records

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
    ) async throws(RPCError) -> EncodedChangePage {
        // A client of the catalog may have the token of a commit that has not reached the broker yet. Waiting for the
        // ring costs less than asking the catalog.
        if let token { await feed.wait(for: token, atMost: min(deadline, Self.maxWait)) }
        if let page = await feed.page(after: token, limit: limit, filter: filter, maxBytes: maxBytes) {
            return page
        }
        let page: EncodedChangePage
        do throws(RPCError) {
            let request = ChangesSince(token: token, limit: limit, topics: filter.topics.sorted())
            page = try await catalog.encodedChangePage(request, deadline: deadline)
        } catch  where error.isTransient && error.errorCode != .deadlineExceeded {
            throw .catalogUnreachable(has: "older history")
        }
        await feed.note(oldest: page.oldest)
        return page
    }
}

// MARK: - Limited clients

/// A client whose grant is limited to a list of assets.
struct LimitedClient: Sendable, Hashable {
    let identity: String
    /// The public key of the client: another key of the same name has another list.
    let key: String?

    init(identity: String, key: String?) { (self.identity, self.key) = (identity, key) }

    /// The client of a list.
    init(_ granted: GrantedAssets) { self.init(identity: granted.identity, key: granted.key) }

    /// An empty list of the client, used before its assets are known.
    var emptyList: GrantedAssets { GrantedAssets(identity: identity, key: key, version: 0, ids: []) }
}
