import Contracts
import JSONValue
import PhotoModel

/// The library at an earlier sequence: the stored rows with the records after that sequence undone.
struct HistoricalState {
    let reader: LibraryReader
    /// The earlier sequence.
    let sequence: Int64
    let head: LibraryHead

    /// The maximum bytes of records that are undone for one result; for more, the token counts as expired, and the
    /// client has to fetch again.
    static let maxBytes = 256 << 20

    // MARK: One object

    /// Returns the asset as it was if a later transaction touched it; the outer nil if none did.
    func earlier(_ id: ObjectID) throws -> Asset?? {
        guard let later = try firstSequence(of: id) else { return nil }
        return .some(try reader.records.before(id, in: later).map { try Asset(json: $0) })
    }

    /// Returns the album or folder as it was if a later transaction touched it; the outer nil if none did.
    func earlierCollection(_ id: ObjectID) throws -> PhotoCollection?? {
        guard let later = try firstSequence(of: id) else { return nil }
        let before = try reader.records.before(id, in: later)
        if id.kind == .collectionList { return .some(try before.map { .list(try CollectionList(json: $0)) }) }
        return .some(try before.map { .collection(try AssetCollection(json: $0)) })
    }

    /// Returns the sequence of the first later record that names an object; nil if there is none.
    private func firstSequence(of id: ObjectID) throws -> Int64? {
        try reader.history.firstSequence(of: FeedTopic.object(id), after: sequence, through: head.sequence)
    }

    /// Returns true if an object existed.
    func contains(_ id: ObjectID) throws -> Bool {
        if id.kind == .asset {
            if sequence < head.sequence, let earlier = try earlier(id) { return earlier != nil }
            return try reader.assets.rowNumber(of: id) != nil
        }
        if sequence < head.sequence, let earlier = try earlierCollection(id) { return earlier != nil }
        return id.kind == .collectionList
            ? try reader.collections.list(id) != nil : try reader.collections.rowNumber(of: id) != nil
    }

    /// Returns true if the object to which a fetch refers existed, or if it refers to none.
    func hasObject(of fetch: Fetch) throws -> Bool { try fetch.kind.object.map(contains) ?? true }

    /// Returns the asset as it was, whether it was touched since or not; nil if it did not exist.
    func asset(_ id: ObjectID) throws -> Asset? {
        if sequence < head.sequence, let earlier = try earlier(id) { return earlier }
        return try reader.assets.asset(id)
    }

    /// Returns the album or folder as it was, whether it was touched since or not; nil if it did not exist.
    func collection(_ id: ObjectID) throws -> PhotoCollection? {
        if sequence < head.sequence, let earlier = try earlierCollection(id) { return earlier }
        if id.kind == .collectionList { return try reader.collections.list(id).map { .list($0) } }
        return try reader.collections.collection(id).map { .collection($0) }
    }

    // MARK: A whole result

    /// Returns the result of a fetch as it was, without offset and limit.
    func result(of fetch: Fetch) throws -> [Int64] { try result(of: fetch, earlierEntities()) }

    /// - Parameter touched: the objects touched after the sequence
    func result(of fetch: Fetch, _ touched: EarlierEntities) throws -> [Int64] {
        let fetch = fetch.scoped(by: try scope(of: fetch, touched))
        let array = try reader.fetches.assetRows(fetch, .init()) ?? []
        return try ResultMerge(reader: reader, fetch: fetch).merged(array, with: touched.assets)
    }

    /// Returns the collections on which a result depends (`Fetch.scope`), as they were; nil for a fetch
    /// that depends on none.
    func scope(of fetch: Fetch) throws -> Set<ObjectID>? {
        guard fetch.kind.needsScope else { return nil }
        if case .assets(.below) = fetch.kind { return try scope(of: fetch, earlierEntities()) }
        return try scope(of: fetch, EarlierEntities())
    }

    private func scope(of fetch: Fetch, _ touched: EarlierEntities) throws -> Set<ObjectID>? {
        switch fetch.kind {
        case .assets(.below(let list)) where fetch.kind.needsScope:
            var parents = try reader.collections.parents()
            for (id, object) in touched.collections { parents[id] = object?.parent }
            let children = Dictionary(grouping: parents.keys) { parents[$0] }
            var (scope, next): (Set<ObjectID>, [ObjectID]) = ([list], [list])
            while let folder = next.popLast() {
                for child in children[folder] ?? [] where scope.insert(child).inserted {
                    if child.kind == .collectionList { next.append(child) }
                }
            }
            return scope
        case .collectionsContaining(let id, _): return try asset(id)?.collections ?? []
        case .listsContaining(let id): return try collection(id)?.lists ?? []
        default: return nil
        }
    }

    /// Returns the collections or lists of a fetch as they were, without offset and limit.
    func collections(of fetch: Fetch) throws -> [PhotoCollection] {
        if let scope = try scope(of: fetch) {
            let fetch = fetch.scoped(by: scope)
            return try scope.compactMap(collection).filter(fetch.includes).sorted { fetch.areInIncreasingOrder($0, $1) }
        }
        let touched = try earlierEntities()
        var objects = try reader.collectionFetches.page(fetch, .init())?.objects ?? []
        objects.removeAll { touched.collections[$0.id] != nil }
        let before = try touched.collections.values.compactMap { $0 }.filter { object in
            try reader.checkCancellation()
            return fetch.includes(object)
        }
        return (objects + before).sorted { fetch.areInIncreasingOrder($0, $1) }
    }

    /// The objects touched after the sequence, as they were at it; nil for objects that did not exist yet.
    struct EarlierEntities {
        var assets: [ObjectID: Asset?] = [:]
        var collections: [ObjectID: PhotoCollection?] = [:]
    }

    /// Returns the objects that the records after the sequence have touched, as they were at the sequence.
    func earlierEntities() throws -> EarlierEntities {
        var touched = EarlierEntities()
        try reader.history.each(after: sequence, through: head, bytes: Self.maxBytes) { record in
            for change in record.assets where touched.assets[change.id] == nil {
                touched.assets[change.id] = .some(change.before)
            }
            for change in record.collections where touched.collections[change.id] == nil {
                touched.collections[change.id] = .some(change.before.map { .collection($0) })
            }
            for change in record.lists where touched.collections[change.id] == nil {
                touched.collections[change.id] = .some(change.before.map { .list($0) })
            }
        }
        return touched
    }
}

extension HistoryStore {
    /// Calls a closure with every record after a sequence, oldest first.
    ///
    /// - Throws: `token_expired` if records are missing or exceed the byte limit
    func each(
        after sequence: Int64,
        through head: LibraryHead,
        bytes limit: Int,
        _ visit: (ChangeRecord) throws -> Void
    ) throws {
        var position = sequence
        var total = 0
        func expired() -> CatalogError {
            CatalogError.tokenExpired(ChangeToken(library: head.library, sequence: sequence), head)
        }
        while position < head.sequence {
            let page = try records(after: position, through: head.sequence, count: 1000, bytes: 4 << 20).records
            guard let first = page.first, let last = page.last, first.sequence == position + 1 else { throw expired() }
            for record in page {
                total += record.bytes.count
                guard total <= limit else { throw expired() }
                try visit(ChangeRecord(json: JSON(parsing: record.bytes)))
            }
            position = last.sequence
        }
    }
}
