/// `PHAssetEditOperation` (spec T-18).
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

/// `PHCollectionEditOperation` (spec T-18).
public enum CollectionEditOperation: String, NumberedName {
    /// Delete what it holds; take out; put in what is elsewhere; make new things in it; put in another order.
    case deleteContent, removeContent, addContent, createContent, rearrangeContent
    /// Delete and rename the container itself.
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
    /// What may be done to it: `canPerformEditOperation:`. Nothing to what was synced from elsewhere (spec T-07).
    public var can: [AssetEditOperation] {
        sourceType == .typeiTunesSynced ? [] : AssetEditOperation.allCases
    }

    /// Whether it may be put into albums (spec T-17).
    public var canJoinCollections: Bool { sourceType == .typeUserLibrary }
}

extension AssetCollection {
    /// What may be done to it. What a derived collection holds may be deleted from the library, and nothing else.
    public var can: [CollectionEditOperation] {
        if id.isTransient { return [] }
        return switch type {
        case .album: CollectionEditOperation.allCases
        case .smartAlbum, .moment: [.deleteContent]
        }
    }
}

extension CollectionList {
    /// What may be done to it. The root has neither name nor end (spec T-12); lists of moments follow from the assets.
    public var can: [CollectionEditOperation] {
        if id.isTransient || type != .folder { return [] }
        return id == .root
            ? CollectionEditOperation.allCases.filter { $0 != .delete && $0 != .rename }
            : CollectionEditOperation.allCases
    }
}
