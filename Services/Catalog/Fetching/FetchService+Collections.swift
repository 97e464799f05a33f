import Contracts
import PhotoModel

/// Pages of collections and lists.
extension FetchService {
    /// - Parameter view: the view of an identity with a limited grant, which has the smart albums, the identity's own
    ///   transient collections, and the moments of its assets; nil for the whole library
    func collections(
        _ request: FetchCollections,
        identity: String = "",
        view: LimitedView? = nil
    ) async throws -> FetchCollections.Result {
        let fetch = try checked(request.fetch, identity: identity)
        guard [.assetCollection, .collection].contains(fetch.kind.entityClass) else {
            throw FetchError.wrongKind(accepted: "kind collections or children")
        }
        let range = FetchStore.PageRange(from: request.from, count: request.count)
        let (page, token) = try await readPage(of: fetch, range, request.token, identity, view)
        var result = FetchCollections.Result(token: token, count: page.count, collections: [])
        for object in page.objects {
            switch object {
            case .collection(let collection): result.collections.append(collection)
            case .list(let list): result.lists.append(list)
            }
        }
        if fetch.kind.entityClass == .collection { result.order = page.objects.map(\.id) }
        return result
    }

    /// - Parameter view: the view of an identity with a limited grant, which has the lists of its moments, and the
    ///   identity's own transient lists; nil for the whole library
    func lists(
        _ request: FetchLists,
        identity: String = "",
        view: LimitedView? = nil
    ) async throws -> FetchLists.Result {
        let fetch = try Fetch(request.fetch)
        guard fetch.kind.entityClass == .collectionList else {
            throw FetchError.wrongKind(accepted: "kind lists")
        }
        let range = FetchStore.PageRange(from: request.from, count: request.count)
        let (page, token) = try await readPage(of: fetch, range, request.token, identity, view)
        let lists = page.objects.compactMap { object -> CollectionList? in
            if case .list(let list) = object { list } else { nil }
        }
        return FetchLists.Result(token: token, count: page.count, lists: lists)
    }

    /// Reads a page of collections or lists at a token; at the newest state if it is nil.
    private func readPage(
        of fetch: Fetch,
        _ range: FetchStore.PageRange,
        _ token: ChangeToken?,
        _ identity: String,
        _ view: LimitedView?
    ) async throws -> (page: CollectionFetchStore.Page, token: ChangeToken) {
        let members = try transientMembers(of: fetch, identity: identity)
        return try await store.read { [cache] reader in
            let (head, token) = try Self.resolve(token, reader)
            let results = ResultReader(reader: reader, head: head, cache: cache)
            return (try Self.page(fetch, range, token.sequence, results, members, view), token)
        }
    }

    /// Returns a page of collections or lists as a view shows them, or those of the whole library without a view.
    static func page(
        _ fetch: Fetch,
        _ range: FetchStore.PageRange,
        _ sequence: Int64,
        _ results: ResultReader,
        _ members: TransientMembers?,
        _ view: LimitedView?
    ) throws -> CollectionFetchStore.Page {
        guard let view else {
            return try page(fetch, range, sequence, results.head, results.reader, members: members)
        }
        guard let all = try view.collections(fetch, results, at: sequence, members) else {
            throw CatalogError.notFound(fetch)
        }
        return fetch.page(all, range)
    }

    /// Returns a page of the collections or lists of the whole library.
    static func page(
        _ fetch: Fetch,
        _ range: FetchStore.PageRange,
        _ sequence: Int64,
        _ head: LibraryHead,
        _ reader: LibraryReader,
        members: TransientMembers? = nil
    ) throws -> CollectionFetchStore.Page {
        let state = HistoricalState(reader: reader, sequence: sequence, head: head)
        if let members {
            var objects = try members.ids.compactMap { try members.transients[$0] ?? state.collection($0) }
            if let predicate = fetch.predicate { objects = try predicate.matching(objects, reader.checkCancellation) }
            if !fetch.sort.isEmpty { objects.sort { fetch.areInIncreasingOrder($0, $1) } }
            return fetch.page(objects, range)
        }
        if sequence == head.sequence {
            guard let page = try reader.collectionFetches.page(fetch, range) else {
                throw CatalogError.notFound(fetch)
            }
            return page
        }
        guard fetch.kind.isFollowable else {
            throw CatalogError.tokenExpired(ChangeToken(library: head.library, sequence: sequence), head)
        }
        guard try state.hasObject(of: fetch) else { throw CatalogError.notFound(fetch) }
        return fetch.page(try state.collections(of: fetch.whole), range)
    }
}
