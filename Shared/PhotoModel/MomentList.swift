/// A list of moments: PhotoKit's moment list (S-07).
public enum MomentList: Sendable, Hashable {
    /// One calendar month (counted from year 0) within ten degrees.
    case cluster(month: Int, cell: PlaceCell?)
    /// One calendar year.
    case year(Int)

    /// The number that, together with the kind, identifies it in identifiers and in the database.
    public var key: Int64 {
        switch self {
        case .cluster(let month, let cell): Int64(month + Self.keyOffset) << 32 | Int64(cell?.number ?? 0)
        case .year(let year): Int64(year + Self.keyOffset)
        }
    }

    /// Added to months and years, so that no key is negative.
    private static let keyOffset = 1 << 20

    /// PhotoKit's subtype.
    public var subtype: ListSubtype {
        switch self {
        case .cluster: .momentListCluster
        case .year: .momentListYear
        }
    }

    /// The identifier, which is the same in every library.
    public var id: ObjectID {
        switch self {
        case .cluster: ObjectID(.collectionList, rule: .cluster, key: UInt64(key))
        case .year: ObjectID(.collectionList, rule: .year, key: UInt64(key))
        }
    }

    /// Decodes an identifier; nil if it does not identify a moment list.
    public init?(_ id: ObjectID) {
        guard id.kind == .collectionList, let (rule, key) = id.derived else { return nil }
        switch rule {
        case .cluster:
            let number = Int(key & 0xFFFF_FFFF)
            let cell = PlaceCell(number: number, degrees: 10)
            guard key >> 32 < 1 << 24, number == 0 || cell != nil else { return nil }
            self = .cluster(month: Int(key >> 32) - Self.keyOffset, cell: cell)
        case .year:
            guard key < 1 << 24 else { return nil }
            self = .year(Int(key) - Self.keyOffset)
        case .smartAlbum, .moment, .transient: return nil
        }
    }

    /// The title: for example `2024-05` for a cluster, `2024` for a year.
    public var title: String {
        switch self {
        case .cluster(let month, _):
            let (year, rest) = Timestamp.floorDivide(Int64(month), 12)
            return Timestamp.padded(year, 4) + "-" + Timestamp.padded(rest + 1, 2)
        case .year(let year): return Timestamp.padded(Int64(year), 4)
        }
    }
}
