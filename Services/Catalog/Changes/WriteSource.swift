import Hosting
import Messaging
import PhotoModel

/// The client that a transaction is made for; the writer's queue serves the sources in turn.
struct WriteSource: Sendable, Hashable {
    /// The connection; nil for the catalog itself.
    var connection: ConnectionID?
    /// The client that a service acts for.
    var client: String?
}

extension WriteRequest {
    /// The approximate number of entities that the request names, at least 1; it bounds the size of a commit.
    var weight: Int { changes.reduce(0) { $0 + $1.request.weight } }
}

extension ChangeRequest {
    fileprivate var weight: Int {
        switch self {
        case .deleteAssets(let request), .deleteCollections(let request), .deleteLists(let request),
            .trashAssets(let request), .restoreAssets(let request):
            max(1, request.ids.count)
        case .createCollection(let request): 1 + request.add.count
        case .updateCollection(let request): 1 + request.add.count + request.remove.count + request.edits.count
        case .createList(let request): 1 + request.add.count
        case .updateList(let request): 1 + request.edits.count
        default: 1
        }
    }
}
