/// An album or a folder: PhotoKit's `PHCollection` (S-04).
public enum PhotoCollection: Sendable, Hashable, PredicateSubject {
    case collection(AssetCollection)
    case list(CollectionList)

    /// The identifier.
    public var id: ObjectID {
        switch self {
        case .collection(let collection): collection.id
        case .list(let list): list.id
        }
    }

    /// The folder that contains it; nil for the root and for derived collections.
    public var parent: ObjectID? {
        switch self {
        case .collection(let collection): collection.parent
        case .list(let list): list.parent
        }
    }

    /// The position in ``parent``; nil if that is nil.
    public var parentKey: OrderKey? {
        switch self {
        case .collection(let collection): collection.parentKey
        case .list(let list): list.parentKey
        }
    }

    /// Microseconds since 1970.
    public var creationDate: Int64 {
        switch self {
        case .collection(let collection): collection.creationDate
        case .list(let list): list.creationDate
        }
    }

    /// The earliest capture date of the members, in microseconds since 1970; nil if there is none.
    public var startDate: Int64? {
        switch self {
        case .collection(let collection): collection.startDate
        case .list(let list): list.startDate
        }
    }

    public var location: Location? { nil }

    public func texts(of key: PredicateKey) -> [String] { [] }

    public func value(of key: PredicateKey) -> PredicateValue {
        switch self {
        case .collection(let collection): collection.value(of: key)
        case .list(let list): list.value(of: key)
        }
    }
}
