import Contracts
import JSONValue
import Messaging
import PhotoModel

/// Answers fetches: pages of a result at one moment (DESIGN 3.4).
///
/// At the present moment the database answers directly. For an earlier one the result's array of row numbers is kept, or
/// made again by undoing records; no read transaction stays open.
final class FetchEngine: Sendable {
    private let store: LibraryStore
    private let cache: ResultCache
    private let quarantine: Quarantine

    init(store: LibraryStore, quarantine: Quarantine, cacheBytes: Int) {
        self.store = store
        self.quarantine = quarantine
        self.cache = ResultCache(maxBytes: cacheBytes)
    }

    var cacheBytes: Int { cache.bytes }
    var cachedResults: Int { cache.count }

    func assets(_ request: FetchAssets) async throws -> FetchAssets.Result {
        let fetch = try Fetch(request.fetch)
        guard case .assets(let source) = fetch.kind else {
            throw Refusal.invalidOptions.error("fetch.assets takes fetches of the kind assets")
        }
        return try await store.read { [cache, quarantine] reader in
            let head = try reader.head()
            let token = request.token ?? head.token
            try CatalogRefusals.check(token, head)
            let window = FetchStore.Window(from: request.from, count: request.count)
            var result: FetchAssets.Result
            if token.sequence == head.sequence {
                result = try Self.present(fetch, window, head, reader)
            } else {
                let past = PastState(reader: reader, moment: token.sequence, head: head)
                result = try Self.earlier(fetch, window, past, cache)
            }
            if case .ids(let list) = source {
                result.missing = try Self.missing(list, token.sequence, head, reader)
            }
            result.quarantined = quarantine.entries(of: result.assets)
            return result
        }
    }

    func collections(_ request: FetchCollections) async throws -> FetchCollections.Result {
        let fetch = try Fetch(request.fetch)
        guard [.assetCollection, .collection].contains(fetch.kind.entityClass) else {
            throw Refusal.invalidOptions.error("fetch.collections takes fetches of the kinds collections and children")
        }
        return try await store.read { reader in
            let head = try reader.head()
            let window = FetchStore.Window(from: request.from, count: request.count)
            guard let page = try FetchStore(database: reader.database).collections(fetch, window) else {
                throw Self.notFound(fetch)
            }
            return FetchCollections.Result(token: head.token, count: page.count, collections: page.collections)
        }
    }

    // MARK: Now

    private static func present(
        _ fetch: Fetch,
        _ window: FetchStore.Window,
        _ head: LibraryHead,
        _ reader: LibraryReader
    ) throws -> FetchAssets.Result {
        let store = FetchStore(database: reader.database)
        guard let count = try store.assetCount(fetch), let rows = try store.assetRows(fetch, window) else {
            throw notFound(fetch)
        }
        let assets = try reader.assets.assets(rows)
        return FetchAssets.Result(token: head.token, count: count, assets: rows.compactMap { assets[$0] })
    }

    // MARK: Earlier

    private static func earlier(
        _ fetch: Fetch,
        _ window: FetchStore.Window,
        _ past: PastState,
        _ cache: ResultCache
    ) throws -> FetchAssets.Result {
        if case .assets(.collection(let id)) = fetch.kind, try !past.hadCollection(id) { throw notFound(fetch) }
        let whole = fetch.window(offset: 0, limit: 0)
        let key = ResultCache.Key(fetch: whole, sequence: past.moment)
        let array: [Int64]
        if let kept = cache[key] {
            array = kept
        } else {
            array = try past.result(of: whole)
            cache.keep(array, for: key)
        }
        let count = fetch.windowed(array.count)
        let from = min(window.from, count)
        let page = from..<(from + min(window.count ?? count, count - from))
        let rows = page.map { array[fetch.offset + $0] }
        let present = try past.reader.assets.assets(rows)
        let assets = try rows.map { row in
            guard let id = try present[row]?.id ?? past.reader.assets.departed(row),
                let asset = try past.earlier(id) ?? present[row]
            else { throw DamagedRow("row \(row) is in no record") }
            return asset
        }
        let token = ChangeToken(library: past.head.library, sequence: past.moment)
        return FetchAssets.Result(token: token, count: count, assets: assets)
    }

    // MARK: Missing

    private static func missing(
        _ list: IDList,
        _ moment: Int64,
        _ head: LibraryHead,
        _ reader: LibraryReader
    ) throws -> [ObjectID] {
        let past = PastState(reader: reader, moment: moment, head: head)
        return try list.ids.filter { id in
            if moment < head.sequence, let earlier = try past.earlier(id) { return earlier == nil }
            return try reader.assets.rowNumber(of: id) == nil
        }
    }

    private static func notFound(_ fetch: Fetch) -> RPCError {
        let id =
            switch fetch.kind {
            case .assets(.collection(let id)), .children(let id): id.text
            default: ""
            }
        return Refusal.identifierNotFound.error("nothing has the identifier \(id)", ["id": .string(id)])
    }
}
