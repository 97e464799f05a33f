import Contracts
import JSONValue
import PhotoModel

/// Implements `fetch.can`: the operations that entities allow.
extension FetchService {
    /// - Parameter view: the view of an identity with a limited grant; nil for the whole library
    func can(_ request: FetchCan, view: LimitedView? = nil) async throws -> FetchCan.Result {
        try await store.read { reader in
            let head = try reader.head()
            var can = JSONObject()
            for id in request.ids {
                switch id.kind {
                case .asset where try view?.contains(id, reader) == false: continue
                case .asset:
                    can[id.text] = try reader.assets.asset(id).map { JSON($0.allowedOperations.map(\.rawValue)) }
                case .assetCollection, .collectionList:
                    if id.isTransient {
                        can[id.text] = []
                        continue
                    }
                    // The collections of a limited view are the smart albums, and the moments of its assets.
                    if let view, try !view.hasCollection(id, reader, head) { continue }
                    let state = HistoricalState(reader: reader, sequence: head.sequence, head: head)
                    switch try state.collection(id) {
                    case .collection(let collection): can[id.text] = JSON(collection.allowedOperations.map(\.rawValue))
                    case .list(let list): can[id.text] = JSON(list.allowedOperations.map(\.rawValue))
                    case nil: break
                    }
                }
            }
            return FetchCan.Result(token: head.token, can: can)
        }
    }
}
