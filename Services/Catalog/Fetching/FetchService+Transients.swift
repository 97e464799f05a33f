import Contracts
import PhotoModel

/// The members of a result with transient collections or lists of a client, which the database does not have.
struct TransientMembers: Sendable {
    /// All members, in the order of the result.
    var ids: [ObjectID]
    /// The transient members.
    var transients: [ObjectID: PhotoCollection]
}

/// Fetches in transient lists, and of transient collections by their identifiers (S-30, S-31).
extension FetchService {
    /// Returns the members of the result if the fetch is of the children of the client's transient list, or of
    /// identifiers with transient ones among them; else nil.
    ///
    /// - Throws: `handle_expired` if the list has expired
    func transientMembers(of fetch: Fetch, identity: String) throws -> TransientMembers? {
        let ids: [ObjectID]
        switch fetch.kind {
        case .children(let list) where list.isTransient: ids = try transients.members(of: list, identity: identity)
        case .collectionIDs(let list), .listIDs(let list):
            guard list.ids.contains(where: \.isTransient) else { return nil }
            ids = list.ids
        default: return nil
        }
        var entities: [ObjectID: PhotoCollection] = [:]
        for id in ids where id.isTransient { entities[id] = transients.entity(id, identity: identity) }
        return TransientMembers(ids: ids, transients: entities)
    }

    /// Returns a fetch of the assets below the client's transient list in which the list is replaced by those assets
    /// (P-19). Their default order is that of every fetch below a list: by added date.
    ///
    /// - Throws: `handle_expired`, `limit_exceeded`
    func replacing(
        _ list: ObjectID,
        in fetch: Fetch,
        identity: String,
        _ results: ResultReader,
        at sequence: Int64
    ) throws -> Fetch {
        var (stored, assets) = try transients.contents(of: list, identity: identity)
        let state = HistoricalState(reader: results.reader, sequence: sequence, head: results.head)
        var numbers: Set<Int64> = []
        for id in stored {
            guard try state.contains(id) else { continue }
            let members = try Fetch(
                .assets(id.kind == .collectionList ? .below(id) : .collection(id)),
                includeHidden: true,
                includeAllBurstAssets: true,
                sourceTypes: .all,
                inTrash: fetch.inTrash
            )
            numbers.formUnion(try results.rows(of: members, at: sequence))
            let limit = transients.limits.membersPerIdentity
            guard numbers.count + assets.count <= limit else {
                throw FetchError.tooManyAssets(list, limit: limit)
            }
        }
        assets.formUnion(try results.reader.assets.identifiersByRow(numbers).values)
        let defaultOrder = [try SortDescriptor("addedDate", ascending: true, of: .asset)]
        return try fetch.selecting(from: IDList(assets.sorted()), sort: fetch.sort.isEmpty ? defaultOrder : nil)
    }
}

// MARK: - Creating

extension FetchService {
    /// Creates a transient collection from the given identifiers, or from concatenated results (S-32).
    ///
    /// - Parameter view: the view of an identity with a limited grant; nil for the whole library
    func createTransient(
        _ request: CreateTransient,
        identity: String,
        view: LimitedView? = nil
    ) async throws -> CreateTransient.Result {
        guard (request.ids == nil) != request.results.isEmpty else {
            throw FetchError.idsAndResults
        }
        var members = request.ids ?? []
        let limit = transients.limits.membersPerIdentity
        for reference in request.results {
            let found = try await identifiers(of: reference, identity: identity, view)
            // Checked after each result, so that the memory is bounded for any number of results.
            members = IDList(members + found).ids
            guard members.count <= limit else { throw FetchError.resultTooLarge(count: members.count, limit: limit) }
        }
        members = IDList(members).ids
        let isOfAssets = members.allSatisfy { $0.kind == .asset }
        guard isOfAssets || members.allSatisfy({ $0.kind != .asset }) else {
            throw FetchError.mixedMembers
        }
        if request.ids != nil { try await requireAll(members, identity: identity, view) }
        let isList = !isOfAssets || (members.isEmpty && request.results.contains { $0.fetch.kind != .assets })
        let title = try request.title.map { try storable($0, "title", maxBytes: TextLimit.title) }
        let id = try transients.create(
            isList ? .collectionList : .assetCollection,
            members,
            title: title,
            identity: identity
        )
        return CreateTransient.Result(
            id: id,
            title: title,
            count: members.count,
            leaseMs: Int(transients.limits.lease / 1000)
        )
    }

    /// Removes a transient collection of the client, if it exists.
    func releaseTransient(_ request: ReleaseTransient, identity: String) -> EmptyResult {
        transients.release(request.id, identity: identity)
        return EmptyResult()
    }

    /// Checks that all entities exist.
    ///
    /// - Throws: `identifier_not_found` for an unknown entity, `handle_expired` for an unknown transient one
    private func requireAll(_ ids: [ObjectID], identity: String, _ view: LimitedView?) async throws {
        for id in ids where id.isTransient { _ = try transients.members(of: id, identity: identity) }
        let ids = ids.filter { !$0.isTransient }
        let missing = try await store.read { reader in
            let head = try reader.head()
            return try ids.first { id in
                if let view, try !view.has(id, reader, head) { return true }
                return switch id.kind {
                case .asset: try reader.assets.rowNumber(of: id) == nil
                case .assetCollection: try reader.collections.rowNumber(of: id) == nil
                case .collectionList: try reader.collections.list(id) == nil
                }
            }
        }
        if let missing { throw CatalogError.objectNotFound(missing) }
    }

    private func identifiers(
        of reference: ResultReference,
        identity: String,
        _ view: LimitedView?
    ) async throws -> [ObjectID] {
        let fetch = try checked(reference.fetch, identity: identity)
        let members = try transientMembers(of: fetch, identity: identity)
        let limit = transients.limits.membersPerIdentity
        return try await store.read { [cache] reader in
            let (head, token) = try Self.resolve(reference.token, reader)
            let results = ResultReader(reader: reader, head: head, cache: cache)
            guard fetch.kind.entityClass == .asset else {
                return try Self.page(fetch, FetchStore.PageRange(), token.sequence, results, members, view)
                    .objects.map(\.id)
            }
            let fetch = try self.effectiveFetch(fetch, identity: identity, view: view, results, at: token.sequence)
            let array = try results.selectedRows(of: fetch, at: token.sequence)
            guard array.count <= limit else {
                throw FetchError.resultTooLarge(count: array.count, limit: limit)
            }
            return try reader.assets.identifiers(Array(array))
        }
    }
}
