import Contracts
import JSONValue
import PhotoModel

/// Implements `changes.details` (S-65 to S-69): the changes between two sequences.
extension FetchEngine {
    /// The number of entries beyond which the details say that the result has to be reloaded.
    static let maxDetails = 20_000

    func details(_ request: ChangesDetails, owner: String = "") async throws -> ChangesDetails.Result {
        let fetch = try request.fetch.map { try resolved($0, owner: owner) }
        if let described = request.fetch, let fetch {
            let isHeld = described.container?.isTransient == true
            guard !isHeld, fetch.kind.isDecidedByEntity else {
                throw ErrorCode.notObservable.error(
                    "changes.details does not support this kind of fetch; compare its members before and after"
                )
            }
        }
        return try await store.read { [cache] reader in
            let (head, from) = try Self.moment(request.from, reader)
            let (_, to) = try Self.moment(request.to, reader)
            guard from.sequence <= to.sequence else {
                throw ErrorCode.invalidOptions.error("from is later than to; exchange them")
            }
            var result = ChangesDetails.Result(from: from, to: to)
            if let fetch {
                let between = DetailsRange(
                    reader: reader,
                    head: head,
                    cache: cache,
                    from: from.sequence,
                    to: to.sequence
                )
                result.details =
                    fetch.kind.entityClass == .asset ? try between.assets(fetch) : try between.collections(fetch)
                if !request.wantsIncrementalChangeDetails { result.details?.makeWhole() }
                if let count = result.details?.listed, count > Self.maxDetails { result.details?.makeWhole() }
                if request.form == .rice { result.rice = try result.details?.rice() }
            }
            for id in IDList(request.ids).ids {
                let before = try HistoricalState(reader: reader, moment: from.sequence, head: head).entity(id)
                let after = try HistoricalState(reader: reader, moment: to.sequence, head: head).entity(id)
                guard before?.json != after?.json else { continue }
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

    private struct DetailsRange {
        let reader: LibraryReader
        let head: LibraryHead
        let cache: ResultCache
        let from: Int64
        let to: Int64

        func assets(_ fetch: Fetch) throws -> ChangeDetails? {
            let rows = ResultRows(reader: reader, head: head, cache: cache)
            let before = try Array(rows.window(of: fetch, at: from))
            let after = try Array(rows.window(of: fetch, at: to))
            var changed: Set<Int64> = []
            for id in try touched().assets {
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

        func collections(_ fetch: Fetch) throws -> ChangeDetails? {
            let before = try FetchEngine.page(fetch, FetchStore.Window(), from, head, reader).objects.map(\.id)
            let after = try FetchEngine.page(fetch, FetchStore.Window(), to, head, reader).objects.map(\.id)
            return ChangeDetails.between(before, after, changed: Set(try touched().collections))
        }

        private func touched() throws -> (assets: [ObjectID], collections: [ObjectID]) {
            var (assets, collections): (Set<ObjectID>, Set<ObjectID>) = ([], [])
            let end = LibraryHead(library: head.library, sequence: to, oldest: head.oldest)
            try reader.history.each(after: from, through: end, bytes: HistoricalState.maxBytes) { record in
                assets.formUnion(record.assets.map(\.id))
                collections.formUnion(record.collections.map(\.id))
                collections.formUnion(record.lists.map(\.id))
            }
            return (Array(assets), Array(collections))
        }
    }
}

extension HistoricalState {
    fileprivate struct Entity {
        var json: JSON
        var contentRevision: Revision?
    }

    fileprivate func entity(_ id: ObjectID) throws -> Entity? {
        switch id.kind {
        case .asset: try asset(id).map { Entity(json: $0.json, contentRevision: $0.contentRevision) }
        case .assetCollection, .collectionList:
            switch try collection(id) {
            case .collection(let collection): Entity(json: collection.json)
            case .list(let list): Entity(json: list.json)
            case nil: nil
            }
        }
    }
}
