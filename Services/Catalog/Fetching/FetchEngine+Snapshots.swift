import Contracts
import PhotoModel

/// The lists to which index operations of a transaction refer.
extension FetchEngine {
    /// The largest list on which index operations are supported; members of larger lists are named by identifier.
    static let maxSnapshot = 100_000

    /// Returns the list as the client saw it, for the index operations of a request (T-13).
    ///
    /// - Returns: nil if the request has no index operations
    func snapshot(for request: ChangeRequest, identity: String) async throws -> SnapshotList? {
        let (reference, edits, token, fetch): (ObjectReference, [MemberEdit], ChangeToken?, FetchDescription?)
        switch request {
        case .updateCollection(let request):
            (reference, edits, token, fetch) = (request.id, request.edits, request.snapshot, request.snapshotFetch)
        case .updateList(let request):
            (reference, edits, token, fetch) = (request.id, request.edits, request.snapshot, nil)
        default: return nil
        }
        // The transaction refuses to change a transient collection, also one that has expired.
        guard let token, edits.contains(where: \.hasIndexes), case .id(let id) = reference, !id.isTransient else {
            return nil
        }
        var description = FetchDescription(id.kind == .collectionList ? .children : .assets)
        description.container = id
        let seen = try resolved(fetch ?? description, identity: identity)
        switch seen.kind {
        case .assets(.collection(id)), .children(of: id): break
        default: throw FetchError.foreignSnapshot(id)
        }
        return try await store.read { [cache] reader in
            let (head, token) = try Self.resolve(token, reader)
            guard seen.kind.entityClass == .asset else {
                let page = try Self.page(seen, FetchStore.Window(), token.sequence, head, reader)
                return SnapshotList(page.objects.map(\.id))
            }
            let results = ResultReader(reader: reader, head: head, cache: cache)
            let array = try results.window(of: seen, at: token.sequence)
            guard array.count <= Self.maxSnapshot else {
                throw FetchError.snapshotTooLarge(id, count: array.count, limit: Self.maxSnapshot)
            }
            return SnapshotList(try reader.assets.identifiers(Array(array)))
        }
    }
}
