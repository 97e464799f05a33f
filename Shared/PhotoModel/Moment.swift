/// A moment: the assets of one local calendar day within one square degree (S-07).
///
/// Like every derived collection it is determined by the properties of each asset. It contains assets with a capture
/// date that are neither hidden nor in the trash (D7), from every source. Assets without a location form a moment of
/// their own for each day. Each moment is in one ``MomentList/cluster(month:cell:)`` and one ``MomentList/year(_:)``.
public struct Moment: Sendable, Hashable, Comparable {
    /// Days since 1970-01-01 in the local calendar.
    public let day: Int
    /// The cell of one degree; nil for assets without a location.
    public let cell: PlaceCell?

    init(day: Int, cell: PlaceCell?) {
        self.day = day
        self.cell = cell
    }

    /// The number that identifies it in identifiers and in the database. It increases with the day.
    public var key: Int64 { Int64(day + Self.daysBefore1970) << 32 | Int64(cell?.number ?? 0) }

    /// Decodes a ``key``; nil for an invalid number.
    public init?(key: Int64) {
        let number = Int(key & 0xFFFF_FFFF)
        guard key >= 0, key >> 32 < 2 * Int64(Self.daysBefore1970),
            number == 0 || PlaceCell(number: number) != nil
        else { return nil }
        self.init(day: Int(key >> 32) - Self.daysBefore1970, cell: PlaceCell(number: number))
    }

    /// The number of days before 1970 that can be represented: about 45,000 years.
    private static let daysBefore1970 = 1 << 24

    /// The identifier, which is the same in every library.
    public var id: ObjectID { ObjectID(.assetCollection, rule: .moment, key: UInt64(key)) }

    private var date: (year: Int64, month: Int64, day: Int64) { Timestamp.date(daysSince1970: Int64(day)) }

    /// The title, for example `2024-05-01`.
    public var title: String {
        let date = date
        return [Timestamp.padded(date.year, 4), Timestamp.padded(date.month, 2), Timestamp.padded(date.day, 2)]
            .joined(separator: "-")
    }

    /// The moment lists that contain it: its cluster, then its year.
    public var lists: [MomentList] { [cluster, year] }

    /// The list for its calendar month within ten degrees.
    public var cluster: MomentList {
        let date = date
        return .cluster(month: Int(date.year * 12 + date.month - 1), cell: cell?.coarse)
    }

    /// The list for its calendar year.
    public var year: MomentList { .year(Int(date.year)) }

    public static func < (left: Moment, right: Moment) -> Bool { left.key < right.key }
}

extension Asset {
    /// The moment to which the asset belongs; nil without a capture date, or if the asset is hidden or in the trash.
    public var moment: Moment? {
        guard let creationDate, !isHidden, trashedDate == nil else { return nil }
        let local = creationDate &+ Int64(creationOffset ?? 0) * 1_000_000
        let day = Timestamp.floorDivide(local, 86_400_000_000).quotient
        return Moment(day: Int(day), cell: location.map { PlaceCell($0, degrees: 1) })
    }
}

/// A collection whose identifier determines its members.
public enum DerivedCollection: Sendable, Hashable {
    case smartAlbum(SmartAlbum)
    case moment(Moment)

    /// Decodes an identifier; nil if it does not identify a derived collection.
    public init?(_ id: ObjectID) {
        guard id.kind == .assetCollection, let (rule, key) = id.derived else { return nil }
        switch rule {
        case .smartAlbum:
            guard let album = Int(exactly: key).flatMap(SmartAlbum.init(rawValue:)) else { return nil }
            self = .smartAlbum(album)
        case .moment:
            guard let moment = Int64(exactly: key).flatMap(Moment.init(key:)) else { return nil }
            self = .moment(moment)
        case .cluster, .year, .transient: return nil
        }
    }
}

extension AssetCollection {
    /// Creates the collection of a moment, without members.
    public init(_ moment: Moment, revision: Revision) {
        self.init(id: moment.id, revision: revision)
        type = .moment
        subtype = .any
        title = moment.title
        approximateLocation = moment.cell?.centre
        estimatedAssetCount = 0
    }
}

extension CollectionList {
    /// Creates the entity of a moment list, without moments.
    public init(_ list: MomentList, revision: Revision) {
        self.init(id: list.id, revision: revision)
        type = .momentList
        subtype = list.subtype
        title = list.title
    }
}

extension ObjectID {
    /// Returns a new identifier for a transient collection or list of a client (S-30, S-31).
    public static func transient(_ kind: ObjectKind, using random: inout some RandomNumberGenerator) -> ObjectID {
        ObjectID(kind, rule: .transient, key: UInt64.random(in: .min ... .max, using: &random))
    }

    /// True if it identifies a transient collection or list.
    public var isTransient: Bool { derived?.rule == .transient }
}
