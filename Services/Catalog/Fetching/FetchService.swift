import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel
import Storage

/// The service that answers fetches with pages of a result at one sequence.
///
/// At the newest sequence the database answers directly if the page is near the front. All other pages come from the
/// result's array of row numbers, which is cached or rebuilt. No read transaction stays open.
final class FetchService: Sendable {
    let store: LibraryStore
    let cache: ResultCache
    let transients: TransientCollectionRegistry
    let snapshotMemory = SnapshotMemory()
    private let quarantine: Quarantine
    /// The local files of a library with remote storage; nil if the library has none, and all bytes are local.
    private let remoteResources: ResourceStore?

    init(
        store: LibraryStore,
        quarantine: Quarantine,
        remoteResources: ResourceStore? = nil,
        cacheBytes: Int,
        transients: TransientCollectionRegistry = TransientCollectionRegistry()
    ) {
        self.store = store
        self.quarantine = quarantine
        self.remoteResources = remoteResources
        self.cache = ResultCache(maxBytes: cacheBytes)
        self.transients = transients
    }

    var cacheBytes: Int { cache.bytes }
    var cachedResults: Int { cache.count }

    /// Pages that begin beyond this offset use the array: the database would have to step over all rows before them.
    static let deepPage = 1000

    /// The maximum size of the objects of a page in bytes: less than that of a message, which also contains the rest of
    /// the page.
    static let maxPageBytes = 15 << 20

    /// Validates a fetch, and replaces a transient collection of the client by its members.
    func checked(_ description: FetchDescription, identity: String) throws -> Fetch {
        let fetch = try Fetch(description)
        guard case .assets(.transient(let id)) = fetch.kind else { return fetch }
        let members = try transients.members(of: id, identity: identity)
        return try fetch.selecting(from: IDList(members))
    }

    /// Returns the fetch that is run for a fetch of assets of a client: a transient list is replaced by the assets in
    /// it, and a view limits it.
    ///
    /// - Parameter view: the view of an identity with a limited grant; nil for the whole library
    func effectiveFetch(
        _ fetch: Fetch,
        identity: String,
        view: LimitedView?,
        _ results: ResultReader,
        at sequence: Int64
    ) throws -> Fetch {
        var fetch = fetch
        if case .assets(.below(let list)) = fetch.kind, list.isTransient {
            fetch = try replacing(list, in: fetch, identity: identity, results, at: sequence)
        }
        if let view { fetch = try view.fetch(fetch, results.reader, at: sequence, results.head) }
        return fetch
    }

    /// Begins to read a page of assets.
    ///
    /// - Parameter token: the token that the request names
    /// - Returns: the fetch that is run, the token of the page, and the reader of results
    private func begin(
        _ fetch: Fetch,
        at token: ChangeToken?,
        _ identity: String,
        _ view: LimitedView?,
        _ reader: LibraryReader
    ) throws -> (fetch: Fetch, token: ChangeToken, results: ResultReader) {
        let (head, resolved) = try Self.resolve(token, reader)
        let results = ResultReader(reader: reader, head: head, cache: cache, isContinued: token != nil)
        let fetch = try effectiveFetch(fetch, identity: identity, view: view, results, at: resolved.sequence)
        return (fetch, resolved, results)
    }

    // MARK: Assets

    /// Returns a page with the projection of the request.
    ///
    /// - Parameter view: the view of an identity with a limited grant; nil for the whole library
    func assetPage(_ request: FetchAssets, identity: String, view: LimitedView? = nil) async throws -> Reply {
        if request.projection.isIDsOnly {
            return Reply(encoded: try await identifiers(request, identity: identity, view: view))
        }
        let fetch = try checkedAssetFetch(request, identity)
        return try await store.read { reader in
            try self.reply(with: try self.selectPage(request, fetch, identity, reader, view), request.projection)
        }
    }

    /// Returns a page of assets, for callers in this process.
    ///
    /// - Parameter onlyResources: true to read only the identifier and the resources of each asset
    func assets(_ request: FetchAssets, onlyResources: Bool = false) async throws -> FetchAssets.Result {
        let fetch = try checkedAssetFetch(request, "")
        let projection = onlyResources ? AssetProjection(members: ["id", "resources"]) : .full
        return try await store.read { reader in
            let selected = try self.selectPage(request, fetch, "", reader)
            var page = selected.page
            try selected.results.each(selected.rowNumbers, at: page.sequence, projection: projection) { asset in
                // An asset of an earlier sequence was read as a whole.
                var part = Asset(id: asset.id)
                part.resources = asset.resources
                page.assets.append(onlyResources ? part : asset)
            }
            return page
        }
    }

    /// A page whose assets are known by their row numbers and not read yet.
    private struct SelectedPage {
        /// The page without its assets.
        var page: FetchAssets.Result
        let rowNumbers: ArraySlice<Int64>
        let results: ResultReader
        /// True if the page is of a limited view.
        var isLimited = false
    }

    /// Reads the assets of a page and returns it as a reply: each asset is written from its row directly into the text.
    private func reply(with selected: SelectedPage, _ projection: Projection) throws -> Reply {
        let assetProjection = selected.isLimited ? projection.assets.withoutMemberships : projection.assets
        // The digests of all resources are needed if any bytes are in quarantine, which is rare.
        let checksQuarantine = quarantine.count > 0
        var examined: [Asset] = []
        var writer = JSONWriter(capacity: selected.rowNumbers.count * 1024)
        var isFirst = true
        try selected.results.each(
            selected.rowNumbers,
            at: selected.page.sequence,
            projection: checksQuarantine ? .full : assetProjection
        ) { asset in
            if !isFirst { writer.append(",") }
            isFirst = false
            withLocalAvailability(asset).write(to: &writer, assetProjection)
            guard writer.count <= Self.maxPageBytes else { throw FetchError.pageTooLarge(limit: Self.maxPageBytes) }
            if checksQuarantine {
                var part = Asset(id: asset.id)
                part.resources = asset.resources
                examined.append(part)
            }
        }
        var page = selected.page
        page.quarantined = quarantine.entries(of: examined)
        return Reply(encoded: page.encoded(projection, assets: writer.output))
    }

    /// Returns the asset with ``AssetResource/isLocallyAvailable`` set by the files on this machine.
    private func withLocalAvailability(_ asset: Asset) -> Asset {
        guard let remoteResources else { return asset }
        var asset = asset
        for index in asset.resources.indices where !remoteResources.isLocal(asset.resources[index].digest) {
            asset.resources[index].isLocallyAvailable = false
        }
        return asset
    }

    /// Finds the row numbers and the count of a page; its assets are read afterwards.
    private func selectPage(
        _ request: FetchAssets,
        _ fetch: Fetch,
        _ identity: String,
        _ reader: LibraryReader,
        _ view: LimitedView? = nil
    ) throws -> SelectedPage {
        let (fetch, token, results) = try begin(fetch, at: request.token, identity, view, reader)
        let head = results.head
        // The list of a limited grant may be long: its results are cached and carried forward instead.
        let isNear = request.from < Self.deepPage && fetch.offset < Self.deepPage && view == nil
        let rowNumbers: ArraySlice<Int64>
        let count: Int
        if token.sequence == head.sequence, isNear, fetch.kind.isDecidedByEntity, !fetch.dependsOnLocalFiles {
            let range = FetchStore.PageRange(from: request.from, count: request.count)
            guard let found = try reader.fetches.assetRows(fetch, range) else { throw CatalogError.notFound(fetch) }
            rowNumbers = found[...]
            count = try Self.count(fetch, head, reader, cache)
        } else {
            let array = try results.selectedRows(of: fetch, at: token.sequence)
            rowNumbers = array.dropFirst(min(request.from, array.count)).prefix(request.count)
            count = array.count
        }
        var page = FetchAssets.Result(token: token, count: count, assets: [])
        try Self.addAbsent(to: &page, request, fetch, head, reader)
        return SelectedPage(page: page, rowNumbers: rowNumbers, results: results, isLimited: view != nil)
    }

    private func checkedAssetFetch(_ request: FetchAssets, _ identity: String) throws -> Fetch {
        let fetch = try checked(request.fetch, identity: identity)
        guard fetch.kind.entityClass == .asset else {
            throw FetchError.wrongKind(accepted: "kind assets")
        }
        return fetch
    }

    /// Returns the text of a page that has the identifiers of its assets only; the assets are not read.
    private func identifiers(_ request: FetchAssets, identity: String, view: LimitedView?) async throws -> [Bytes] {
        let fetch = try checkedAssetFetch(request, identity)
        return try await store.read { reader in
            let (fetch, token, results) = try self.begin(fetch, at: request.token, identity, view, reader)
            let rows = try results.selectedRows(of: fetch, at: token.sequence)
            let page = rows.dropFirst(min(request.from, rows.count)).prefix(request.count)
            var result = FetchAssets.Result(token: token, count: rows.count, assets: [])
            try Self.addAbsent(to: &result, request, fetch, results.head, reader)
            var members = AssetPage.table.encode(result)
            members["assets"] = nil
            // The list takes the place of the closing brace.
            let text = JSON.object(members).bytes.dropLast() + Bytes(",\"assets\":[".utf8)
            return [Bytes(text), try reader.assets.encodedIdentifiers(page), Bytes("]}".utf8)]
        }
    }

    /// Adds the requested identifiers that no asset has, and those of assets in the trash, to a page of a fetch by
    /// identifiers.
    private static func addAbsent(
        to page: inout FetchAssets.Result,
        _ request: FetchAssets,
        _ fetch: Fetch,
        _ head: LibraryHead,
        _ reader: LibraryReader
    ) throws {
        // The client that created a transient collection knows its members.
        guard case .assets(.ids(let list)) = fetch.kind, request.fetch.ids != nil else { return }
        // An asset that is not in a limited view is missing, whether or not it exists.
        let visible = fetch.granted.map { granted in IDList(list.ids.filter(granted.contains)) } ?? list
        let missing = try missing(visible, page.sequence, head, reader)
        page.missing =
            fetch.granted.map { granted in
                let absent = Set(missing)
                return list.ids.filter { !granted.contains($0) || absent.contains($0) }
            } ?? missing
        if !fetch.inTrash { page.trashed = try trashed(visible, page.sequence, head, reader) }
    }

    /// Returns the objects at some positions of a result.
    func objects(_ request: FetchObjects, identity: String = "", view: LimitedView? = nil) async throws -> Reply {
        let fetch = try checked(request.fetch, identity: identity)
        guard fetch.kind.entityClass == .asset else {
            throw FetchError.wrongKind(accepted: "kind assets")
        }
        return try await store.read { reader in
            let (fetch, token, results) = try self.begin(fetch, at: request.token, identity, view, reader)
            let array = try results.selectedRows(of: fetch, at: token.sequence)
            let rowNumbers = try Set(request.at).sorted().map { index in
                guard index < array.count else {
                    throw FetchError.indexOutOfRange(index, count: array.count)
                }
                return array[array.startIndex + index]
            }
            let page = FetchAssets.Result(token: token, count: array.count, assets: [])
            let selected = SelectedPage(
                page: page,
                rowNumbers: rowNumbers[...],
                results: results,
                isLimited: view != nil
            )
            return try self.reply(with: selected, request.projection)
        }
    }

    // MARK: Helpers

    /// Returns the head of the library, and the token that a request names, or that of the head.
    ///
    /// - Throws: `token_expired` for a token older than the retained history, or of another history
    static func resolve(
        _ token: ChangeToken?,
        _ reader: LibraryReader
    ) throws -> (head: LibraryHead, token: ChangeToken) {
        let head = try reader.head()
        let token = token ?? head.token
        try head.check(token)
        return (head, token)
    }

    /// Returns the current count of a result: counted once, then carried forward with the records.
    static func count(
        _ fetch: Fetch,
        _ head: LibraryHead,
        _ reader: LibraryReader,
        _ cache: ResultCache
    ) throws -> Int {
        guard !fetch.dependsOnLocalFiles else {
            guard let all = try reader.fetches.assetCount(fetch.whole) else { throw CatalogError.notFound(fetch) }
            return fetch.applyingOffsetAndLimit(to: all)
        }
        if fetch.counter == nil, let known = cache.count(of: fetch.whole, at: head.sequence) {
            return fetch.applyingOffsetAndLimit(to: known)
        }
        let carried = fetch.counter == nil ? try carriedCount(fetch.whole, head, reader, cache) : nil
        guard let all = try carried ?? reader.fetches.assetCount(fetch.whole) else {
            throw CatalogError.notFound(fetch)
        }
        if fetch.counter == nil { cache.insert(count: all, of: fetch.whole, at: head.sequence) }
        return fetch.applyingOffsetAndLimit(to: all)
    }

    /// Carries the count at an earlier sequence forward over the records since; nil if that is not possible.
    private static func carriedCount(
        _ fetch: Fetch,
        _ head: LibraryHead,
        _ reader: LibraryReader,
        _ cache: ResultCache
    ) throws -> Int? {
        guard fetch.kind.isDecidedByEntity, let known = cache.newestCount(of: fetch),
            known.sequence >= head.oldest, known.sequence < head.sequence
        else { return nil }
        switch fetch.kind {
        case .assets(.library), .assets(.smartAlbum): break
        case .assets(.collection(let id)):
            guard try reader.collections.rowNumber(of: id) != nil else { return nil }
        default: return nil
        }
        let history = reader.history
        guard try history.size(after: known.sequence, through: head.sequence, upTo: maxCarriedBytes) != nil else {
            return nil
        }
        var count = known.count
        try history.each(after: known.sequence, through: head, bytes: .max) { record in
            for change in record.assets {
                try reader.checkCancellation()
                if let before = change.before, fetch.includes(before) { count -= 1 }
                if let after = change.after, fetch.includes(after) { count += 1 }
            }
        }
        return count
    }

    /// The maximum bytes of the records over which a count is carried forward; beyond it the rows are counted.
    private static let maxCarriedBytes = 1 << 20

    private static func missing(
        _ list: IDList,
        _ sequence: Int64,
        _ head: LibraryHead,
        _ reader: LibraryReader
    ) throws -> [ObjectID] {
        let state = HistoricalState(reader: reader, sequence: sequence, head: head)
        return try list.ids.filter { id in
            if sequence < head.sequence, let earlier = try state.earlier(id) { return earlier == nil }
            return try reader.assets.rowNumber(of: id) == nil
        }
    }

    private static func trashed(
        _ list: IDList,
        _ sequence: Int64,
        _ head: LibraryHead,
        _ reader: LibraryReader
    ) throws -> [ObjectID] {
        let current = try reader.assets.trashed(among: list.ids)
        guard sequence < head.sequence else { return list.ids.filter(current.contains) }
        let state = HistoricalState(reader: reader, sequence: sequence, head: head)
        return try list.ids.filter { id in
            if let earlier = try state.earlier(id) { return earlier?.trashedDate != nil }
            return current.contains(id)
        }
    }
}
