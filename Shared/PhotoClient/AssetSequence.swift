import Contracts
public import JSONValue
public import PhotoModel

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

        init(_ assets: AssetSequence) { self.assets = assets }

        /// Returns the next asset; nil after the last.
        ///
        /// - Throws: the catalog's error; `token_expired` if the iteration takes longer than the history is retained
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> Asset? {
            if index == page.count {
                guard position < count else { return nil }
                let result = try await assets.library.assets(
                    assets.fetch,
                    token: token,
                    from: position,
                    count: assets.pageSize
                )
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

        public mutating func next() async throws(RPCError) -> Asset? { try await next(isolation: #isolation) }
    }
}
