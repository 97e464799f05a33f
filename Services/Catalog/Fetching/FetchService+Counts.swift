import Contracts
import JSONValue
import PhotoModel

/// The counts of results, of all entities and by media type.
extension FetchService {
    func counts(_ request: FetchCounts, identity: String = "", view: LimitedView? = nil) async throws
        -> FetchCounts.Result
    {
        let fetches = try request.fetches.map { description in
            let fetch = try checked(description, identity: identity)
            return (fetch: fetch, members: try transientMembers(of: fetch, identity: identity))
        }
        return try await store.read { [cache] reader in
            let (head, token) = try Self.resolve(request.token, reader)
            var result = FetchCounts.Result(token: token, counts: [])
            for (fetch, members) in fetches {
                try reader.checkCancellation()
                guard fetch.kind.entityClass == .asset else {
                    let range = FetchStore.PageRange(from: 0, count: 0)
                    let results = ResultReader(reader: reader, head: head, cache: cache)
                    let page = try Self.page(fetch, range, token.sequence, results, members, view)
                    result.counts.append(page.count)
                    if request.countsMediaTypes { result.byMediaType.append([:]) }
                    continue
                }
                let results = ResultReader(reader: reader, head: head, cache: cache, isContinued: request.token != nil)
                let fetch = try self.effectiveFetch(
                    fetch,
                    identity: identity,
                    view: view,
                    results,
                    at: token.sequence
                )
                // If the request names a token and the result depends on local files, the result of the page with this
                // token is counted.
                let isNewest = token.sequence == head.sequence && (request.token == nil || !fetch.dependsOnLocalFiles)
                if isNewest, fetch.kind.isDecidedByEntity {
                    result.counts.append(try Self.count(fetch, head, reader, cache))
                } else {
                    result.counts.append(try results.selectedRows(of: fetch, at: token.sequence).count)
                }
                guard request.countsMediaTypes else { continue }
                var typeCounts: [MediaType: Int] = [:]
                if isNewest {
                    typeCounts = try reader.fetches.mediaCounts(fetch) ?? [:]
                } else {
                    let array = try results.selectedRows(of: fetch, at: token.sequence)
                    for start in stride(from: 0, to: array.count, by: 1000) {
                        let part = Array(array.dropFirst(start).prefix(1000))
                        for asset in try results.assets(part, at: token.sequence) {
                            typeCounts[asset.mediaType, default: 0] += 1
                        }
                    }
                }
                var object = JSONObject()
                for type in MediaType.allCases { object[type.rawValue] = JSON(typeCounts[type] ?? 0) }
                result.byMediaType.append(object)
            }
            return result
        }
    }
}
