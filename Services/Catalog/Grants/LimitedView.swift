import JSONValue
import PhotoModel
import Synchronization

/// The library as an identity with a limited grant sees it: the assets that its grant lists, and nothing else.
///
/// The list is part of the library's state, so each sequence number has its own. Fetches of the view have one more
/// condition (``Fetch/limited(to:)``) and are otherwise the same, so changes of the list appear as ordinary insertions
/// and removals.
struct LimitedView: Sendable {
    let identity: String
    /// The identity's public key: the list of an earlier key of the same name is not its list.
    let key: String?
    let lists: GrantedAssetLists

    /// The maximum bytes of records that are read for an earlier list; for more, the token counts as expired.
    private static let maxBytes = 64 << 20

    // MARK: The list

    /// Returns true if the identity's own key has a list.
    func hasList(_ reader: LibraryReader) throws -> Bool { try stored(reader) != nil }

    private func stored(_ reader: LibraryReader) throws -> GrantStore.List? {
        try reader.grants.list(of: identity).flatMap { $0.key == key ? $0 : nil }
    }

    /// Returns the list at a sequence number.
    ///
    /// - Throws: `token_expired` for a sequence number before the grant was limited, because the view was another one,
    ///   or before the retained history
    func assets(_ reader: LibraryReader, at sequence: Int64, _ head: LibraryHead) throws -> GrantedAssets {
        guard let list = try stored(reader) else { return granted([], version: 0) }
        var head = head
        head.oldest = max(head.oldest, list.limitedSince)
        try head.check(ChangeToken(library: head.library, sequence: sequence))
        let current = try lists.assets(of: identity, key, version: list.version) {
            try reader.grants.listedAssets(of: identity)
        }
        guard sequence < list.version else { return current }
        var steps: [Grant] = []
        var first = list.version
        try forEachGrant(reader, after: sequence, head) { changed, grant in
            first = min(first, changed)
            steps.append(grant)
        }
        var ids = current.ids
        for step in steps.reversed() {
            ids.subtract(step.added)
            ids.formUnion(step.removed)
        }
        return granted(ids, version: first - 1)
    }

    private func granted(_ ids: Set<ObjectID>, version: Int64) -> GrantedAssets {
        GrantedAssets(identity: identity, key: key, version: version, ids: ids)
    }

    /// Calls a closure with the changes of the list after a sequence number, oldest first.
    private func forEachGrant(
        _ reader: LibraryReader,
        after sequence: Int64,
        _ head: LibraryHead,
        _ visit: (Int64, Grant) -> Void
    ) throws {
        var (position, total) = (sequence, 0)
        while position < head.sequence {
            try reader.checkCancellation()
            let page = try reader.history.records(
                after: position,
                through: head.sequence,
                topics: [Grant.topic],
                count: 1000,
                bytes: 4 << 20
            )
            for stored in page.records {
                total += stored.bytes.count
                guard total <= Self.maxBytes else {
                    throw CatalogError.tokenExpired(ChangeToken(library: head.library, sequence: sequence), head)
                }
                let record = try ChangeRecord(json: JSON(parsing: stored.bytes))
                for grant in record.grants.compactMap(\.after)
                where grant.identity == identity && !(grant.added.isEmpty && grant.removed.isEmpty) {
                    visit(record.sequence, grant)
                }
            }
            guard page.isCut, let last = page.records.last else { return }
            position = last.sequence
        }
    }

    /// Returns the assets of the list whose originals have these bytes, by the digest.
    func assets(
        withPrimaryOriginals digests: [String],
        _ reader: LibraryReader,
        limit: Int
    ) throws -> [String: [ObjectID]] {
        guard try stored(reader) != nil else { return [:] }
        return try reader.assets.assets(withPrimaryOriginals: digests, listedFor: identity, limit: limit)
    }

    /// Returns true if an asset is on the list now.
    func contains(_ id: ObjectID, _ reader: LibraryReader) throws -> Bool {
        try hasList(reader) && reader.grants.isListed(id, of: identity)
    }

    // MARK: Fetches

    /// Returns a fetch limited to the view.
    ///
    /// - Parameter isFollowed: true for a result that is compared with others or carried forward: it is empty while the
    ///   view does not have the moment that the fetch names (``hasObject(of:_:at:)``)
    /// - Throws: the error of an unknown object for a fetch in one, because albums and folders are not in the view, and
    ///   moments only if they have an asset of it; `access_denied` for fetches of the collections of an object, and of
    ///   folders
    func fetch(
        _ fetch: Fetch,
        _ reader: LibraryReader,
        at sequence: Int64,
        _ head: LibraryHead,
        isFollowed: Bool = false
    ) throws -> Fetch {
        let granted = try assets(reader, at: sequence, head)
        switch fetch.kind {
        case .assets(.library), .assets(.ids), .assets(.smartAlbum), .assets(.burst): break
        case .assets(let source) where source.isOfMoments:
            guard try isFollowed || hasAsset(in: source, granted, reader, at: sequence, head) else {
                throw CatalogError.notFound(fetch)
            }
        case .children(let list) where MomentList(list) != nil || list.isTransient: break
        case .assets: throw CatalogError.notFound(fetch)
        case .collections, .collectionIDs, .lists, .listIDs: break
        case .children, .collectionsContaining, .listsContaining:
            throw GrantError.notInLimitedView(identity, "a fetch of the collections of an object")
        }
        return fetch.limited(to: granted)
    }

    /// Returns the collections or lists of a fetch: smart albums, transient collections and lists of the client, the
    /// moments of the view and their lists. Conditions and order are applied to the properties that the view shows.
    ///
    /// - Parameter members: the members of the transient collections that the fetch names
    /// - Returns: nil if the fetch is of the children of a list of moments, and the view has none of them
    /// - Throws: `access_denied` for fetches of the collections that contain an object, and of folders
    func collections(
        _ fetch: Fetch,
        _ results: ResultReader,
        at sequence: Int64,
        _ members: TransientMembers? = nil
    ) throws -> [PhotoCollection]? {
        func stored(_ fetch: Fetch) throws -> [PhotoCollection] {
            try FetchService.page(fetch, .init(), sequence, results.head, results.reader, members: members).objects
        }
        var found: [PhotoCollection] = []
        let whole = try Fetch(fetch.kind)
        func isMoment(_ id: ObjectID) -> Bool { if case .moment? = DerivedCollection(id) { true } else { false } }
        switch fetch.kind {
        case .collections(let type, _):
            found = try stored(whole).compactMap(\.inLimitedView)
            if type == nil || type == .moment { found += try moments(results, at: sequence) }
        case .collectionIDs(let list):
            found = try stored(whole).compactMap(\.inLimitedView)
            if list.ids.contains(where: isMoment) { found += try moments(results, at: sequence) }
        case .children(let list) where MomentList(list) != nil:
            found = try moments(results, at: sequence).filter(whole.includes)
            if found.isEmpty { return nil }
        case .children(let list) where list.isTransient:
            let ids = members?.ids ?? []
            found = try stored(whole).compactMap(\.inLimitedView)
            if ids.contains(where: isMoment) { found += try moments(results, at: sequence) }
            if ids.contains(where: { MomentList($0) != nil }) { found += try momentLists(results, at: sequence) }
            let known = Dictionary(uniqueKeysWithValues: found.map { ($0.id, $0) })
            // The list decides which collections are in it, and their order unless the fetch names another.
            found = ids.compactMap { known[$0] }
            if let predicate = fetch.predicate { found.removeAll { !predicate.evaluate($0) } }
            return fetch.sort.isEmpty ? found : found.sorted { fetch.areInIncreasingOrder($0, $1) }
        case .lists(let type, _):
            found = try stored(whole).compactMap(\.inLimitedView)
            if type == nil || type == .momentList { found += try momentLists(results, at: sequence) }
        case .listIDs(let list):
            found = try stored(whole).compactMap(\.inLimitedView)
            if list.ids.contains(where: { MomentList($0) != nil }) { found += try momentLists(results, at: sequence) }
        default: throw GrantError.notInLimitedView(identity, "a fetch of the collections of an object")
        }
        return found.filter(fetch.includes).sorted { fetch.areInIncreasingOrder($0, $1) }
    }
}

extension PhotoCollection {
    /// The collection as every limited view shows it: a smart album, whose members are those of the view, or a
    /// transient collection of the client; nil for all others.
    var inLimitedView: PhotoCollection? {
        guard case .collection(var collection) = self else { return id.isTransient ? self : nil }
        guard collection.type == .smartAlbum || id.isTransient else { return nil }
        collection.keyAsset = nil
        return .collection(collection)
    }
}

/// A cache of the lists of limited grants, each in its newest version.
final class GrantedAssetLists: Sendable {
    /// The maximum number of assets on all lists in memory; beyond it all lists are removed and read again.
    private static let limit = 1_000_000

    private let lists = Mutex<[String: GrantedAssets]>([:])

    /// Returns the list of an identity, from the cache or by a closure that reads it.
    func assets(
        of identity: String,
        _ key: String?,
        version: Int64,
        _ read: () throws -> Set<ObjectID>
    ) throws -> GrantedAssets {
        if let known = lists.withLock({ $0[identity] }), known.version == version, known.key == key { return known }
        let new = GrantedAssets(identity: identity, key: key, version: version, ids: try read())
        lists.withLock { lists in
            // A read of an older state of the database does not replace a newer list.
            if let known = lists[identity], known.version > version { return }
            if lists.values.reduce(new.ids.count, { $0 + $1.ids.count }) > Self.limit { lists = [:] }
            lists[identity] = new
        }
        return new
    }
}
