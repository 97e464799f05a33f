public import Contracts
public import JSONValue
public import PhotoModel

extension PhotoLibrary {
    /// Returns a page of the folders or moment lists of a fetch result.
    public func lists(
        _ fetch: FetchDescription,
        token: ChangeToken? = nil,
        from: Int = 0,
        count: Int = 100,
        atLeast: ChangeToken? = nil,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> FetchLists.Result {
        try await ask(
            FetchLists(fetch: fetch, token: token, from: from, count: count, atLeast: atLeast),
            deadline
        )
    }

    /// Counts the objects of several fetches.
    public func counts(
        _ fetches: [FetchDescription],
        byMediaType: Bool = false,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> FetchCounts.Result {
        try await ask(FetchCounts(fetches: fetches, byMediaType: byMediaType), deadline)
    }

    /// Returns the cover assets of a collection, at most three.
    public func keyAssets(
        of collection: ObjectID,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> FetchKeyAssets.Result {
        try await ask(FetchKeyAssets(collection: collection), deadline)
    }

    /// Returns the changes of a fetch result or of objects between two tokens.
    public func details(
        _ request: ChangesDetails,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> ChangesDetails.Result {
        try await ask(request, deadline)
    }

    /// Returns the difference between two results, also of different fetches.
    public func difference(
        _ request: DetailsDiff,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> ChangesDetails.Result {
        try await ask(request, deadline)
    }

    private func ask<R: Request & Sendable>(
        _ request: R,
        _ deadline: Duration
    ) async throws(RPCError) -> R.Result where R.Result: Sendable {
        try await withRetries(deadline) { time throws(RPCError) in
            try await self.catalog.ask(request, deadline: time).result
        }
    }
}
