/// The properties of a request by which the catalog decides how to perform it.
extension ChangeRequest {
    /// True if the request brings bytes, which are stored before its transaction: a new asset, or an edit.
    package var hasBytes: Bool {
        switch self {
        case .createAsset, .editAsset: true
        default: false
        }
    }

    /// The uploads that deliver some of its bytes.
    package var uploads: [String] {
        switch self {
        case .createAsset(let request):
            (request.resources + [request.sidecar, request.edit?.render].compactMap { $0 }).compactMap(\.upload)
        case .editAsset(let request): [request.render, request.pairedVideo].compactMap { $0?.upload }
        default: []
        }
    }

    /// True if the request names members by index in an earlier result.
    package var hasSnapshot: Bool {
        switch self {
        case .updateCollection(let request): request.snapshot != nil
        case .updateList(let request): request.snapshot != nil
        default: false
        }
    }

    /// True if something that exists would be deleted, trashed, edited or reverted, or leave its album or folder.
    package var isDestructive: Bool {
        switch self {
        case .deleteAssets, .trashAssets, .editAsset, .revertAsset, .deleteCollections, .deleteLists: true
        case .updateCollection(let request): !request.remove.isEmpty || request.edits.contains(where: \.removesMembers)
        case .updateList(let request): request.edits.contains(where: \.removesMembers)
        case .createAsset, .updateAsset, .createCollection, .restoreAssets, .createList, .acceptEdit, .failEdit: false
        }
    }

    // MARK: Objects

    /// The existing objects that the request changes; of an album or a folder only itself, not its members.
    package var changedObjects: [ObjectID] {
        switch self {
        case .updateAsset(let request): [request.id].compactMap(\.storedID)
        case .deleteAssets(let request), .deleteCollections(let request), .deleteLists(let request),
            .trashAssets(let request), .restoreAssets(let request):
            request.ids
        case .editAsset(let request): [request.id]
        case .revertAsset(let request): [request.id]
        case .updateCollection(let request): [request.id].compactMap(\.storedID)
        case .updateList(let request): [request.id].compactMap(\.storedID)
        case .createAsset, .createCollection, .createList, .acceptEdit, .failEdit: []
        }
    }

    /// The stored assets that the request names, except those in the operations on an album or a folder. A client with
    /// a limited grant may only name assets of its list, so the switch has no default: a new kind of request has to
    /// decide.
    package var namedAssets: [ObjectID] {
        switch self {
        case .updateAsset(let request): [request.id].compactMap(\.storedID)
        case .editAsset(let request): [request.id]
        case .revertAsset(let request): [request.id]
        case .deleteAssets(let request), .trashAssets(let request), .restoreAssets(let request): request.ids
        case .createCollection(let request): request.add.compactMap(\.storedID)
        case .updateCollection(let request): request.add.compactMap(\.storedID) + request.remove
        case .createAsset, .deleteCollections, .createList, .updateList, .deleteLists: []
        // Neither changes an asset. The asset of an accepted edit is checked when the edit is applied.
        case .acceptEdit, .failEdit: []
        }
    }

    /// The named assets that are always read; of the assets to remove from an album only its members are read.
    package var assetsToRead: [ObjectID] {
        if case .updateCollection(let request) = self { return request.add.compactMap(\.storedID) }
        return namedAssets
    }

    /// The number of objects that the operations on an album or a folder name.
    package var editMemberCount: Int {
        switch self {
        case .updateCollection(let request): request.edits.reduce(0) { $0 + $1.memberCount }
        case .updateList(let request): request.edits.reduce(0) { $0 + $1.memberCount }
        default: 0
        }
    }
}

extension MemberEdit {
    /// True if members leave the list.
    fileprivate var removesMembers: Bool {
        switch self {
        case .remove, .removeAt, .replace: true
        case .add, .insert, .move: false
        }
    }

    /// The number of objects that the operation names by identifier or placeholder.
    fileprivate var memberCount: Int {
        switch self {
        case .add(let members), .insert(let members, _), .replace(_, let members): members.count
        case .remove(let ids): ids.count
        case .move, .removeAt: 0
        }
    }
}

extension ObjectReference {
    /// The identifier; nil for a placeholder.
    fileprivate var storedID: ObjectID? {
        guard case .id(let id) = self else { return nil }
        return id
    }
}
