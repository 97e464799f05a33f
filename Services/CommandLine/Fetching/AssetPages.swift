import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// The assets of a fetch result at one token, in pages that are read as they are needed.
struct AssetPages {
    private let library: PhotoLibrary
    private let fetch: FetchDescription
    private let members: [String]?
    private let maxPageSize: Int
    private var pageSize: Int
    /// The number of pages read since their size was halved.
    private var pagesRead = 0
    private var position = 0
    private var count = Int.max
    private var token: ChangeToken?

    /// - Parameters:
    ///   - members: the names of the members of each asset, see ``AssetMembers``; nil for all
    ///   - pageSize: assets per request, 1...1,000; fewer if so many are too large for a message
    init(_ fetch: FetchDescription, in library: PhotoLibrary, members: [String]?, pageSize: Int = 500) {
        (self.fetch, self.library, self.members) = (fetch, library, members)
        maxPageSize = max(1, min(pageSize, FetchAssets.maxPage))
        self.pageSize = maxPageSize
    }

    /// Returns the next page; nil after the last. The first page has the count and the token also of an empty result.
    mutating func next() async throws(RPCError) -> FetchAssets.Result? {
        guard position < count else { return nil }
        let page = try await read()
        position += page.assets.count
        (token, count) = (page.token, page.assets.isEmpty ? 0 : page.count)
        return page
    }

    /// Reads the next page. Requests smaller pages if the assets of one are too large for a message, and later larger
    /// ones again.
    private mutating func read() async throws(RPCError) -> FetchAssets.Result {
        while true {
            do throws(RPCError) {
                let page = try await library.assets(
                    fetch,
                    members: members,
                    token: token,
                    from: position,
                    count: pageSize
                )
                pagesRead += 1
                if pagesRead.isMultiple(of: 4) { pageSize = min(2 * pageSize, maxPageSize) }
                return page
            } catch {
                guard error.errorCode == .limitExceeded, pageSize > 1 else { throw error }
                pageSize /= 2
                pagesRead = 0
            }
        }
    }
}

/// The identifiers of the assets of a fetch result at one token, in pages, without their other members.
struct IdentifierPages {
    private let library: PhotoLibrary
    private let fetch: FetchDescription
    private var position = 0
    private var count = Int.max
    private var token: ChangeToken?

    init(_ fetch: FetchDescription, in library: PhotoLibrary) { (self.fetch, self.library) = (fetch, library) }

    /// Returns the identifiers of the next page, and the number of all assets; nil after the last page.
    mutating func next() async throws(RPCError) -> (ids: [ObjectID], count: Int)? {
        guard position < count else { return nil }
        let page = try await read()
        position += page.ids.count
        (token, count) = (page.token, page.ids.isEmpty ? 0 : page.count)
        return (page.ids, page.count)
    }

    private func read() async throws(RPCError) -> (ids: [ObjectID], token: ChangeToken, count: Int) {
        // For a page of identifiers alone the catalog computes the whole result, which takes longer than reading the
        // rows of a few assets. A request for a second member makes it read the rows.
        if (1...FetchAssets.maxPage).contains(fetch.limit) {
            let page = try await library.assets(
                fetch,
                members: ["id", "revision"],
                token: token,
                from: position,
                count: fetch.limit
            )
            return (page.assets.map(\.id), page.token, page.count)
        }
        var request = FetchAssets(fetch: fetch, token: token, from: position, count: Projection.maxIDs)
        request.projection = Projection(members: ["id"])
        return try await library.retrying { [request] time throws(RPCError) in
            try await library.catalog.identifiers(request, deadline: time)
        }
    }
}
