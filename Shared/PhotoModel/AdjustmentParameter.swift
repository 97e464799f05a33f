public import JSONValue

/// One member of an operation: its name, domain, unit, default value and neutral value.
public struct AdjustmentParameter: Sendable, Hashable {
    /// The values that are allowed.
    public enum Domain: Sendable, Hashable {
        case number(ClosedRange<Double>)
        case whole(ClosedRange<Int>)
        case choice([AdjustmentValue])
        /// A curve: two to sixteen points with x and y in 0...1.
        case points
        /// Text of at most this many UTF-8 bytes, without control characters.
        case text(maxBytes: Int)
        /// A colour as "#rrggbb".
        case colour
        /// A PNG or JPEG in Base64 of at most this many characters.
        case picture(maxCharacters: Int)
        /// A colour table, a PNG or a .cube file, in Base64 of at most this many characters.
        case table(maxCharacters: Int)
    }

    /// The name of the member in JSON.
    public let name: String
    /// The allowed values.
    public let domain: Domain
    /// The unit of the value, for the schema.
    public let unit: String
    /// The value of a missing member.
    public let defaultValue: AdjustmentValue
    /// The value at which the operation changes nothing; `nil` if every value changes something.
    public let neutral: AdjustmentValue?
    /// True if the member changes how the operation works, but not whether it is neutral.
    public let isModifier: Bool

    /// Creates a parameter. A parameter with `isModifier` has no neutral value.
    init(
        _ name: String,
        _ domain: Domain,
        _ unit: String,
        default defaultValue: AdjustmentValue,
        neutral: AdjustmentValue? = nil,
        isModifier: Bool = false
    ) {
        self.name = name
        self.domain = domain
        self.unit = unit
        self.defaultValue = defaultValue
        self.neutral = neutral
        self.isModifier = isModifier
    }

    /// The number of points that a curve may have.
    static let pointCount = 2...16

    /// The allowed values as readable text, for example "a number in -5.0...5.0" or "one of horizontal, vertical".
    public var allowed: String {
        switch domain {
        case .number(let range): "a number in \(range.lowerBound)...\(range.upperBound)"
        case .whole(let range): "a whole number in \(range.lowerBound)...\(range.upperBound)"
        case .choice(let values): "one of " + values.map(\.json.text).joined(separator: ", ")
        case .points: "2 to 16 points [x, y] with both in 0...1"
        case .text(let maxBytes): "text of at most \(maxBytes) bytes without control characters"
        case .colour: "a colour as \"#rrggbb\""
        case .picture(let maxCharacters): "a PNG or JPEG in Base64 of at most \(maxCharacters) characters"
        case .table(let maxCharacters): "a PNG or .cube file in Base64 of at most \(maxCharacters) characters"
        }
    }

    /// Decodes a value of this member; `nil` if it is not allowed.
    func value(of json: JSON) -> AdjustmentValue? {
        switch domain {
        case .number(let range):
            guard let number = json.doubleValue, range.contains(number) else { return nil }
            return .number(number == 0 ? 0 : number)
        case .whole(let range):
            guard let number = json.intValue, let whole = Int(exactly: number), range.contains(whole) else {
                return nil
            }
            return .whole(whole)
        case .choice(let values):
            return values.first { $0.json == json || ($0.whole != nil && $0.whole == json.intValue) }
        case .points:
            guard let elements = json.arrayValue, Self.pointCount.contains(elements.count) else { return nil }
            let points = elements.compactMap(CurvePoint.init(json:))
            return points.count == elements.count ? .points(points) : nil
        case .text(let maxBytes):
            guard let text = json.stringValue, text.utf8.count <= maxBytes,
                !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
            else { return nil }
            return .text(text)
        case .colour:
            guard let text = json.stringValue, text.utf8.count == 7, text.hasPrefix("#"),
                text.dropFirst().allSatisfy({ $0.isASCII && $0.isHexDigit })
            else { return nil }
            return .text(text.lowercased())
        case .picture(let maxCharacters), .table(let maxCharacters):
            guard let text = json.stringValue, text.utf8.count <= maxCharacters,
                text.utf8.allSatisfy(Self.isBase64)
            else { return nil }
            return .text(text)
        }
    }

    private static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
            true
        default: false
        }
    }

    /// The JSON Schema of the member, with `x-unit` and `x-neutral`.
    public var json: JSON {
        var object: JSONObject = [:]
        switch domain {
        case .number(let range):
            object["type"] = "number"
            object["minimum"] = .double(range.lowerBound)
            object["maximum"] = .double(range.upperBound)
        case .whole(let range):
            object["type"] = "integer"
            object["minimum"] = JSON(range.lowerBound)
            object["maximum"] = JSON(range.upperBound)
        case .choice(let values):
            object["enum"] = .array(values.map(\.json))
        case .points:
            object["type"] = "array"
            object["minItems"] = JSON(Self.pointCount.lowerBound)
            object["maxItems"] = JSON(Self.pointCount.upperBound)
            object["items"] = [
                "type": "array", "minItems": 2, "maxItems": 2,
                "items": ["type": "number", "minimum": 0, "maximum": 1],
            ]
        case .text(let maxBytes):
            object["type"] = "string"
            object["maxLength"] = JSON(maxBytes)
        case .colour:
            object["type"] = "string"
            object["pattern"] = "^#[0-9a-fA-F]{6}$"
        case .picture(let maxCharacters), .table(let maxCharacters):
            object["type"] = "string"
            object["contentEncoding"] = "base64"
            object["maxLength"] = JSON(maxCharacters)
        }
        object["default"] = defaultValue.json
        object["x-unit"] = .string(unit)
        if !isModifier { object["x-neutral"] = neutral?.json ?? .null }
        return .object(object)
    }
}

/// A point of a curve, both coordinates in 0...1.
public struct CurvePoint: Sendable, Hashable {
    /// The input.
    public let x: Double
    /// The output.
    public let y: Double

    public init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }

    init?(json: JSON) {
        guard let pair = json.arrayValue, pair.count == 2, let x = pair[0].doubleValue, let y = pair[1].doubleValue,
            (0...1).contains(x), (0...1).contains(y)
        else { return nil }
        (self.x, self.y) = (x + 0, y + 0)
    }

    /// The identity curve.
    public static let straight = [CurvePoint(x: 0, y: 0), CurvePoint(x: 1, y: 1)]
}

/// The value of a member.
public enum AdjustmentValue: Sendable, Hashable {
    case number(Double)
    case whole(Int)
    case text(String)
    case points([CurvePoint])

    /// The value as it is written in the list.
    public var json: JSON {
        switch self {
        case .number(let number): .double(number)
        case .whole(let number): .int(Int64(number))
        case .text(let text): .string(text)
        case .points(let points): .array(points.map { [.double($0.x), .double($0.y)] })
        }
    }

    var whole: Int64? { if case .whole(let number) = self { Int64(number) } else { nil } }
}
