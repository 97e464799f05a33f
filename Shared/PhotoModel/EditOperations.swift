/// PhotoKit's `PHAssetEditOperation` (T-18).
public enum AssetEditOperation: String, NumberedName {
    case delete, content, properties

    public var number: Int {
        switch self {
        case .delete: 1
        case .content: 2
        case .properties: 3
        }
    }
}

/// PhotoKit's `PHCollectionEditOperation` (T-18).
public enum CollectionEditOperation: String, NumberedName {
    /// Deletes members from the library; removes members; adds existing objects; creates objects in it; reorders
    /// members.
    case deleteContent, removeContent, addContent, createContent, rearrangeContent
    /// Deletes or renames the container itself.
    case delete, rename

    public var number: Int {
        switch self {
        case .deleteContent: 1
        case .removeContent: 2
        case .addContent: 3
        case .createContent: 4
        case .rearrangeContent: 5
        case .delete: 6
        case .rename: 7
        }
    }
}

extension Asset {
    /// The operations that the asset allows: `canPerformEditOperation:`. A synced asset allows none (T-07). An asset in
    /// the trash allows the same operations as before.
    public var allowedOperations: [AssetEditOperation] {
        sourceType == .typeiTunesSynced ? [] : AssetEditOperation.allCases
    }

    /// True if the asset may be added to albums (T-17).
    public var canJoinCollections: Bool { sourceType == .typeUserLibrary }
}

extension AssetCollection {
    /// The operations that the collection allows. Members of a derived collection may only be deleted from the
    /// library.
    public var allowedOperations: [CollectionEditOperation] {
        if id.isTransient { return [] }
        return switch type {
        case .album: CollectionEditOperation.allCases
        case .smartAlbum, .moment: [.deleteContent]
        }
    }
}

extension CollectionList {
    /// The operations that the list allows. The root can be neither renamed nor deleted (T-12); moment lists are
    /// derived from the assets.
    public var allowedOperations: [CollectionEditOperation] {
        if id.isTransient || type != .folder { return [] }
        return id == .root
            ? CollectionEditOperation.allCases.filter { $0 != .delete && $0 != .rename }
            : CollectionEditOperation.allCases
    }
}
