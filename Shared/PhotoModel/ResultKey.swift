/// The position of an entity in the order of one fetch, as bytes. Keys compare bytewise in the order of the entities,
/// and end with the entity's identifier.
///
/// With the sorted keys of a result, an entity can be found, inserted and removed without reading any other entity;
/// only its own record is needed.
public struct ResultKey: Sendable, Hashable, Comparable {
    /// The encoded sort values, followed by the text of the identifier.
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// The entity; nil for bytes that are not a key.
    public var id: ObjectID? { Self.id(in: bytes) }

    /// Returns the identifier at the end of a key.
    public static func id(in bytes: some BidirectionalCollection<UInt8>) -> ObjectID? {
        Array(bytes.suffix(ObjectID.length)).withUnsafeBytes { ObjectID(utf8: $0) }
    }

    public static func < (left: ResultKey, right: ResultKey) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}

extension Fetch {
    /// The values that determine the order before the identifier, most significant first.
    public enum OrderValues: Sendable, Hashable {
        /// The values of the sort descriptors.
        case sorted([SortDescriptor])
        /// The position in the list of identifiers.
        case position
        /// The order key among the members of a collection or the children of a folder.
        case orderKey
        /// The capture date of an asset, or the first capture date of a moment or a moment list.
        case captureDate
        /// The date on which an asset was added or a collection was created.
        case date
    }

    /// The values that determine the order of this fetch (D10, S-21).
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

    /// Returns the key of an asset, which need not belong to the fetch.
    public func resultKey(of asset: Asset) -> ResultKey {
        let values: [PredicateValue] =
            switch orderValues {
            case .sorted(let sort): sort.map { asset.value(of: $0.key) }
            case .position: [position(of: asset.id)]
            case .orderKey: [memberKey(of: asset)]
            case .captureDate: [asset.creationDate.map { .integer($0) } ?? .null]
            case .date: [.integer(asset.addedDate)]
            }
        return resultKey(values, id: asset.id)
    }

    /// Returns the key of an album or a folder.
    public func resultKey(of collection: PhotoCollection) -> ResultKey {
        let values: [PredicateValue] =
            switch orderValues {
            case .sorted(let sort): sort.map { collection.value(of: $0.key) }
            case .position: [position(of: collection.id)]
            case .orderKey: [collection.parentKey.map { .text($0.text) } ?? .null]
            case .captureDate: [collection.startDate.map { .integer($0) } ?? .null]
            case .date: [.integer(collection.creationDate)]
            }
        return resultKey(values, id: collection.id)
    }

    /// Returns the key made from the values of ``orderValues``, as read from a database.
    public func resultKey(_ values: [PredicateValue], id: ObjectID) -> ResultKey {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.count * 9 + ObjectID.length)
        for (index, value) in values.enumerated() {
            Self.append(value, descending: sort.indices.contains(index) && !sort[index].ascending, to: &bytes)
        }
        id.withUTF8 { bytes.append(contentsOf: $0) }
        return ResultKey(bytes: bytes)
    }

    private func memberKey(of asset: Asset) -> PredicateValue {
        guard case .assets(.collection(let id)) = kind else { return .null }
        return asset.orderKey(in: id).map { .text($0.text) } ?? .null
    }

    private func position(of id: ObjectID) -> PredicateValue {
        switch kind {
        case .assets(.ids(let list)), .collectionIDs(let list), .listIDs(let list):
            list.position(of: id).map { .integer(Int64($0)) } ?? .null
        default: .null
        }
    }

    /// Appends the bytes of a value. Nulls sort last in both directions: the first byte marks them.
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
            // Both zeros are the same number; negative numbers sort in reverse.
            let bits = (number == 0 ? 0.0 : number).bitPattern
            append(bits >> 63 == 0 ? bits | (1 << 63) : ~bits)
        case .text(let text):
            // Text ends with 0 0, and a zero byte inside is written as 0 255, so that a prefix sorts before the longer
            // text.
            for byte in text.utf8 {
                bytes.append(byte ^ mask)
                if byte == 0 { bytes.append(0xFF ^ mask) }
            }
            bytes.append(mask)
            bytes.append(mask)
        }
    }
}
