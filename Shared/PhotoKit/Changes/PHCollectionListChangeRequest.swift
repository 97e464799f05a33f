public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// A request to create, change or delete folders, inside a change block: `PHCollectionListChangeRequest` (T-24, T-25).
public final class PHCollectionListChangeRequest: RecordedChange, @unchecked Sendable {
    private let id: ObjectID
    private let list: PHCollectionList?
    private let placeholder: PHObjectPlaceholder?
    private let snapshot: PHFetchResult<PHCollection>?
    private let changes = MemberChanges()

    /// Creates a request that changes a folder; nil if the library allows no change of it.
    public convenience init?(for collectionList: PHCollectionList) { self.init(changing: collectionList, nil) }

    /// Creates a request whose indexes refer to a fetch result of the folder's children, in the folder's order.
    public convenience init?(for collectionList: PHCollectionList, childCollections: PHFetchResult<PHCollection>) {
        self.init(changing: collectionList, childCollections)
    }

    /// Creates a request that changes the top level: the albums and folders that are in no folder, in the order of the
    /// fetch result.
    public init?(forTopLevelCollectionListUserCollections childCollections: PHFetchResult<PHCollection>) {
        id = .root
        list = nil
        placeholder = nil
        snapshot = childCollections
        ChangeRecorder.add(self)
    }

    private init?(changing list: PHCollectionList, _ snapshot: PHFetchResult<PHCollection>?) {
        guard list.canPerform(.rearrangeContent) else { return nil }
        id = list.id
        self.list = list
        placeholder = nil
        self.snapshot = snapshot
        ChangeRecorder.add(self)
    }

    private init(titled title: String) {
        let placeholder = ChangeRecorder.makePlaceholder(.collectionList)
        id = placeholder.id
        self.placeholder = placeholder
        list = nil
        snapshot = nil
        changes.title = title
        ChangeRecorder.add(self)
    }

    /// Requests a new folder.
    public class func creationRequestForCollectionList(withTitle title: String) -> PHCollectionListChangeRequest {
        PHCollectionListChangeRequest(titled: title)
    }

    /// Requests that folders are deleted with the albums and folders in them; assets are not deleted (S-80).
    public class func deleteCollectionLists(_ collectionLists: some Sequence<PHCollectionList>) {
        ChangeRecorder.add(DeletionRequest(ChangeRecorder.identifiers(collectionLists)) { .deleteLists($0) })
    }

    /// A placeholder with the identifier of the new folder.
    public var placeholderForCreatedCollectionList: PHObjectPlaceholder {
        guard let placeholder else { preconditionFailure("the request does not create a folder") }
        return placeholder
    }

    public var title: String {
        get { changes.title ?? list?.localizedTitle ?? "" }
        set { changes.title = newValue }
    }

    /// Appends albums and folders, which leave their previous folder.
    public func addChildCollections<Object: PHObject>(_ collections: some Sequence<Object>) {
        changes.add(ChangeRecorder.references(collections))
    }

    public func insertChildCollections<Object: PHObject>(_ collections: some Sequence<Object>, at indexes: IndexSet) {
        changes.edits.append(.insert(ChangeRecorder.references(collections), at: Array(indexes)))
    }

    public func removeChildCollections(_ collections: some Sequence<PHCollection>) {
        changes.remove(ChangeRecorder.identifiers(collections))
    }

    public func removeChildCollections(at indexes: IndexSet) { changes.edits.append(.removeAt(Array(indexes))) }

    public func replaceChildCollections<Object: PHObject>(
        at indexes: IndexSet,
        withChildCollections collections: some Sequence<Object>
    ) {
        changes.edits.append(.replace(at: Array(indexes), with: ChangeRecorder.references(collections)))
    }

    public func moveChildCollections(at indexes: IndexSet, to toIndex: Int) {
        changes.edits.append(.move(from: Array(indexes), to: toIndex))
    }

    func wireRequests(_ files: inout ChangeFiles) async throws(RPCError) -> [ChangeRequest] {
        if let placeholder {
            var create = ChangeRequest.CreateList(ref: placeholder.localIdentifier, title: title)
            create.id = placeholder.id
            guard !changes.edits.isEmpty else { return [.createList(create)] }
            let update = ChangeRequest.UpdateList(
                id: .placeholder(placeholder.localIdentifier),
                edits: changes.edits
            )
            return [.createList(create), .updateList(update)]
        }
        var update = ChangeRequest.UpdateList(id: .id(id), title: changes.title, edits: changes.edits)
        if changes.edits.contains(where: \.hasIndexes), let snapshot,
            case .remote(let fetch, let token) = snapshot.source
        {
            guard hasFolderOrder(fetch) else {
                throw ErrorCode.invalidOptions.error(
                    "indexes of \(id) refer to its own order; fetch its children without predicate, sort descriptors "
                        + "and offset"
                )
            }
            update.snapshot = token
        }
        return [.updateList(update)]
    }

    /// Returns true if a fetch returns the folder's children from the first one on, in the folder's order.
    private func hasFolderOrder(_ fetch: FetchDescription) -> Bool {
        var fetch = fetch
        fetch.limit = 0
        return fetch == FetchDescription(.children, in: id) || (id == .root && fetch == FetchDescription(.children))
    }
}
