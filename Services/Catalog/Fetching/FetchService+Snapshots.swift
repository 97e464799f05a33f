import Contracts
import PhotoModel
import Synchronization

/// The lists to which index operations of a transaction refer.
extension FetchService {
    /// The maximum number of members of a list with index operations; members of larger lists are named by identifier.
    static let maxSnapshot = 100_000

    /// The maximum number of steps of the index operations of a transaction: for each operation, the members of its
    /// list.
    static let maxSnapshotSteps = 100 * maxSnapshot

    /// Returns the lists to which the index operations of a transaction refer, at the tokens of the client (T-13), by
    /// the index of the request. Requests with index operations on the same list share one value.
    ///
    /// - Throws: an error with the index of the request that failed
    func snapshots(for requests: [ChangeRequest], identity: String) async throws -> [Int: SnapshotList] {
        var snapshots: [Int: SnapshotList] = [:]
        var known: [SnapshotSource: SnapshotList] = [:]
        var (members, steps) = (0, 0)
        for (index, request) in requests.enumerated() {
            guard let (source, operations) = Self.snapshotSource(of: request) else { continue }
            do {
                let snapshot: SnapshotList
                if let same = known[source] {
                    snapshot = same
                } else {
                    snapshot = try await self.snapshot(source, identity: identity)
                    members += snapshot.count
                    known[source] = snapshot
                }
                steps += snapshot.count * operations
                guard members <= Self.maxSnapshot, steps <= Self.maxSnapshotSteps else {
                    throw FetchError.snapshotsTooLarge(limit: Self.maxSnapshot, steps: Self.maxSnapshotSteps)
                }
                snapshots[index] = snapshot
            } catch {
                throw CatalogErrorMapping.rpcError(error).about(request: index)
            }
        }
        return snapshots
    }

    /// The list to which the index operations of a request refer.
    private struct SnapshotSource: Hashable {
        let id: ObjectID
        let token: ChangeToken
        let fetch: FetchDescription?
    }

    /// Returns the list of a request and the number of its operations; nil if the request has no index operations.
    private static func snapshotSource(of request: ChangeRequest) -> (SnapshotSource, operations: Int)? {
        let (reference, edits, token, fetch): (ObjectReference, [MemberEdit], ChangeToken?, FetchDescription?)
        switch request {
        case .updateCollection(let request):
            (reference, edits, token, fetch) = (request.id, request.edits, request.snapshot, request.snapshotFetch)
        case .updateList(let request):
            (reference, edits, token, fetch) = (request.id, request.edits, request.snapshot, nil)
        default: return nil
        }
        // The transaction refuses to change a transient collection, even one that has expired.
        guard let token, edits.contains(where: \.hasIndexes), case .id(let id) = reference, !id.isTransient else {
            return nil
        }
        return (SnapshotSource(id: id, token: token, fetch: fetch), edits.count)
    }

    private func snapshot(_ source: SnapshotSource, identity: String) async throws -> SnapshotList {
        let (id, token) = (source.id, source.token)
        var description = FetchDescription(id.kind == .collectionList ? .children : .assets)
        description.container = id
        let fetch = try checked(source.fetch ?? description, identity: identity)
        switch fetch.kind {
        case .assets(.collection(id)), .children(of: id): break
        default: throw FetchError.foreignSnapshot(id)
        }
        return try await store.read { [cache, snapshotMemory] reader in
            let (head, token) = try Self.resolve(token, reader)
            guard fetch.kind.entityClass == .asset else {
                let page = try Self.page(fetch, FetchStore.PageRange(), token.sequence, head, reader)
                let memory = try snapshotMemory.reserve(page.objects.count)
                return SnapshotList(page.objects.map(\.id), memory)
            }
            let results = ResultReader(reader: reader, head: head, cache: cache)
            let array = try results.selectedRows(of: fetch, at: token.sequence)
            guard array.count <= Self.maxSnapshot else {
                throw FetchError.snapshotTooLarge(id, count: array.count, limit: Self.maxSnapshot)
            }
            let memory = try snapshotMemory.reserve(array.count)
            return SnapshotList(try reader.assets.identifiers(Array(array)), memory)
        }
    }
}

/// A limit on the memory of the lists that transactions need until they are committed.
final class SnapshotMemory: Sendable {
    /// The maximum number of members of all lists. A member takes about 110 bytes.
    private static let limit = 1_000_000

    private let members = Mutex(0)

    /// The number of members of all lists in memory.
    var reserved: Int { members.withLock { $0 } }

    /// Reserves memory for a list.
    ///
    /// - Throws: `busy`
    func reserve(_ count: Int) throws(FetchError) -> Reservation {
        let isReserved = members.withLock { members in
            guard members + count <= Self.limit else { return false }
            members += count
            return true
        }
        guard isReserved else { throw .tooManySnapshots(limit: Self.limit) }
        return Reservation(count, of: self)
    }

    /// The memory of a list, reserved as long as this object exists.
    final class Reservation: Sendable {
        private let count: Int
        private let memory: SnapshotMemory

        fileprivate init(_ count: Int, of memory: SnapshotMemory) {
            self.count = count
            self.memory = memory
        }

        deinit { memory.members.withLock { $0 -= count } }
    }
}
