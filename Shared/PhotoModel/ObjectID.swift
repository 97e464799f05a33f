public import JSONValue

/// The kind of an entity (S-01, T-37).
public enum ObjectKind: String, Sendable, CaseIterable {
    case asset
    case assetCollection
    case collectionList

    /// The first letter of identifiers of this kind, in ASCII.
    var letter: UInt8 {
        switch self {
        case .asset: UInt8(ascii: "a")
        case .assetCollection: UInt8(ascii: "c")
        case .collectionList: UInt8(ascii: "l")
        }
    }

    fileprivate init?(letter: UInt8) {
        switch letter {
        case UInt8(ascii: "a"): self = .asset
        case UInt8(ascii: "c"): self = .assetCollection
        case UInt8(ascii: "l"): self = .collectionList
        default: return nil
        }
    }
}

/// The stable identifier of an entity: PhotoKit's `localIdentifier` (S-01).
///
/// A letter for the kind and 26 digits of Crockford's base 32 that encode 48 bits of time and 80 random bits.
/// Identifiers sort by creation time, which keeps indexes compact, and are never generated twice. Opaque to clients.
///
/// A value of fixed size: a change copies, compares and hashes identifiers many times, and needs their text only where
/// they are stored or sent.
public struct ObjectID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The digits as a number of 130 bits, of which the topmost two are zero in generated identifiers.
    private let high: UInt64
    private let low: UInt64
    private let top: UInt8
    /// The letter of the kind: comparing enumerations with texts as raw values would compare the texts.
    private let letter: UInt8

    /// The length of the text of every identifier, in bytes.
    public static let length = 27

    private init(_ kind: ObjectKind, top: UInt8 = 0, high: UInt64, low: UInt64) {
        self.letter = kind.letter
        self.top = top
        self.high = high
        self.low = low
    }

    /// Generates an identifier.
    ///
    /// - Parameters:
    ///   - kind: the kind of the entity
    ///   - milliseconds: the time since 1970, of which the low 48 bits are used
    ///   - random: the generator of the other 80 bits
    public init(_ kind: ObjectKind, milliseconds: Int64, using random: inout some RandomNumberGenerator) {
        let high = UInt64(bitPattern: milliseconds) << 16 | UInt64(UInt16.random(in: .min ... .max, using: &random))
        self.init(kind, high: high, low: UInt64.random(in: .min ... .max, using: &random))
    }

    /// Creates the identifier of a derived object, which encodes the object itself.
    ///
    /// The time bits are zero, which no generated identifier has.
    init(_ kind: ObjectKind, rule: DerivedRule, key: UInt64) {
        self.init(kind, high: UInt64(rule.rawValue), low: key)
    }

    /// The object that a derived identifier encodes; nil for other identifiers.
    var derived: (rule: DerivedRule, key: UInt64)? {
        guard top == 0, high >> 16 == 0, let rule = DerivedRule(rawValue: UInt16(truncatingIfNeeded: high)) else {
            return nil
        }
        return (rule, low)
    }

    /// The time at which it was generated, in milliseconds since 1970; 0 for a derived identifier.
    public var milliseconds: Int64 { Int64(high >> 16) }

    /// The kind of the entity.
    public var kind: ObjectKind { ObjectKind(letter: letter) ?? .collectionList }

    /// The root folder (T-12).
    public static let root = ObjectID(.collectionList, high: 0, low: 0)
    /// No entity: the value in a table before its fields are decoded.
    public static let none = ObjectID(.asset, high: 0, low: 0)

    /// Compares the bytes of the text. The last tie-break of every order.
    public static func < (left: ObjectID, right: ObjectID) -> Bool {
        // The digits are in ascending order in ASCII too.
        (left.letter, left.top, left.high, left.low) < (right.letter, right.top, right.high, right.low)
    }

    public func hash(into hasher: inout Hasher) {
        // Two objects of different kinds almost never have the same number.
        hasher.combine(high)
        hasher.combine(low)
    }

    // MARK: Text

    private static let digits = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
    /// The value of each byte that is a digit; 255 for others.
    private static let values: [UInt8] = (0...UInt8.max).map { byte in
        digits.firstIndex(of: byte).map { UInt8($0) } ?? .max
    }

    /// Parses an identifier; `nil` if the text cannot be one.
    public init?(_ text: String) {
        var text = text
        guard let id = text.withUTF8({ ObjectID(utf8: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = id
    }

    /// Parses the bytes of a text; `nil` if they cannot be an identifier.
    public init?(utf8 bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.length, let kind = ObjectKind(letter: bytes[0]) else { return nil }
        var (top, high, low): (UInt64, UInt64, UInt64) = (0, 0, 0)
        let isNumber = Self.values.withUnsafeBufferPointer { values in
            for position in 1..<Self.length {
                let digit = values[Int(bytes[position])]
                guard digit != .max else { return false }
                top = top << 5 | high >> 59
                high = high << 5 | low >> 59
                low = low << 5 | UInt64(digit)
            }
            return true
        }
        guard isNumber else { return nil }
        self.init(kind, top: UInt8(truncatingIfNeeded: top), high: high, low: low)
    }

    /// The text of the identifier, ``length`` ASCII characters.
    public var text: String { withUTF8 { String(decoding: $0, as: UTF8.self) } }

    public var description: String { text }

    /// Calls a closure with the bytes of the text, which are valid until it returns.
    public func withUTF8<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
        try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.length) { bytes in
            bytes[0] = letter
            Self.digits.withUnsafeBufferPointer { digits in
                var (top, high, low) = (UInt64(top), high, low)
                for position in (1..<Self.length).reversed() {
                    bytes[position] = digits[Int(low & 31)]
                    low = low >> 5 | high << 59
                    high = high >> 5 | top << 59
                    top >>= 5
                }
            }
            return try body(UnsafeBufferPointer(bytes))
        }
    }

    /// Returns the texts of identifiers one after the other, for long lists.
    public static func bytes(of ids: some Collection<ObjectID>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(ids.count * length)
        for id in ids { id.withUTF8 { bytes.append(contentsOf: $0) } }
        return bytes
    }

    /// Returns the identifiers of ``bytes(of:)``; nil for other bytes.
    public static func list(in bytes: [UInt8]) -> [ObjectID]? {
        guard bytes.count.isMultiple(of: length) else { return nil }
        return bytes.withUnsafeBytes { bytes in
            var ids: [ObjectID] = []
            ids.reserveCapacity(bytes.count / length)
            for start in stride(from: 0, to: bytes.count, by: length) {
                guard let id = ObjectID(utf8: UnsafeRawBufferPointer(rebasing: bytes[start..<start + length])) else {
                    return nil
                }
                ids.append(id)
            }
            return ids
        }
    }
}

extension JSONWriter {
    /// Writes the text of an identifier.
    public mutating func write(_ id: ObjectID) { id.withUTF8 { write(text: $0) } }
}

/// The kind of a derived object. The raw value is part of identifiers.
enum DerivedRule: UInt16 {
    case smartAlbum = 1
    case moment = 2
    case cluster = 3
    case year = 4
    /// A transient collection or list of a client; never stored.
    case transient = 5
}

extension JSONType where Value == ObjectID {
    /// Returns the type of an identifier of one of the given kinds.
    public static func id(_ kinds: ObjectKind...) -> JSONType {
        let allowed = kinds.isEmpty ? ObjectKind.allCases : kinds
        let words = allowed.map(\.rawValue).joined(separator: " or ")
        let letters = String(decoding: allowed.map(\.letter), as: UTF8.self)
        return JSONType(
            schema: ["type": "string", "pattern": .string("^[\(letters)][0-9a-hjkmnp-tv-z]{26}$")],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue, let id = ObjectID(text), allowed.contains(id.kind) else {
                    throw JSONProblem("expected the identifier of an \(words)")
                }
                return id
            },
            encode: { .string($0.text) }
        )
    }
}
