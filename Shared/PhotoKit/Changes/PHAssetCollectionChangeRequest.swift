public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// The members of an album or folder that a request adds, removes or moves.
final class MemberChanges: @unchecked Sendable {
    var title: String?
    var edits: [MemberEdit] = []

    /// The maximum number of members in one edit.
    private static let maxMembers = 1000

    /// Appends members. Successive calls become one edit if possible, because a request has at most 100 edits.
    func add(_ members: [ObjectReference]) {
        guard case .add(let before)? = edits.last, before.count + members.count <= Self.maxMembers,
            Set(before).isDisjoint(with: members)
        else { return edits.append(.add(members)) }
        edits[edits.count - 1] = .add(before + members)
    }

    /// Removes members. Successive calls become one edit, as for ``add(_:)``.
    func remove(_ members: [ObjectID]) {
        guard case .remove(let before)? = edits.last, before.count + members.count <= Self.maxMembers,
            Set(before).isDisjoint(with: members)
        else { return edits.append(.remove(members)) }
        edits[edits.count - 1] = .remove(before + members)
    }
}

/// A request to create, change or delete albums, inside a change block: `PHAssetCollectionChangeRequest` (S-80 to
/// S-84).
///
/// Objects are passed as any sequence: an array, or a fetch result. If a fetch result cannot be read to its end, the
/// whole block fails with the reason.
public final class PHAssetCollectionChangeRequest: RecordedChange, @unchecked Sendable {
    private let collection: PHAssetCollection?
    private let placeholder: PHObjectPlaceholder?
    /// The result to which indexes refer.
    private let snapshot: PHFetchResult<PHAsset>?
    private let changes = MemberChanges()

    /// Creates a request that changes an album; nil if the library allows no change of it.
    public convenience init?(for assetCollection: PHAssetCollection) { self.init(changing: assetCollection, nil) }

    /// Creates a request whose indexes refer to a fetch result of the album's assets (T-13). Later changes by others
    /// are preserved.
    public convenience init?(for assetCollection: PHAssetCollection, assets: PHFetchResult<PHAsset>) {
        self.init(changing: assetCollection, assets)
    }

    private init?(changing collection: PHAssetCollection, _ snapshot: PHFetchResult<PHAsset>?) {
        guard PHCollectionEditOperation.allCases.contains(where: { $0 != .deleteContent && collection.canPerform($0) })
        else { return nil }
        self.collection = collection
        self.snapshot = snapshot
        placeholder = nil
        ChangeRecorder.add(self)
    }

    private init(titled title: String) {
        collection = nil
        snapshot = nil
        placeholder = ChangeRecorder.makePlaceholder(.assetCollection)
        changes.title = title
        ChangeRecorder.add(self)
    }

    /// Requests a new album.
    public class func creationRequestForAssetCollection(withTitle title: String) -> PHAssetCollectionChangeRequest {
        PHAssetCollectionChangeRequest(titled: title)
    }

    /// Requests that albums are deleted; their assets are not.
    public class func deleteAssetCollections(_ assetCollections: some Sequence<PHAssetCollection>) {
        ChangeRecorder.add(DeletionRequest(ChangeRecorder.identifiers(assetCollections)) { .deleteCollections($0) })
    }

    /// A placeholder with the identifier of the new album. For a request about an existing album, reading it stops the
    /// program: PhotoKit's property is not optional.
    public var placeholderForCreatedAssetCollection: PHObjectPlaceholder {
        guard let placeholder else { preconditionFailure("the request does not create an album") }
        return placeholder
    }

    public var title: String {
        get { changes.title ?? collection?.localizedTitle ?? "" }
        set { changes.title = newValue }
    }

    /// Appends assets or placeholders. Those that are members already keep their position.
    public func addAssets<Object: PHObject>(_ assets: some Sequence<Object>) {
        changes.add(ChangeRecorder.references(assets))
    }

    /// Inserts assets, each at its own index in the resulting order.
    public func insertAssets<Object: PHObject>(_ assets: some Sequence<Object>, at indexes: IndexSet) {
        changes.edits.append(.insert(ChangeRecorder.references(assets), at: Array(indexes)))
    }

    /// Removes assets from the album. Assets that are not members are ignored.
    public func removeAssets(_ assets: some Sequence<PHAsset>) {
        changes.remove(ChangeRecorder.identifiers(assets))
    }

    public func removeAssets(at indexes: IndexSet) { changes.edits.append(.removeAt(Array(indexes))) }

    public func replaceAssets<Object: PHObject>(at indexes: IndexSet, withAssets assets: some Sequence<Object>) {
        changes.edits.append(.replace(at: Array(indexes), with: ChangeRecorder.references(assets)))
    }

    /// Removes the assets at some indexes, then inserts them together at an index among the others.
    public func moveAssets(at fromIndexes: IndexSet, to toIndex: Int) {
        changes.edits.append(.move(from: Array(fromIndexes), to: toIndex))
    }

    func wireRequests(_ files: inout ChangeFiles) async throws(RPCError) -> [ChangeRequest] {
        if let placeholder {
            var create = ChangeRequest.CreateCollection(ref: placeholder.localIdentifier, title: title)
            create.id = placeholder.id
            guard !changes.edits.isEmpty else { return [.createCollection(create)] }
            let update = ChangeRequest.UpdateCollection(
                id: .placeholder(placeholder.localIdentifier),
                edits: changes.edits
            )
            return [.createCollection(create), .updateCollection(update)]
        }
        guard let collection else { return [] }
        var update = ChangeRequest.UpdateCollection(id: .id(collection.id), title: changes.title, edits: changes.edits)
        if changes.edits.contains(where: \.hasIndexes), let snapshot,
            case .remote(let fetch, let token) = snapshot.source
        {
            update.snapshot = token
            if fetch != FetchDescription(.assets, in: collection.id) { update.snapshotFetch = fetch }
        }
        return [.updateCollection(update)]
    }
}
