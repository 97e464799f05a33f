public import Contracts
public import JSONValue
public import PhotoModel

extension PhotoLibrary {
    /// Returns an asset.
    ///
    /// - Parameter atLeast: the catalog responds once it has reached this token
    /// - Throws: `identifier_not_found` if it does not exist
    public func asset(_ id: ObjectID, atLeast: ChangeToken? = nil) async throws(RPCError) -> Asset {
        let page = try await assets(Self.fetch(of: [id]), count: 1, atLeast: atLeast)
        guard let asset = page.assets.first else {
            throw ErrorCode.identifierNotFound.error("there is no asset \(id)", ["id": .string(id.text)])
        }
        return asset
    }

    /// Returns assets by their identifiers, in that order. The page also lists the identifiers that no asset has.
    public func assets(_ ids: [ObjectID], atLeast: ChangeToken? = nil) async throws(RPCError) -> FetchAssets.Result {
        try await assets(Self.fetch(of: ids), count: ids.count, atLeast: atLeast)
    }

    /// Returns a page of the assets of a fetch result: `FetchAssets` is ``FetchPage`` of assets.
    ///
    /// - Parameters:
    ///   - token: token of the result, from its first page; nil for the newest
    ///   - from: index of the first asset of the page
    ///   - count: maximum number of assets, 0...1,000
    public func assets(
        _ fetch: FetchDescription,
        token: ChangeToken? = nil,
        from: Int = 0,
        count: Int = 100,
        atLeast: ChangeToken? = nil,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> FetchAssets.Result {
        let request = FetchAssets(fetch: fetch, token: token, from: from, count: count, atLeast: atLeast)
        return try await askWithRetries(request, deadline)
    }

    /// Returns all assets of a fetch result at one token; pages are fetched as they are needed.
    ///
    /// - Parameter pageSize: assets per request, 1...1,000; fewer if so many are too large for a message
    public func allAssets(_ fetch: FetchDescription, pageSize: Int = 500) -> AssetSequence {
        AssetSequence(library: self, fetch: fetch, pageSize: max(1, min(pageSize, FetchAssets.maxPage)))
    }

    /// Returns the identifiers of all assets of a fetch result, at one token, without reading the assets.
    ///
    /// - Parameter deadline: for each page of ``Projection/maxIDs`` identifiers
    public func assetIDs(
        _ fetch: FetchDescription,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> [ObjectID] {
        var ids: [ObjectID] = []
        var token: ChangeToken?
        while true {
            let page = try await identifierPage(fetch, token: token, from: ids.count, deadline: deadline)
            ids += page.ids
            guard !page.ids.isEmpty, ids.count < page.count else { return ids }
            token = page.token
        }
    }

    /// Returns a page of the identifiers of the assets of a fetch result, without reading the assets.
    func identifierPage(
        _ fetch: FetchDescription,
        token: ChangeToken?,
        from: Int,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> (ids: [ObjectID], token: ChangeToken, count: Int) {
        var request = FetchAssets(fetch: fetch, token: token, from: from, count: Projection.maxIDs)
        request.projection = Projection(members: ["id"])
        return try await withRetries(deadline) { [request] time throws(RPCError) in
            try await self.catalog.identifiers(request, deadline: time)
        }
    }

    /// Returns a page of the collections of a fetch result.
    public func collections(
        _ fetch: FetchDescription,
        from: Int = 0,
        count: Int = 100,
        atLeast: ChangeToken? = nil,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> FetchCollections.Result {
        let request = FetchCollections(fetch: fetch, from: from, count: count, atLeast: atLeast)
        return try await askWithRetries(request, deadline)
    }

    /// Returns a page of the folders or moment lists of a fetch result.
    public func lists(
        _ fetch: FetchDescription,
        token: ChangeToken? = nil,
        from: Int = 0,
        count: Int = 100,
        atLeast: ChangeToken? = nil,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> FetchLists.Result {
        try await askWithRetries(
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
        try await askWithRetries(FetchCounts(fetches: fetches, countsMediaTypes: byMediaType), deadline)
    }

    /// Returns the cover assets of a collection, at most three.
    public func keyAssets(
        of collection: ObjectID,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> FetchKeyAssets.Result {
        try await askWithRetries(FetchKeyAssets(collection: collection), deadline)
    }

    /// Returns the changes of a fetch result or of objects between two tokens.
    public func details(
        _ request: ChangesDetails,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> ChangesDetails.Result {
        try await askWithRetries(request, deadline)
    }

    /// Returns the difference between two results, also of different fetches.
    public func difference(
        _ request: DetailsDiff,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> ChangesDetails.Result {
        try await askWithRetries(request, deadline)
    }

    private func askWithRetries<R: Request & Sendable>(
        _ request: R,
        _ deadline: Duration
    ) async throws(RPCError) -> R.Result where R.Result: Sendable {
        try await withRetries(deadline) { time throws(RPCError) in
            try await self.catalog.ask(request, deadline: time).result
        }
    }

    private static func fetch(of ids: [ObjectID]) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        fetch.ids = ids
        return fetch
    }
}

// MARK: - All assets

/// All assets of a fetch result at one token.
public struct AssetSequence: AsyncSequence, Sendable {
    public typealias Element = Asset
    public typealias Failure = RPCError

    let library: PhotoLibrary
    let fetch: FetchDescription
    let pageSize: Int

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    public struct Iterator: AsyncIteratorProtocol {
        let assets: AssetSequence
        private var page: [Asset] = []
        private var index = 0
        private var position = 0
        private var token: ChangeToken?
        private var count = Int.max
        private var pageSize: Int
        /// The number of pages read since it was halved.
        private var pagesRead = 0

        init(_ assets: AssetSequence) {
            self.assets = assets
            pageSize = assets.pageSize
        }

        /// Returns the next asset; nil after the last.
        ///
        /// - Throws: the catalog's error; `token_expired` if the iteration takes longer than the history is retained
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> Asset? {
            if index == page.count {
                guard position < count else { return nil }
                let result = try await nextPage()
                (page, index, token, count) = (result.assets, 0, result.token, result.count)
                position += page.count
                guard !page.isEmpty else {
                    count = 0
                    return nil
                }
            }
            defer { index += 1 }
            return page[index]
        }

        /// Requests smaller pages if the assets of one are too large for a message, and later larger ones again.
        private mutating func nextPage() async throws(RPCError) -> FetchAssets.Result {
            while true {
                do throws(RPCError) {
                    let library = assets.library
                    let page = try await library.assets(assets.fetch, token: token, from: position, count: pageSize)
                    pagesRead += 1
                    if pagesRead.isMultiple(of: 4) { pageSize = Swift.min(2 * pageSize, assets.pageSize) }
                    return page
                } catch {
                    guard error.errorCode == .limitExceeded, pageSize > 1 else { throw error }
                    pageSize /= 2
                    pagesRead = 0
                }
            }
        }

        public mutating func next() async throws(RPCError) -> Asset? { try await next(isolation: #isolation) }
    }
}
