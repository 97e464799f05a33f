import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

extension PhotoLibrary {
    /// Returns a page of the assets of a fetch result. The members that were not asked for have their defaults.
    ///
    /// - Parameters:
    ///   - members: the names of the members of each asset; nil for all
    ///   - token: token of the result, from its first page; nil for the newest
    ///   - from: index of the first asset of the page
    ///   - count: maximum number of assets, 0...1,000
    func assets(
        _ fetch: FetchDescription,
        members: [String]?,
        token: ChangeToken? = nil,
        from: Int = 0,
        count: Int
    ) async throws(RPCError) -> FetchAssets.Result {
        guard let members else { return try await assets(fetch, token: token, from: from, count: count) }
        var page = FetchAssets(fetch: fetch, token: token, from: from, count: count)
        page.projection = Projection(members: members)
        let request = FetchMembers(page: page)
        let result = try await retrying { time throws(RPCError) in
            try await self.catalog.ask(request, deadline: time).result.members
        }
        do throws(JSONProblem) {
            return try FetchMembers.page(result, members)
        } catch {
            throw ErrorCode.internalError.error("the result of \(FetchAssets.method) cannot be decoded: \(error)")
        }
    }

    /// Sends a request that changes nothing, again after each transient error until the deadline, as the library does
    /// with its own requests.
    func retrying<Value>(
        within deadline: Duration = .seconds(30),
        _ attempt: (_ remaining: Duration) async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let clock = ContinuousClock()
        let end = clock.now + deadline
        var delay = Duration.milliseconds(50)
        while true {
            do throws(RPCError) {
                return try await attempt(end - clock.now)
            } catch  where error.isTransient {
                guard clock.now + delay < end else { throw error }
                await TaskDelay.retryDelay(delay)
                delay = min(delay * 2, .seconds(2))
            }
        }
    }
}

/// `fetch.assets` with a projection: the result of ``FetchAssets`` has whole assets, and its decoding refuses
/// parts of them.
private struct FetchMembers: CatalogRead {
    typealias Result = FreeForm
    static let method = FetchAssets.method
    let page: FetchAssets

    var json: JSON { page.json }

    static let table = JSONTable(
        method,
        "A page of some members of assets.",
        unknown: .refused,
        blank: FetchMembers(page: FetchAssets(fetch: FetchDescription(.assets))),
        []
    )

    /// Decodes a page whose assets have only the members of these names.
    static func page(_ result: JSONObject, _ members: [String]) throws(JSONProblem) -> FetchAssets.Result {
        let table = JSONTable(
            "Asset",
            "Some members of an asset.",
            unknown: .ignored,
            blank: Asset(id: .none),
            Asset.table.fields.filter { members.contains($0.name) }
        )
        var others = result
        others["assets"] = .array([])
        var page = try FetchAssets.Result(json: .object(others))
        for asset in result["assets"]?.arrayValue ?? [] { page.assets.append(try table.decode(asset)) }
        return page
    }
}
