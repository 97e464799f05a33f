public import JSONValue

/// The kind of an entity (S-01, T-37).
public enum ObjectKind: String, Sendable, CaseIterable {
    case asset
    case assetCollection
    case collectionList

    /// The first letter of identifiers of this kind.
    var letter: Character {
        switch self {
        case .asset: "a"
        case .assetCollection: "c"
        case .collectionList: "l"
        }
    }
}

/// The stable identifier of an entity: PhotoKit's `localIdentifier` (S-01).
///
/// A letter for the kind and 26 digits of Crockford's base 32 that encode 48 bits of time and 80 random bits.
/// Identifiers sort by creation time, which keeps indexes compact, and are never generated twice. Opaque to clients.
public struct ObjectID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The text of the identifier, ``length`` ASCII characters.
    public let text: String

    /// The length of every identifier in bytes.
    public static let length = 27

    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)

    /// Parses an identifier; `nil` if the text cannot be one.
    public init?(_ text: String) {
        var text = text
        guard text.withUTF8(Self.isIdentifier) else { return nil }
        self.text = text
    }

    /// Returns true if bytes are the text of an identifier.
    private static func isIdentifier(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count == length else { return false }
        switch bytes[0] {
        case UInt8(ascii: "a"), UInt8(ascii: "c"), UInt8(ascii: "l"): break
        default: return false
        }
        return bytes.dropFirst().allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "i"), UInt8(ascii: "l"), UInt8(ascii: "o"), UInt8(ascii: "u"): false
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"): true
            default: false
            }
        }
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
        var (high, low): (UInt64, UInt64) = (0, 0)
        for byte in text.utf8.dropFirst() {
            guard let digit = Self.digitValues[byte], high >> 16 == 0 else { return nil }
            high = high << 5 | low >> 59
            low = low << 5 | digit
        }
        guard high >> 16 == 0, let rule = DerivedRule(rawValue: UInt16(truncatingIfNeeded: high)) else { return nil }
        return (rule, low)
    }

    /// The time at which it was generated, in milliseconds since 1970; 0 for a derived identifier.
    public var milliseconds: Int64 {
        // The first ten digits: two bits that are zero, and 48 of time.
        text.utf8.dropFirst().prefix(10).reduce(0) { $0 << 5 | Int64(Self.digitValues[$1] ?? 0) }
    }

    private static let digitValues: [UInt8: UInt64] = Dictionary(
        uniqueKeysWithValues: alphabet.enumerated().map { ($1, UInt64($0)) }
    )

    private init(_ kind: ObjectKind, high: UInt64, low: UInt64) {
        var (high, low) = (high, low)
        var digits = [UInt8](repeating: 0, count: 26)
        for position in digits.indices.reversed() {
            digits[position] = Self.alphabet[Int(low & 31)]
            low = low >> 5 | high << 59
            high >>= 5
        }
        self.text = String(kind.letter) + String(decoding: digits, as: UTF8.self)
    }

    public var kind: ObjectKind {
        switch text.utf8.first {
        case UInt8(ascii: "a"): .asset
        case UInt8(ascii: "c"): .assetCollection
        default: .collectionList
        }
    }

    public var description: String { text }

    /// Compares the bytes of the text. The last tie-break of every order.
    public static func < (left: ObjectID, right: ObjectID) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    /// Returns the texts of identifiers one after the other, for long lists.
    public static func bytes(of ids: some Collection<ObjectID>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(ids.count * length)
        for id in ids { bytes += id.text.utf8 }
        return bytes
    }

    /// Returns the identifiers of ``bytes(of:)``; nil if the bytes are others.
    public static func list(in bytes: [UInt8]) -> [ObjectID]? {
        guard bytes.count.isMultiple(of: length) else { return nil }
        return bytes.withUnsafeBufferPointer { bytes in
            var ids: [ObjectID] = []
            ids.reserveCapacity(bytes.count / length)
            for start in stride(from: 0, to: bytes.count, by: length) {
                let text = UnsafeBufferPointer(rebasing: bytes[start..<start + length])
                guard isIdentifier(text) else { return nil }
                ids.append(ObjectID(unchecked: String(decoding: text, as: UTF8.self)))
            }
            return ids
        }
    }

    /// The root folder (T-12).
    public static let root = ObjectID(unchecked: "l00000000000000000000000000")
    /// No entity: the value in a table before its fields are decoded.
    public static let none = ObjectID(unchecked: "a00000000000000000000000000")

    private init(unchecked text: String) { self.text = text }
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
        let letters = String(allowed.map(\.letter))
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
