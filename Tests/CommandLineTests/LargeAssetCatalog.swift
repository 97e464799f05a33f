import Contracts
import JSONValue
import Messaging
import PhotoModel
import Synchronization

/// A catalog that refuses pages with more than `maxWhole` whole assets, as if each had megabytes of text.
final class LargeAssetCatalog: RequestHandler {
    private struct Requests {
        var methods: [String] = []
        var fetches: [FetchAssets] = []
    }

    private let requests = Mutex(Requests())
    private let assets: [Asset]
    private let maxWhole: Int
    private let groups: [[ObjectID]]
    private let collections: [AssetCollection]
    private let lists: [CollectionList]
    private let token = ChangeToken(library: String(repeating: "0", count: 32), sequence: 1)

    init(
        _ assets: [Asset] = [],
        maxWhole: Int = 1,
        groups: [[ObjectID]] = [],
        collections: [AssetCollection] = [],
        lists: [CollectionList] = []
    ) {
        (self.assets, self.maxWhole, self.groups) = (assets, maxWhole, groups)
        (self.collections, self.lists) = (collections, lists)
    }

    /// The methods of all requests.
    var methods: [String] { requests.withLock { $0.methods } }
    /// The requests for pages of assets.
    var fetches: [FetchAssets] { requests.withLock { $0.fetches } }
    /// The members that each of them requests; `all` for whole assets.
    var members: [[String]] { fetches.map { $0.projection.members ?? ["all"] } }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        requests.withLock { $0.methods.append(request.method) }
        switch try CatalogRequest(method: request.method, params: request.params) {
        case .fetchAssets(let fetch):
            requests.withLock { $0.fetches.append(fetch) }
            return Reply(fetch.projection.applied(to: try page(fetch).json))
        case .fetchCollections(let fetch): return Reply(try page(fetch).json)
        case .duplicates:
            let digest = String(repeating: "0", count: 64)
            let groups = groups.map { FetchDuplicates.Group(imageDigest: digest, assets: $0) }
            return Reply(FetchDuplicates.Result(token: token, groups: groups).json)
        case .liftQuarantine: return Reply(LiftQuarantine.Result(lifted: 1).json)
        default: throw ErrorCode.methodNotFound.error("the catalog of this test has no \(request.method)")
        }
    }

    private func page(_ request: FetchAssets) throws(RPCError) -> FetchAssets.Result {
        let fetch = try checked(request.fetch)
        var found = assets.filter { fetch.includes($0) }
        let ids = request.fetch.ids ?? []
        if request.fetch.ids != nil { found = ids.compactMap { id in found.first { $0.id == id } } }
        if fetch.limit > 0 { found = Array(found.prefix(fetch.limit)) }
        let part = Array(found.dropFirst(request.from).prefix(request.count))
        guard request.projection.members != nil || part.count <= maxWhole else {
            throw ErrorCode.limitExceeded.error("the objects of the page are too large")
        }
        let known = Set(assets.map(\.id))
        return FetchAssets.Result(
            token: token,
            count: found.count,
            assets: part,
            missing: ids.filter { !known.contains($0) }
        )
    }

    private func page(_ request: FetchCollections) throws(RPCError) -> FetchCollections.Result {
        let fetch = try checked(request.fetch)
        let all = lists.map { PhotoCollection.list($0) } + collections.map { PhotoCollection.collection($0) }
        let found = all.filter { fetch.includes($0) }
        var page = FetchCollections.Result(token: token, count: found.count, collections: [])
        for object in found.dropFirst(request.from).prefix(request.count) {
            page.order.append(object.id)
            switch object {
            case .list(let list): page.lists.append(list)
            case .collection(let collection): page.collections.append(collection)
            }
        }
        return page
    }

    private func checked(_ description: FetchDescription) throws(RPCError) -> Fetch {
        do {
            return try Fetch(description)
        } catch {
            throw ErrorCode.invalidParams.error("\(error)")
        }
    }
}
