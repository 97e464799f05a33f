/// The contribution of one asset to the properties of its moment.
public struct MomentMember: Sendable, Hashable {
    /// The moment.
    public let moment: Moment
    /// The capture date in microseconds since 1970.
    public let creationDate: Int64
    /// The date of the import in microseconds since 1970.
    public let addedDate: Int64

    public init(moment: Moment, creationDate: Int64, addedDate: Int64) {
        self.moment = moment
        self.creationDate = creationDate
        self.addedDate = addedDate
    }

    /// Creates the contribution of an asset; nil if it is in no moment.
    public init?(_ asset: Asset) {
        guard let moment = asset.moment, let creationDate = asset.creationDate else { return nil }
        self.init(moment: moment, creationDate: creationDate, addedDate: asset.addedDate)
    }
}

extension MomentMember {
    /// The bytes of one asset in ``bytes(of:)``.
    private static let length = ObjectID.length + 24

    /// Returns the members of moments one after the other, for long lists: for each asset the text of its identifier,
    /// the key of its moment, its capture date and the date of its import, as integers of eight bytes in big-endian
    /// order.
    public static func bytes(of members: some Collection<(id: ObjectID, member: MomentMember)>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(members.count * length)
        for (id, member) in members {
            id.withUTF8 { bytes.append(contentsOf: $0) }
            for number in [member.moment.key, member.creationDate, member.addedDate] {
                withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
            }
        }
        return bytes
    }

    /// Returns the members of ``bytes(of:)``; nil for other bytes.
    public static func list(in bytes: [UInt8]) -> [ObjectID: MomentMember]? {
        guard bytes.count.isMultiple(of: length) else { return nil }
        var members: [ObjectID: MomentMember] = [:]
        members.reserveCapacity(bytes.count / length)
        for start in stride(from: 0, to: bytes.count, by: length) {
            let end = start + ObjectID.length
            let numbers = stride(from: end, to: start + length, by: 8).map { at in
                bytes[at..<at + 8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
            }
            guard let id = ObjectID.list(in: Array(bytes[start..<end]))?.first,
                let moment = Moment(key: numbers[0])
            else { return nil }
            members[id] = MomentMember(moment: moment, creationDate: numbers[1], addedDate: numbers[2])
        }
        return members
    }
}

// A limited view has the moments of the assets on its list, with counts and dates of these assets alone. The library's
// own moments include other assets.

extension Moment {
    /// Returns the collection in a view that has only these of its assets; nil if there are none.
    ///
    /// It was created with the first of these assets and changed with the last.
    public func collection(of members: some Sequence<MomentMember>) -> AssetCollection? {
        var collection = AssetCollection(self, revision: Revision(0))
        for member in members { collection.add(member) }
        return collection.estimatedAssetCount == 0 ? nil : collection
    }
}

extension AssetCollection {
    /// Adds an asset to the properties of a moment.
    public mutating func add(_ member: MomentMember) {
        let count = estimatedAssetCount ?? 0
        if count == 0 { (creationDate, modificationDate) = (.max, .min) }
        estimatedAssetCount = count + 1
        startDate = min(startDate ?? .max, member.creationDate)
        endDate = max(endDate ?? .min, member.creationDate)
        creationDate = min(creationDate, member.addedDate)
        modificationDate = max(modificationDate, member.addedDate)
    }

    /// Removes an asset from the properties of a moment.
    ///
    /// - Returns: false if it has the first or the last date: the properties then have to be computed from the others
    public mutating func remove(_ member: MomentMember) -> Bool {
        guard let count = estimatedAssetCount, count > 1, startDate != member.creationDate,
            endDate != member.creationDate, creationDate != member.addedDate, modificationDate != member.addedDate
        else { return false }
        estimatedAssetCount = count - 1
        return true
    }
}

extension MomentList {
    /// Returns the list in a view that has only these of its moments; nil if there are none.
    public func collectionList(of moments: some Sequence<AssetCollection>) -> CollectionList? {
        var list = CollectionList(self, revision: Revision(0))
        for moment in moments {
            if list.childCount == 0 { (list.creationDate, list.modificationDate) = (.max, .min) }
            list.childCount += 1
            list.startDate = [list.startDate, moment.startDate].compactMap { $0 }.min()
            list.endDate = [list.endDate, moment.endDate].compactMap { $0 }.max()
            list.creationDate = min(list.creationDate, moment.creationDate)
            list.modificationDate = max(list.modificationDate, moment.modificationDate)
        }
        return list.childCount > 0 ? list : nil
    }
}
