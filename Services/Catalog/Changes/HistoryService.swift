import Contracts
import JSONValue
import Messaging
import PhotoModel

/// Implements `changes.since`, `changes.token` and `changes.follow`: the change log, as pages and as a stream.
struct HistoryService: Sendable {
    let store: LibraryStore
    let tail: ChangeLogTail
    /// The maximum size of the records in one page of `changes.since`, in bytes.
    let pageBytes = 4 << 20
    /// The maximum size of the records in one notification of `changes.follow`, in bytes.
    let followBytes = 256 << 10

    func token() async throws -> CurrentToken.Result {
        let head = try await store.read { try $0.head() }
        return CurrentToken.Result(token: head.token, oldest: head.oldestToken)
    }

    /// Checks that the records after a token are available.
    ///
    /// - Throws: ``CatalogError/tokenExpired(_:_:)``, or ``CatalogError/behind(head:requested:)`` if the token may be
    ///   that of a change that the replica has not replayed yet
    private func check(_ token: ChangeToken, _ head: LibraryHead) throws(CatalogError) {
        if token.library == head.library, token.sequence > head.sequence, store.database.mayLag {
            throw .behind(head: head.token, requested: token.sequence)
        }
        try head.check(token)
    }

    /// Returns a page of records after a token.
    ///
    /// - Parameter view: the view of an identity with a limited grant; nil for the whole library
    func since(_ request: ChangesSince, view: LimitedView? = nil) async throws -> EncodedChangePage {
        let pageBytes = pageBytes
        return try await store.read { reader in
            let head = try reader.head()
            let start = request.token ?? head.oldestToken
            try check(start, head)
            let filter = FeedTopicFilter(request.topics)
            var limited = try view.map { try LimitedRecords($0, reader, after: start.sequence, head) }
            let page =
                filter.isEverything || view != nil
                ? try reader.history.records(
                    after: start.sequence,
                    through: head.sequence,
                    count: request.limit,
                    bytes: pageBytes
                )
                : try reader.history.records(
                    after: start.sequence,
                    through: head.sequence,
                    topics: filter.topics.sorted(),
                    count: request.limit,
                    bytes: pageBytes
                )
            // A page that did not reach a limit covers everything up to the head, even if it contains no records.
            let last = page.isCut ? page.records.last?.sequence ?? head.sequence : head.sequence
            var records = page.records.map(\.bytes)
            if limited != nil {
                // Records of other topics change the list of the grant too, so all are read before topics are compared.
                records = try records.compactMap { try limited?.rewriteNext($0) { (reader, head) } }
                if !filter.isEverything {
                    records = try records.filter { filter.includes(try ChangeRecord(json: JSON(parsing: $0)).topics) }
                }
            }
            return EncodedChangePage(
                records: records,
                token: ChangeToken(library: head.library, sequence: last),
                oldest: head.oldestToken,
                head: head.token
            )
        }
    }

    /// Streams records until the request is cancelled, waiting for credit and for commits.
    ///
    /// - Throws: `invalid_options` on a REQ socket, `token_expired`
    func follow(
        _ request: ChangesFollow,
        _ context: RequestContext,
        view: LimitedView? = nil
    ) async throws -> Reply {
        guard context.acceptsNotifications else {
            throw ChangeError.followWithoutNotifications
        }
        let head = try await store.read { try $0.head() }
        let start = request.token ?? head.token
        try check(start, head)
        var limited = try await store.read { reader in
            try view.map { try LimitedRecords($0, reader, after: start.sequence, try reader.head()) }
        }
        var position = start.sequence
        func token() -> ChangeToken { ChangeToken(library: head.library, sequence: position) }
        while !Task.isCancelled {
            var records: [[UInt8]]
            switch tail.page(after: position, bytes: followBytes) {
            case .atHead:
                guard await tail.wait(for: position + 1) else { return Reply(FollowEnd(token: token()).json) }
                continue
            case .records(let found, let last): (records, position) = (found.map(\.bytes), last)
            case .older: (records, position) = try await readStored(after: position)
            }
            if let before = limited {
                let all = records
                (records, limited) = try await store.read { reader in
                    let head = try reader.head()
                    var limited = before
                    return (try all.compactMap { try limited.rewriteNext($0) { (reader, head) } }, limited)
                }
                // The token of the next notification covers these records too.
                if records.isEmpty { continue }
            }
            try await context.notifier.notify(
                ChangesFollow.notification,
                encoded: EncodedChangePage.notification(records, token: token())
            )
        }
        return Reply(FollowEnd(token: token()).json)
    }

    private func readStored(after position: Int64) async throws -> ([[UInt8]], Int64) {
        let followBytes = followBytes
        return try await store.read { reader in
            let head = try reader.head()
            let records = try reader.history.records(
                after: position,
                through: head.sequence,
                count: 1000,
                bytes: followBytes
            ).records
            guard let last = records.last, records.first?.sequence == position + 1 else {
                throw CatalogError.tokenExpired(ChangeToken(library: head.library, sequence: position), head)
            }
            return (records.map(\.bytes), last.sequence)
        }
    }
}
