import Basics
import Contracts
import JSONValue
import PhotoModel

/// Requests that search for assets: positions of assets in a result, the key assets of a collection, and duplicates.
extension FetchService {
    func find(_ request: FindInFetch, identity: String = "", view: LimitedView? = nil) async throws
        -> FindInFetch.Result
    {
        let fetch = try checked(request.fetch, identity: identity)
        let members = try transientMembers(of: fetch, identity: identity)
        return try await store.read { [cache] reader in
            let (head, token) = try Self.resolve(request.token, reader)
            let found: [Int?]
            let results = ResultReader(reader: reader, head: head, cache: cache, isContinued: request.token != nil)
            if fetch.kind.entityClass == .asset {
                let fetch = try self.effectiveFetch(
                    fetch,
                    identity: identity,
                    view: view,
                    results,
                    at: token.sequence
                )
                let array = try Array(results.selectedRows(of: fetch, at: token.sequence))
                let part = array.dropFirst(request.from).prefix(request.count ?? .max)
                found = try results.positions(of: request.ids, in: part, granted: fetch.granted)
            } else {
                let page = try Self.page(fetch, FetchStore.PageRange(), token.sequence, results, members, view)
                let list = page.objects.map(\.id).dropFirst(request.from).prefix(request.count ?? .max)
                found = request.ids.map { list.firstIndex(of: $0) }
            }
            return FindInFetch.Result(token: token, indexes: found.map { $0.map { JSON($0) } ?? .null })
        }
    }

    /// - Parameter view: the view of an identity with a limited grant; nil for the whole library
    func keyAssets(
        _ request: FetchKeyAssets,
        identity: String = "",
        view: LimitedView? = nil
    ) async throws -> FetchKeyAssets.Result {
        var description = FetchDescription(.assets)
        description.container = request.collection
        let fetch = try checked(description, identity: identity)
        let collection = request.collection
        return try await store.read { [cache] reader in
            let head = try reader.head()
            let results = ResultReader(reader: reader, head: head, cache: cache)
            let fetch = try self.effectiveFetch(fetch, identity: identity, view: view, results, at: head.sequence)
            let range = FetchStore.PageRange(from: 0, count: FetchKeyAssets.maxCount + 1)
            guard let rows = try reader.fetches.assetRows(fetch, range) else {
                throw CatalogError.notFound(fetch)
            }
            let members = try reader.assets.assets(rows)
            var keyAssets = rows.compactMap { members[$0] }
            if let chosen = try reader.collections.collection(collection)?.keyAsset,
                let asset = try reader.assets.asset(chosen), fetch.includes(asset)
            {
                keyAssets.removeAll { $0.id == chosen }
                keyAssets.insert(asset, at: 0)
            }
            if view != nil { for index in keyAssets.indices { keyAssets[index].memberships = [] } }
            return FetchKeyAssets.Result(token: head.token, assets: Array(keyAssets.prefix(FetchKeyAssets.maxCount)))
        }
    }

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
                // All assets with the digest but one may be in the trash.
                guard assets.count > 1 else { continue }
                result.groups.append(FetchDuplicates.Group(imageDigest: digest.hexadecimal, assets: assets))
            }
            if digests.count == request.limit { result.next = digests.last?.hexadecimal }
            return result
        }
    }
}
