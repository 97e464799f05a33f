/// An entity's place in the order of one fetch, as bytes: keys compare by their bytes as the entities do, and end with
/// the entity's identifier.
///
/// Whoever keeps the keys of a result in order can find, take out and put in an entity without looking at any other,
/// and needs nothing of it but its record.
public struct ResultKey: Sendable, Hashable, Comparable {
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// The entity; nil for bytes that no fetch made.
    public var id: ObjectID? { Self.id(in: bytes) }

    /// The identifier at the end of a key.
    public static func id(in bytes: some BidirectionalCollection<UInt8>) -> ObjectID? {
        ObjectID(String(decoding: bytes.suffix(ObjectID.length), as: UTF8.self))
    }

    public static func < (left: ResultKey, right: ResultKey) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}

extension Fetch {
    /// What the order looks at, most important first, before the identifier.
    public enum OrderValues: Sendable, Hashable {
        /// The values of the sort descriptors.
        case sorted([SortDescriptor])
        /// The place in the list of identifiers.
        case position
        /// The place among the members of a collection, or among the children of a folder.
        case orderKey
        /// The capture date of an asset, the first one of a moment or of a list of moments.
        case captureDate
        /// When it came into the library, or when it was made.
        case date
    }

    /// What decides the order of this fetch (spec D10, S-21).
    public var orderValues: OrderValues {
        guard sort.isEmpty else { return .sorted(sort) }
        switch kind {
        case .assets(.ids), .collectionIDs, .listIDs: return .position
        case .assets(.collection): return .orderKey
        case .children(let list): return MomentList(list) == nil ? .orderKey : .captureDate
        case .assets(.moment), .collections(.moment?, _), .lists(.momentList?, _): return .captureDate
        case .assets, .collections, .lists, .collectionsContaining, .listsContaining: return .date
        }
    }

    /// The asset's key, whether it belongs to the fetch or not.
    public func resultKey(of asset: Asset) -> ResultKey {
        let values: [PredicateValue] =
            switch orderValues {
            case .sorted(let sort): sort.map { asset.value(of: $0.key) }
            case .position: [place(of: asset.id)]
            case .orderKey: [memberKey(of: asset)]
            case .captureDate: [asset.creationDate.map { .integer($0) } ?? .null]
            case .date: [.integer(asset.addedDate)]
            }
        return resultKey(values, id: asset.id)
    }

    /// The key of an album or a folder.
    public func resultKey(of collection: PhotoCollection) -> ResultKey {
        let values: [PredicateValue] =
            switch orderValues {
            case .sorted(let sort): sort.map { collection.value(of: $0.key) }
            case .position: [place(of: collection.id)]
            case .orderKey: [collection.parentKey.map { .text($0.text) } ?? .null]
            case .captureDate: [collection.startDate.map { .integer($0) } ?? .null]
            case .date: [.integer(collection.creationDate)]
            }
        return resultKey(values, id: collection.id)
    }

    /// The key from the values that ``orderValues`` names, as a database holds them.
    public func resultKey(_ values: [PredicateValue], id: ObjectID) -> ResultKey {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.count * 9 + ObjectID.length)
        for (index, value) in values.enumerated() {
            Self.append(value, descending: sort.indices.contains(index) && !sort[index].ascending, to: &bytes)
        }
        bytes.append(contentsOf: id.text.utf8)
        return ResultKey(bytes: bytes)
    }

    private func memberKey(of asset: Asset) -> PredicateValue {
        guard case .assets(.collection(let id)) = kind else { return .null }
        return asset.orderKey(in: id).map { .text($0.text) } ?? .null
    }

    private func place(of id: ObjectID) -> PredicateValue {
        switch kind {
        case .assets(.ids(let list)), .collectionIDs(let list), .listIDs(let list):
            list.position(of: id).map { .integer(Int64($0)) } ?? .null
        default: .null
        }
    }

    /// Missing values last in both directions: a byte before the value says whether there is one.
    private static func append(_ value: PredicateValue, descending: Bool, to bytes: inout [UInt8]) {
        guard value != .null else { return bytes.append(1) }
        bytes.append(0)
        let mask: UInt8 = descending ? 0xFF : 0
        func append(_ number: UInt64) {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift) ^ mask)
            }
        }
        switch value {
        case .null: break
        case .integer(let number): append(UInt64(bitPattern: number) ^ (1 << 63))
        case .number(let number):
            // Both zeros are one number; negative ones sort the other way round.
            let bits = (number == 0 ? 0.0 : number).bitPattern
            append(bits >> 63 == 0 ? bits | (1 << 63) : ~bits)
        case .text(let text):
            // Ends with 0 0; a zero byte within is 0 255, so that a beginning sorts before what it begins.
            for byte in text.utf8 {
                bytes.append(byte ^ mask)
                if byte == 0 { bytes.append(0xFF ^ mask) }
            }
            bytes.append(mask)
            bytes.append(mask)
        }
    }
}
