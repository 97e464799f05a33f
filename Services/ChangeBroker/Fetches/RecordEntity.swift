import PhotoModel

/// One entity of a change record.
enum RecordEntity: Sendable {
    case asset(EntityStates<Asset>)
    case collection(EntityStates<AssetCollection>)
    case list(EntityStates<CollectionList>)

    var id: ObjectID {
        switch self {
        case .asset(let states): states.id
        case .collection(let states): states.id
        case .list(let states): states.id
        }
    }

    /// The collection or list before and after the transaction; nil for an asset.
    var facts: (before: PhotoCollection?, after: PhotoCollection?) {
        switch self {
        case .asset: (nil, nil)
        case .collection(let states): states.both(PhotoCollection.collection)
        case .list(let states): states.both(PhotoCollection.list)
        }
    }

    /// See ``EntityStates/isDeleted``.
    var isDeleted: Bool? {
        switch self {
        case .asset(let states): states.isDeleted
        case .collection(let states): states.isDeleted
        case .list(let states): states.isDeleted
        }
    }

    /// The texts that predicates can test, by key, before and after the transaction together.
    var textSizes: [PredicateKey: TextSize] {
        var sizes: [PredicateKey: TextSize] = [:]
        switch self {
        case .asset(let states): states.each { $0.addTextSizes(of: .asset, to: &sizes) }
        case .collection(let states): states.each { $0.addTextSizes(of: .assetCollection, to: &sizes) }
        case .list(let states): states.each { $0.addTextSizes(of: .collectionList, to: &sizes) }
        }
        return sizes
    }
}
