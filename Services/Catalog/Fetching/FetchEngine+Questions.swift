import Basics
import Contracts
import JSONValue
import PhotoModel

/// Requests about results and entities other than pages.
extension FetchEngine {
    // MARK: Counting

    func counts(_ request: FetchCounts, identity: String = "", view: LimitedView? = nil) async throws
        -> FetchCounts.Result
    {
        let fetches = try request.fetches.map { description in
            let fetch = try resolved(description, identity: identity)
            return (fetch: fetch, members: try transientMembers(of: fetch, identity: identity))
        }
        return try await store.read { [cache] reader in
            let (head, token) = try Self.moment(request.token, reader)
            var result = FetchCounts.Result(token: token, counts: [])
            for (fetch, members) in fetches {
                try Task.checkCancellation()
                guard fetch.kind.entityClass == .asset else {
                    let window = FetchStore.Window(from: 0, count: 0)
                    let results = ResultReader(reader: reader, head: head, cache: cache)
                    let page = try Self.page(fetch, window, token.sequence, results, members, view)
                    result.counts.append(page.count)
                    if request.byMediaType { result.byMediaType.append([:]) }
                    continue
                }
                let results = ResultReader(reader: reader, head: head, cache: cache, isContinued: request.token != nil)
                var fetch = try self.expanded(fetch, identity: identity, results, at: token.sequence)
                if let view { fetch = try view.fetch(fetch, reader, at: token.sequence, head) }
                if token.sequence == head.sequence, fetch.kind.isDecidedByEntity {
                    result.counts.append(try Self.count(fetch, head, reader, cache))
                } else {
                    result.counts.append(try results.window(of: fetch, at: token.sequence).count)
                }
                guard request.byMediaType else { continue }
                var kinds: [MediaType: Int] = [:]
                if token.sequence == head.sequence {
                    kinds = try reader.fetches.mediaCounts(fetch) ?? [:]
                } else {
                    let array = try results.window(of: fetch, at: token.sequence)
                    for start in stride(from: 0, to: array.count, by: 1000) {
                        let part = Array(array.dropFirst(start).prefix(1000))
                        for asset in try results.assets(part, at: token.sequence) {
                            kinds[asset.mediaType, default: 0] += 1
                        }
                    }
                }
                var object = JSONObject()
                for type in MediaType.allCases { object[type.rawValue] = JSON(kinds[type] ?? 0) }
                result.byMediaType.append(object)
            }
            return result
        }
    }

    // MARK: Finding

    func find(_ request: FindInFetch, identity: String = "", view: LimitedView? = nil) async throws
        -> FindInFetch.Result
    {
        let resolved = try resolved(request.fetch, identity: identity)
        let members = try transientMembers(of: resolved, identity: identity)
        return try await store.read { [cache] reader in
            let (head, token) = try Self.moment(request.token, reader)
            let found: [Int?]
            let results = ResultReader(reader: reader, head: head, cache: cache, isContinued: request.token != nil)
            if resolved.kind.entityClass == .asset {
                let fetch = try view.map { try $0.fetch(resolved, reader, at: token.sequence, head) } ?? resolved
                let all = try self.expanded(fetch, identity: identity, results, at: token.sequence)
                let array = try Array(results.window(of: all, at: token.sequence))
                let part = array.dropFirst(request.from).prefix(request.count ?? .max)
                found = try results.positions(of: request.ids, in: part)
            } else {
                let page = try Self.page(resolved, FetchStore.Window(), token.sequence, results, members, view)
                let list = page.objects.map(\.id).dropFirst(request.from).prefix(request.count ?? .max)
                found = request.ids.map { list.firstIndex(of: $0) }
            }
            return FindInFetch.Result(token: token, indexes: found.map { $0.map { JSON($0) } ?? .null })
        }
    }

    // MARK: Key assets

    /// - Parameter view: for an identity with a limited grant, what it sees
    func keyAssets(
        _ request: FetchKeyAssets,
        identity: String = "",
        view: LimitedView? = nil
    ) async throws -> FetchKeyAssets.Result {
        var description = FetchDescription(.assets)
        description.container = request.collection
        let fetch = try resolved(description, identity: identity)
        let collection = request.collection
        return try await store.read { [cache] reader in
            let head = try reader.head()
            let results = ResultReader(reader: reader, head: head, cache: cache)
            var fetch = try self.expanded(fetch, identity: identity, results, at: head.sequence)
            if let view { fetch = try view.fetch(fetch, reader, at: head.sequence, head) }
            let window = FetchStore.Window(from: 0, count: FetchKeyAssets.maxCount + 1)
            guard let rows = try reader.fetches.assetRows(fetch, window) else {
                throw CatalogError.notFound(fetch)
            }
            let members = try reader.assets.assets(rows)
            var covers = rows.compactMap { members[$0] }
            if let chosen = try reader.collections.collection(collection)?.keyAsset,
                let asset = try reader.assets.asset(chosen), fetch.includes(asset)
            {
                covers.removeAll { $0.id == chosen }
                covers.insert(asset, at: 0)
            }
            if view != nil { for index in covers.indices { covers[index].memberships = [] } }
            return FetchKeyAssets.Result(token: head.token, assets: Array(covers.prefix(FetchKeyAssets.maxCount)))
        }
    }

    // MARK: Duplicates

    func duplicates(_ request: FetchDuplicates) async throws -> FetchDuplicates.Result {
        let start = try request.after.map { text in
            guard let digest = [UInt8](hexadecimal: text) else { throw FetchError.badPosition(text) }
            return digest
        }
        return try await store.read { reader in
            let digests = try reader.imageDigests.repeated(after: start, limit: request.limit)
            var result = FetchDuplicates.Result(token: try reader.head().token)
            for digest in digests {
                let assets = try reader.imageDigests.assets(with: digest, limit: FetchDuplicates.maxAssets)
                // The others may be in the trash.
                guard assets.count > 1 else { continue }
                result.groups.append(FetchDuplicates.Group(imageDigest: digest.hexadecimal, assets: assets))
            }
            if digests.count == request.limit { result.next = digests.last?.hexadecimal }
            return result
        }
    }

    // MARK: Capabilities

    /// - Parameter view: for an identity with a limited grant, what it sees
    func can(_ request: FetchCan, view: LimitedView? = nil) async throws -> FetchCan.Result {
        try await store.read { reader in
            let head = try reader.head()
            var can = JSONObject()
            for id in request.ids {
                switch id.kind {
                case .asset where try view?.contains(id, reader) == false: continue
                case .asset: can[id.text] = try reader.assets.asset(id).map { JSON($0.can.map(\.rawValue)) }
                case .assetCollection, .collectionList:
                    if id.isTransient {
                        can[id.text] = []
                        continue
                    }
                    // Of collections a limited view has the smart albums, and the moments of its assets.
                    if let view, try !view.hasCollection(id, reader, head) { continue }
                    let past = HistoricalState(reader: reader, moment: head.sequence, head: head)
                    switch try past.collection(id) {
                    case .collection(let collection): can[id.text] = JSON(collection.can.map(\.rawValue))
                    case .list(let list): can[id.text] = JSON(list.can.map(\.rawValue))
                    case nil: break
                    }
                }
            }
            return FetchCan.Result(token: head.token, can: can)
        }
    }

    // MARK: Snapshots

    /// The largest list on which index operations are supported; members of larger lists are named by identifier.
    static let maxSnapshot = 100_000

    /// Returns the list as the client saw it, for the index operations of a request (T-13).
    ///
    /// - Returns: nil if the request has no index operations
    func snapshot(for request: ChangeRequest, identity: String) async throws -> SnapshotList? {
        let (reference, edits, token, fetch): (ObjectReference, [MemberEdit], ChangeToken?, FetchDescription?)
        switch request {
        case .updateCollection(let request):
            (reference, edits, token, fetch) = (request.id, request.edits, request.snapshot, request.snapshotFetch)
        case .updateList(let request):
            (reference, edits, token, fetch) = (request.id, request.edits, request.snapshot, nil)
        default: return nil
        }
        // The transaction refuses to change a transient collection, also one that has expired.
        guard let token, edits.contains(where: \.hasIndexes), case .id(let id) = reference, !id.isTransient else {
            return nil
        }
        var description = FetchDescription(id.kind == .collectionList ? .children : .assets)
        description.container = id
        let seen = try resolved(fetch ?? description, identity: identity)
        switch seen.kind {
        case .assets(.collection(id)), .children(of: id): break
        default: throw FetchError.foreignSnapshot(id)
        }
        return try await store.read { [cache] reader in
            let (head, token) = try Self.moment(token, reader)
            guard seen.kind.entityClass == .asset else {
                let page = try Self.page(seen, FetchStore.Window(), token.sequence, head, reader)
                return SnapshotList(page.objects.map(\.id))
            }
            let results = ResultReader(reader: reader, head: head, cache: cache)
            let array = try results.window(of: seen, at: token.sequence)
            guard array.count <= Self.maxSnapshot else {
                throw FetchError.snapshotTooLarge(id, count: array.count, limit: Self.maxSnapshot)
            }
            return SnapshotList(try reader.assets.identifiers(Array(array)))
        }
    }
}
