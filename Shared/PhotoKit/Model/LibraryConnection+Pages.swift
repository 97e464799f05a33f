import Contracts
import JSONValue
import PhotoModel

extension LibraryConnection {
    /// Returns a page of a fetch of any kind.
    func page(
        _ fetch: FetchDescription,
        _ token: ChangeToken?,
        from: Int,
        count: Int,
        _ interest: Interest?
    ) async throws(RPCError) -> (objects: [PHObject], token: ChangeToken, count: Int) {
        switch fetch.kind {
        case .assets:
            let page = try await assets(fetch, token, from: from, count: count)
            let history = page.token.library
            return (page.assets.map { PHAsset($0, self, interest, history: history) }, page.token, page.count)
        case .collections:
            let page = try await askCatalog(FetchCollections(fetch: fetch, token: token, from: from, count: count))
            let history = page.token.library
            let collections = page.collections.map { PHAssetCollection($0, self, interest, history: history) }
            return (collections, page.token, page.count)
        case .lists:
            let page = try await askCatalog(FetchLists(fetch: fetch, token: token, from: from, count: count))
            let history = page.token.library
            return (page.lists.map { PHCollectionList($0, self, interest, history: history) }, page.token, page.count)
        case .children:
            let page = try await askCatalog(FetchCollections(fetch: fetch, token: token, from: from, count: count))
            let history = page.token.library
            var objects: [ObjectID: PHCollection] = [:]
            for collection in page.collections {
                objects[collection.id] = PHAssetCollection(collection, self, interest, history: history)
            }
            for list in page.lists { objects[list.id] = PHCollectionList(list, self, interest, history: history) }
            let order = page.order.isEmpty ? page.collections.map(\.id) : page.order
            return (order.compactMap { objects[$0] }, page.token, page.count)
        }
    }

    /// Returns a page of assets. If it is too large for a message, it is read in parts.
    private func assets(
        _ fetch: FetchDescription,
        _ token: ChangeToken?,
        from: Int,
        count: Int
    ) async throws(RPCError) -> FetchAssets.Result {
        do throws(RPCError) {
            return try await askCatalog(FetchAssets(fetch: fetch, token: token, from: from, count: count))
        } catch {
            guard error.errorCode == .limitExceeded, count > 1 else { throw error }
        }
        let half = count / 2
        var page = try await assets(fetch, token, from: from, count: half)
        guard from + half < page.count else { return page }
        page.assets += try await assets(fetch, page.token, from: from + half, count: count - half).assets
        return page
    }
}
