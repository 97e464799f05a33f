import JSONValue
import Basics
import Contracts
import Messaging
import PhotoModel

/// Implements `fetch.keys`: reads a result's keys at one sequence, then sends them as byte credits arrive.
struct KeyDelivery: Sendable {
    let store: LibraryStore
    /// Bytes of keys in one notification.
    var chunkBytes = 1 << 20
    /// Bytes of keys in one response; they stay in memory until they are sent.
    var maxBytes = 1 << 30

    private struct Keys: Sendable {
        var chunks: [Bytes] = []
        var token = ChangeToken.none
        var count = 0
        var objectWasDeleted = false
        var scope: [ObjectID]?
        /// The list of the limited grant.
        var granted: Bytes?
    }

    /// - Parameter view: for an identity with a limited grant, what it sees
    func keys(_ request: FetchKeys, _ context: RequestContext, view: LimitedView? = nil) async throws -> Reply {
        guard context.acceptsNotifications else {
            throw FetchError.keysWithoutNotifications
        }
        let fetch = try Fetch(request.fetch)
        guard fetch.kind.isFollowable else {
            throw FetchError.noKeys
        }
        guard !fetch.dependsOnLocalFiles else { throw FetchError.localFiles }
        let keys = try await read(fetch, request, view)
        for chunk in keys.chunks {
            try await context.notifier.notify(FetchKeys.notification, [:], attachments: [chunk])
        }
        var result = FetchKeys.Result(token: keys.token, count: keys.count)
        result.objectWasDeleted = keys.objectWasDeleted
        result.scope = keys.scope
        return Reply(result.json, attachments: keys.granted.map { [$0] } ?? [])
    }

    private func read(_ asked: Fetch, _ request: FetchKeys, _ view: LimitedView?) async throws -> Keys {
        let (chunkBytes, maxBytes, maxCount) = (chunkBytes, maxBytes, request.maxCount)
        return try await store.read { reader in
            let (head, token) = try FetchEngine.moment(request.token, reader)
            var keys = Keys(token: token)
            let fetch = try view?.fetch(asked, reader, at: token.sequence, head, isFollowed: true) ?? asked
            keys.granted = fetch.granted.map { ObjectID.bytes(of: $0.ids) }
            let past = HistoricalState(reader: reader, moment: token.sequence, head: head)
            guard try past.hasObject(of: fetch) else {
                guard let since = request.since else { throw CatalogError.notFound(fetch) }
                let (_, earlier) = try FetchEngine.moment(since, reader)
                guard try HistoricalState(reader: reader, moment: earlier.sequence, head: head).hasObject(of: fetch)
                else { throw CatalogError.notFound(fetch) }
                keys.objectWasDeleted = true
                keys.scope = fetch.kind.needsScope ? [] : nil
                return keys
            }
            if let scope = try past.scope(of: fetch) {
                guard scope.count <= FetchKeys.maxScope else {
                    throw FetchError.scopeTooLarge(limit: FetchKeys.maxScope)
                }
                keys.scope = Array(scope)
            }
            var chunk: Bytes = []
            var total = 0
            try Self.each(fetch, past) { key in
                keys.count += 1
                total += key.bytes.count + 4
                guard keys.count <= maxCount, total <= maxBytes else {
                    throw FetchError.tooManyKeys(limit: maxCount, maxBytes: maxBytes)
                }
                if chunk.count + key.bytes.count + 4 > chunkBytes, !chunk.isEmpty {
                    keys.chunks.append(chunk)
                    chunk = []
                }
                let size = UInt32(truncatingIfNeeded: key.bytes.count)
                for shift in stride(from: 24, through: 0, by: -8) {
                    chunk.append(UInt8(truncatingIfNeeded: size >> UInt32(shift)))
                }
                chunk.append(contentsOf: key.bytes)
            }
            if !chunk.isEmpty { keys.chunks.append(chunk) }
            return keys
        }
    }

    /// The number of assets of an earlier moment whose keys are made at a time.
    private static let batch = 1000

    /// Calls a closure with each key of a result at a moment, ignoring the offset and limit of the fetch.
    private static func each(_ fetch: Fetch, _ past: HistoricalState, _ take: (ResultKey) throws -> Void) throws {
        guard past.moment < past.head.sequence else {
            guard try past.reader.fetchKeys.each(fetch, take) else { throw CatalogError.notFound(fetch) }
            return
        }
        guard fetch.kind.entityClass == .asset else {
            for object in try past.collections(of: fetch.whole) { try take(fetch.resultKey(of: object)) }
            return
        }
        // The broker asks for an earlier moment only when a folder has moved: nothing of it is worth keeping.
        let rows = ResultRows(reader: past.reader, head: past.head, cache: ResultCache(maxBytes: 0))
        let array = try rows.rows(of: fetch.whole, at: past.moment)
        for start in stride(from: 0, to: array.count, by: batch) {
            try Task.checkCancellation()
            let part = Array(array[start..<min(start + batch, array.count)])
            for asset in try rows.assets(part, at: past.moment) { try take(fetch.resultKey(of: asset)) }
        }
    }
}
