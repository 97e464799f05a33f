import PhotoModel

/// The members of a result with transient collections or lists of a client, which the database does not have.
struct TransientMembers: Sendable {
    /// All members, in the order of the result.
    var ids: [ObjectID]
    /// The transient ones.
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

    /// Replaces the client's transient list, in a fetch of the assets below it, by those assets (P-19). Their default
    /// order is that of every fetch below a list: the order of arrival.
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
        let past = HistoricalState(reader: results.reader, sequence: sequence, head: results.head)
        var numbers: Set<Int64> = []
        for id in stored {
            guard try past.had(id) else { continue }
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
        let arrivalOrder = [try SortDescriptor("addedDate", ascending: true, of: .asset)]
        return try fetch.selecting(from: IDList(assets.sorted()), sort: fetch.sort.isEmpty ? arrivalOrder : nil)
    }
}
