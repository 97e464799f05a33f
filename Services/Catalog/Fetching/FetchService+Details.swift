import Contracts
import JSONValue
import PhotoModel

/// Implements `changes.details` (S-65 to S-69): the changes between two sequences.
extension FetchService {
    /// The number of entries beyond which the details say that the result has to be reloaded.
    static let maxDetails = 20_000

    func details(
        _ request: ChangesDetails,
        identity: String = "",
        view: LimitedView? = nil
    ) async throws -> ChangesDetails.Result {
        let fetch = try request.fetch.map { try checked($0, identity: identity) }
        if let described = request.fetch, let fetch {
            let isTransient = described.container?.isTransient == true
            guard !isTransient, fetch.kind.isFollowable else {
                throw FetchError.notFollowable
            }
            guard !fetch.dependsOnLocalFiles else { throw FetchError.localFiles }
        }
        return try await store.read { [cache] reader in
            let (head, from) = try Self.resolve(request.from, reader)
            let (_, to) = try Self.resolve(request.to, reader)
            guard from.sequence <= to.sequence else {
                throw FetchError.rangeReversed
            }
            var result = ChangesDetails.Result(from: from, to: to)
            let results = ResultReader(reader: reader, head: head, cache: cache)
            let oldView = try HistoricalView(view, results, at: from.sequence, of: request.ids)
            let newView = try HistoricalView(view, results, at: to.sequence, of: request.ids)
            if let fetch {
                var between = DetailsRange(
                    reader: reader,
                    head: head,
                    cache: cache,
                    from: from.sequence,
                    to: to.sequence
                )
                between.view = view
                let (old, new) = (try oldView.fetch(fetch), try newView.fetch(fetch))
                result.objectWasDeleted = try between.requireObject(of: old, new)
                result.details = try between.details(old, new)
                try result.finish(request.wantsIncrementalChangeDetails, request.form)
            }
            var bytes = 0
            for id in IDList(request.ids).ids {
                let (before, after) = (try oldView.entity(id), try newView.entity(id))
                guard before?.json != after?.json else { continue }
                bytes += (before?.json.minBytes ?? 0) + (after?.json.minBytes ?? 0)
                guard bytes <= Self.maxPageBytes else { throw FetchError.pageTooLarge(limit: Self.maxPageBytes) }
                var details = ObjectDetails(id: id, before: before?.json, after: after?.json)
                details.objectWasDeleted = before != nil && after == nil
                if let old = before?.contentRevision, let new = after?.contentRevision {
                    details.assetContentChanged = old != new
                }
                result.objects.append(details)
            }
            return result
        }
    }

    /// Returns the difference between two results, which may be of different fetches.
    ///
    /// - Parameter view: the view of an identity with a limited grant; nil for the whole library
    func difference(
        _ request: DetailsDiff,
        identity: String = "",
        view: LimitedView? = nil
    ) async throws -> ChangesDetails.Result {
        let (old, new) = (
            try checked(request.from.fetch, identity: identity), try checked(request.to.fetch, identity: identity)
        )
        guard old.kind.entityClass == new.kind.entityClass else {
            throw FetchError.differentClasses(old.kind.entityClass, new.kind.entityClass)
        }
        guard !old.dependsOnLocalFiles, !new.dependsOnLocalFiles else { throw FetchError.localFiles }
        let members = (
            before: try transientMembers(of: old, identity: identity),
            after: try transientMembers(of: new, identity: identity)
        )
        return try await store.read { [cache] reader in
            let (head, from) = try Self.resolve(request.from.token, reader)
            let (_, to) = try Self.resolve(request.to.token, reader)
            let results = ResultReader(reader: reader, head: head, cache: cache)
            let before = try self.effectiveFetch(old, identity: identity, view: view, results, at: from.sequence)
            let after = try self.effectiveFetch(new, identity: identity, view: view, results, at: to.sequence)
            var between = DetailsRange(
                reader: reader,
                head: head,
                cache: cache,
                from: from.sequence,
                to: to.sequence
            )
            between.changed = request.changedIds
            between.view = view
            between.members = members
            var result = ChangesDetails.Result(from: from, to: to)
            result.objectWasDeleted = try between.requireObject(of: before, after)
            result.details = try between.details(before, after)
            try result.finish(request.wantsIncrementalChangeDetails, request.form)
            return result
        }
    }

    private struct DetailsRange {
        let reader: LibraryReader
        let head: LibraryHead
        let cache: ResultCache
        let from: Int64
        let to: Int64
        /// The objects that count as changed; nil for those of the records in between.
        var changed: [ObjectID]?
        /// The view of an identity with a limited grant; nil for the whole library.
        var view: LimitedView?
        /// The members of transient lists, before and after.
        var members: (before: TransientMembers?, after: TransientMembers?)

        init(reader: LibraryReader, head: LibraryHead, cache: ResultCache, from: Int64, to: Int64) {
            (self.reader, self.head, self.cache, self.from, self.to) = (reader, head, cache, from, to)
        }

        private func hasObject(of fetch: Fetch, at sequence: Int64) throws -> Bool {
            if let view { return try view.hasObject(of: fetch, results, at: sequence) }
            return try HistoricalState(reader: reader, sequence: sequence, head: head).hasObject(of: fetch)
        }

        /// Checks that the objects to which the fetches refer existed at one of the two sequence numbers.
        ///
        /// - Returns: true if the object of the result after the change is deleted
        func requireObject(of before: Fetch, _ after: Fetch) throws -> Bool {
            for fetch in [before, after] {
                let existed = try hasObject(of: fetch, at: from) || hasObject(of: fetch, at: to)
                guard existed else { throw CatalogError.notFound(fetch) }
            }
            return try !hasObject(of: after, at: to) && hasObject(of: after, at: from)
        }

        func details(_ before: Fetch, _ after: Fetch) throws -> ChangeDetails? {
            guard before.kind.entityClass == .asset else {
                if let view { return try collections(before, after, in: view) }
                return ChangeDetails.between(
                    try collections(before, at: from, members.before),
                    try collections(after, at: to, members.after),
                    changed: Set(try changed ?? recordedChanges().collections)
                )
            }
            return try assets(before, after)
        }

        /// Returns the result of a fetch; it is empty if the object of the fetch did not exist at the sequence.
        private func rows(_ fetch: Fetch, at sequence: Int64) throws -> [Int64] {
            guard try hasObject(of: fetch, at: sequence) else { return [] }
            return try Array(results.selectedRows(of: fetch, at: sequence))
        }

        private var results: ResultReader { ResultReader(reader: reader, head: head, cache: cache) }

        /// Returns the difference between the collections or lists of a view. The view computes their properties from
        /// its assets, so no record contains them; those with other properties count as changed.
        private func collections(_ old: Fetch, _ new: Fetch, in view: LimitedView) throws -> ChangeDetails? {
            func page(_ fetch: Fetch, at sequence: Int64, _ members: TransientMembers?) throws -> [PhotoCollection] {
                fetch.page(try view.collections(fetch, results, at: sequence, members) ?? [], .init()).objects
            }
            let (before, after) = (try page(old, at: from, members.before), try page(new, at: to, members.after))
            let known = Dictionary(uniqueKeysWithValues: before.map { ($0.id, $0.withoutRevision) })
            let changed = after.filter { object in known[object.id].map { $0 != object.withoutRevision } ?? false }
            return ChangeDetails.between(
                before.map(\.id),
                after.map(\.id),
                changed: Set(self.changed ?? changed.map(\.id))
            )
        }

        private func collections(
            _ fetch: Fetch,
            at sequence: Int64,
            _ members: TransientMembers?
        ) throws -> [ObjectID] {
            guard try hasObject(of: fetch, at: sequence) else { return [] }
            let page = try FetchService.page(fetch, FetchStore.PageRange(), sequence, head, reader, members: members)
            return page.objects.map(\.id)
        }

        private func assets(_ old: Fetch, _ new: Fetch) throws -> ChangeDetails? {
            let (before, after) = (try rows(old, at: from), try rows(new, at: to))
            var changed: Set<Int64> = []
            // Assets on neither list are not looked up: they cost the same whether they exist or not.
            for id in try self.changed ?? recordedChanges().assets
            where (old.granted?.contains(id) ?? true) || (new.granted?.contains(id) ?? true) {
                if let row = try reader.assets.rowNumber(of: id) ?? reader.assets.departedRowNumber(of: id) {
                    changed.insert(row)
                }
            }
            guard let details = ListDifference.between(before, after, changed: changed) else { return nil }
            let ids = try reader.assets.identifiersByRow(details.elements)
            return try details.named { row in
                guard let id = ids[row] else { throw DamagedRow("row \(row) has no identifier") }
                return id
            }
        }

        /// Returns the objects that the records in between have changed.
        private func recordedChanges() throws -> (assets: [ObjectID], collections: [ObjectID]) {
            var (assets, collections): (Set<ObjectID>, Set<ObjectID>) = ([], [])
            let end = LibraryHead(library: head.library, sequence: max(from, to), oldest: head.oldest)
            try reader.history.each(after: min(from, to), through: end, bytes: HistoricalState.maxBytes) { record in
                assets.formUnion(record.assets.map(\.id))
                collections.formUnion(record.collections.map(\.id))
                collections.formUnion(record.lists.map(\.id))
            }
            return (Array(assets), Array(collections))
        }
    }
}

extension ChangesDetails.Result {
    /// Converts the details to the form that the client has requested.
    fileprivate mutating func finish(_ wantsIncremental: Bool, _ form: DetailsForm) throws {
        if !wantsIncremental { details?.dropLists() }
        if let count = details?.listedCount, count > FetchService.maxDetails { details?.dropLists() }
        if form == .rice { rice = try details?.rice() }
    }
}

/// The library at one sequence number, as an identity sees it.
private struct HistoricalView {
    let state: HistoricalState
    let view: LimitedView?
    /// The list of a limited grant; nil for the whole library.
    let granted: GrantedAssets?
    /// The moments of a limited view and their lists, each kind if an object of it is requested. They are computed from
    /// the assets of the view, so no record contains them.
    private let moments: [ObjectID: PhotoCollection]

    /// - Parameter ids: the requested objects
    init(_ view: LimitedView?, _ results: ResultReader, at sequence: Int64, of ids: [ObjectID]) throws {
        state = HistoricalState(reader: results.reader, sequence: sequence, head: results.head)
        self.view = view
        granted = try view?.assets(results.reader, at: sequence, results.head)
        var found: [PhotoCollection] = []
        if let view, ids.contains(where: \.isMoment) { found += try view.moments(results, at: sequence) }
        if let view, ids.contains(where: { MomentList($0) != nil }) {
            found += try view.momentLists(results, at: sequence)
        }
        moments = Dictionary(uniqueKeysWithValues: found.map { ($0.id, $0) })
    }

    func fetch(_ fetch: Fetch) throws -> Fetch {
        try view?.fetch(fetch, state.reader, at: state.sequence, state.head, isFollowed: true) ?? fetch
    }

    func entity(_ id: ObjectID) throws -> HistoricalState.Entity? {
        guard let granted else { return try state.entity(id) }
        if case .smartAlbum? = DerivedCollection(id) {
            return try (state.collection(id)?.inLimitedView).map(HistoricalState.Entity.init)
        }
        if let collection = moments[id] { return HistoricalState.Entity(collection) }
        guard id.kind == .asset, granted.contains(id), var asset = try state.asset(id) else { return nil }
        asset.memberships = []
        return HistoricalState.Entity(json: asset.json, contentRevision: asset.contentRevision)
    }
}

extension HistoricalState {
    fileprivate struct Entity {
        var json: JSON
        var contentRevision: Revision?

        init(json: JSON, contentRevision: Revision? = nil) {
            self.json = json
            self.contentRevision = contentRevision
        }

        init(_ collection: PhotoCollection) {
            switch collection {
            case .collection(let collection): self.init(json: collection.json)
            case .list(let list): self.init(json: list.json)
            }
        }
    }

    fileprivate func entity(_ id: ObjectID) throws -> Entity? {
        switch id.kind {
        case .asset: try asset(id).map { Entity(json: $0.json, contentRevision: $0.contentRevision) }
        case .assetCollection, .collectionList: try collection(id).map(Entity.init)
        }
    }
}

extension ObjectID {
    fileprivate var isMoment: Bool { if case .moment? = DerivedCollection(self) { true } else { false } }
}

extension JSON {
    /// The minimum size of the encoded value in bytes, counted without encoding it.
    fileprivate var minBytes: Int {
        switch self {
        case .null, .bool, .int, .double: 1
        case .string(let text): text.utf8.count
        case .array(let elements): elements.reduce(2) { $0 + $1.minBytes }
        case .object(let object): object.members.reduce(2) { $0 + $1.name.utf8.count + $1.value.minBytes }
        }
    }
}

extension PhotoCollection {
    /// The collection or list without its revision, which also changes with properties that a limited view hides.
    fileprivate var withoutRevision: PhotoCollection {
        switch self {
        case .collection(var collection):
            collection.revision = Revision(0)
            return .collection(collection)
        case .list(var list):
            list.revision = Revision(0)
            return .list(list)
        }
    }
}
