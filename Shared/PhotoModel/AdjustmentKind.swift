public import JSONValue

/// The operations of version 1 of Safelight's own adjustment format.
///
/// Each is declared once, in `parameters`: that table parses, validates and documents.
///
/// Colour is computed in linear light with sRGB primaries. Neighbouring colour operations are composed and applied to
/// every pixel in one pass; values between them are not clipped, except by contrast, which is defined on 0...1 only.
public enum AdjustmentKind: String, Sendable, Hashable, CaseIterable {
    case exposure, contrast, saturation, temperature, blackAndWhite, crop, straighten, rotate, flip

    /// All operations in the order in which they are documented.
    public static var all: [AdjustmentKind] { allCases }

    /// What the operation does, in one or two sentences.
    public var meaning: String {
        switch self {
        case .exposure: "Multiplies light by 2 to the power of the value (stops)."
        case .contrast:
            "An S-curve about middle grey on sRGB-encoded values, black and white held: v < 1/2 becomes (2v)^g / 2, "
                + "the upper half mirrors it, g = 2^value. The opposite value undoes it."
        case .saturation:
            "Moves colours away from (positive) or towards (negative) the grey of the same luminance, in linear light; "
                + "-1 is grey."
        case .temperature:
            "Warmer (positive) or cooler light: in linear light red is multiplied by 2^(value/2) and blue by "
                + "2^(-value/2), and all three are divided by the luminance of the changed white: grey keeps "
                + "its luminance."
        case .blackAndWhite: "Mixes with the grey of the same luminance in linear light; 1 is black and white."
        case .crop: "Keeps a rectangle of the picture as displayed at this point of the list, in units of its sides."
        case .straighten:
            "Turns the picture clockwise about its centre and crops to the largest rectangle of the same aspect ratio "
                + "inside it."
        case .rotate: "Turns the picture clockwise by quarter turns, without loss."
        case .flip: "Mirrors the picture: horizontal swaps left and right, vertical swaps top and bottom."
        }
    }

    /// Whether the operation moves pixels rather than recolours them.
    public var isGeometric: Bool {
        switch self {
        case .exposure, .contrast, .saturation, .temperature, .blackAndWhite: false
        case .crop, .straighten, .rotate, .flip: true
        }
    }

    /// The members that the operation takes beside "operation".
    ///
    /// A missing member has its default.
    public var parameters: [AdjustmentParameter] {
        func number(_ range: ClosedRange<Double>, _ unit: String, byDefault: Double = 0) -> [AdjustmentParameter] {
            [AdjustmentParameter(name: "value", domain: .number(range), unit: unit, byDefault: .number(byDefault))]
        }
        func side(_ name: String, _ range: ClosedRange<Double>, _ byDefault: Double) -> AdjustmentParameter {
            AdjustmentParameter(
                name: name,
                domain: .number(range),
                unit: "sides of the picture",
                byDefault: .number(byDefault)
            )
        }
        return switch self {
        case .exposure: number(-5...5, "stops")
        case .contrast, .saturation, .temperature: number(-1...1, "strength")
        case .blackAndWhite:
            [
                AdjustmentParameter(
                    name: "value",
                    domain: .number(0...1),
                    unit: "strength",
                    byDefault: .number(1),
                    neutral: .number(0)
                )
            ]
        case .straighten: number(-45...45, "degrees")
        case .crop:
            [
                side("x", 0...1, 0), side("y", 0...1, 0), side("width", 0.001...1, 1), side("height", 0.001...1, 1),
            ]
        case .rotate:
            [
                AdjustmentParameter(
                    name: "value",
                    domain: .choice([.whole(90), .whole(180), .whole(270)]),
                    unit: "degrees clockwise",
                    byDefault: .whole(90),
                    neutral: nil
                )
            ]
        case .flip:
            [
                AdjustmentParameter(
                    name: "value",
                    domain: .choice([.word("horizontal"), .word("vertical")]),
                    unit: "direction",
                    byDefault: .word("horizontal"),
                    neutral: nil
                )
            ]
        }
    }

    /// The operation's documentation as JSON: name, meaning and a schema for each member.
    public var json: JSON {
        var properties = JSONObject()
        for parameter in parameters { properties[parameter.name] = parameter.json }
        return [
            "operation": .string(rawValue), "meaning": .string(meaning),
            "changes": .string(isGeometric ? "geometry" : "colour"), "type": "object",
            "properties": .object(properties), "additionalProperties": false,
        ]
    }
}

/// One member of an operation: its name, what is allowed, its unit, its default and the value that changes nothing.
public struct AdjustmentParameter: Sendable, Hashable {
    /// What is allowed.
    public enum Domain: Sendable, Hashable {
        case number(ClosedRange<Double>)
        case choice([AdjustmentValue])
    }

    public let name: String
    public let domain: Domain
    public let unit: String
    /// Taken when the member is missing.
    public let byDefault: AdjustmentValue
    /// The value at which the operation changes nothing; `nil` where every value changes something.
    public let neutral: AdjustmentValue?

    /// A parameter whose neutral value is its default, unless another is given.
    init(
        name: String,
        domain: Domain,
        unit: String,
        byDefault: AdjustmentValue,
        neutral: AdjustmentValue? = nil
    ) {
        self.name = name
        self.domain = domain
        self.unit = unit
        self.byDefault = byDefault
        switch domain {
        case .number: self.neutral = neutral ?? byDefault
        case .choice: self.neutral = neutral
        }
    }

    /// What is allowed, for a person: "-5.0...5.0" or "horizontal, vertical".
    public var allowed: String {
        switch domain {
        case .number(let range): "a number in \(range.lowerBound)...\(range.upperBound)"
        case .choice(let values): "one of " + values.map(\.json.text).joined(separator: ", ")
        }
    }

    /// The value of this member, or `nil` where it is not allowed.
    func value(of json: JSON) -> AdjustmentValue? {
        switch domain {
        case .number(let range):
            guard let number = json.doubleValue, range.contains(number) else { return nil }
            return .number(number == 0 ? 0 : number)
        case .choice(let values):
            return values.first { $0.json == json || ($0.whole != nil && $0.whole == json.intValue) }
        }
    }

    /// The member's documentation as JSON schema.
    public var json: JSON {
        var object: JSONObject = [:]
        switch domain {
        case .number(let range):
            object["type"] = "number"
            object["minimum"] = .double(range.lowerBound)
            object["maximum"] = .double(range.upperBound)
        case .choice(let values):
            object["enum"] = .array(values.map(\.json))
        }
        object["unit"] = .string(unit)
        object["default"] = byDefault.json
        object["neutral"] = neutral?.json ?? .null
        return .object(object)
    }
}

/// A value of a member.
public enum AdjustmentValue: Sendable, Hashable {
    case number(Double)
    case whole(Int)
    case word(String)

    /// The value as it stands in the list.
    public var json: JSON {
        switch self {
        case .number(let number): .double(number)
        case .whole(let number): .int(Int64(number))
        case .word(let word): .string(word)
        }
    }

    var number: Double? { if case .number(let number) = self { number } else { nil } }
    var whole: Int64? { if case .whole(let number) = self { Int64(number) } else { nil } }
}
