public import JSONValue

/// One operation of an edit: an ``AdjustmentKind`` with its values.
///
/// The parameter table of the operation defines the meaning and the range of each value. An adjustment decoded from
/// JSON has been checked against it. The static functions below create the common adjustments in code.
public struct Adjustment: Sendable, Hashable {
    /// The operation.
    public let kind: AdjustmentKind
    /// The values in the order of `kind.parameters`.
    let values: [AdjustmentValue]

    /// A clockwise rotation in degrees.
    public enum QuarterTurn: Int, Sendable, Hashable, CaseIterable {
        case quarter = 90
        case half = 180
        case threeQuarters = 270
    }

    /// The direction of a flip: horizontal swaps left and right, vertical swaps top and bottom.
    public enum Axis: String, Sendable, Hashable, CaseIterable {
        case horizontal, vertical
    }

    /// Creates an adjustment without checks. Members that are not given have their default values.
    init(_ kind: AdjustmentKind, unchecked given: [String: AdjustmentValue]) {
        self.kind = kind
        values = kind.parameters.map { given[$0.name] ?? $0.defaultValue }
    }

    /// Creates an adjustment from the given members after checking them against the operation's table. Missing members
    /// have their default values.
    ///
    /// - Throws: `AdjustmentError` with the member at fault and its allowed values.
    public init(_ kind: AdjustmentKind, _ members: JSONObject = [:]) throws(AdjustmentError) {
        try self.init(kind, members, index: nil)
    }

    init(_ kind: AdjustmentKind, _ members: JSONObject, index: Int?) throws(AdjustmentError) {
        let parameters = kind.parameters
        for (name, _) in members.members where name != "operation" && !parameters.contains(where: { $0.name == name }) {
            throw AdjustmentError(.unknownMember, index: index, member: name, allowed: parameters.map(\.name))
        }
        var values: [AdjustmentValue] = []
        for parameter in parameters {
            guard let given = members[parameter.name] else {
                values.append(parameter.defaultValue)
                continue
            }
            guard let value = parameter.value(of: given) else {
                throw AdjustmentError(
                    .outOfRange,
                    index: index,
                    member: parameter.name,
                    found: String(given.text.prefix(64)),
                    allowed: [parameter.allowed]
                )
            }
            values.append(value)
        }
        self.kind = kind
        self.values = values
        if let (member, allowed) = contradiction {
            throw AdjustmentError(.outOfRange, index: index, member: member, allowed: [allowed])
        }
    }

    /// True if the adjustment changes nothing.
    public var isNeutral: Bool {
        let deciding = zip(kind.parameters, values).filter { !$0.0.isModifier }
        return !deciding.isEmpty && deciding.allSatisfy { $0.0.neutral == $0.1 }
    }

    /// The JSON form with every member, whether or not it has its default value.
    public var json: JSON {
        var object: JSONObject = ["operation": .string(kind.rawValue)]
        for (parameter, value) in zip(kind.parameters, values) { object[parameter.name] = value.json }
        return .object(object)
    }

    // MARK: - Values by name

    private subscript(name: String) -> AdjustmentValue? {
        kind.parameters.firstIndex { $0.name == name }.map { values[$0] }
    }

    /// Returns a numeric member, or 0 if the operation has no such number.
    public func number(_ name: String = "value") -> Double {
        switch self[name] {
        case .number(let number)?: number
        case .whole(let number)?: Double(number)
        default: 0
        }
    }

    /// Returns a text member, or the empty string if the operation has no such text.
    public func text(_ name: String = "value") -> String {
        switch self[name] {
        case .text(let text)?: text
        default: ""
        }
    }

    /// Returns the adjustment with another text for a member, without checks.
    public func replacing(_ name: String, with text: String) -> Adjustment {
        var given = Dictionary(uniqueKeysWithValues: zip(kind.parameters.map(\.name), values))
        given[name] = .text(text)
        return Adjustment(kind, unchecked: given)
    }

    /// Returns the points of a curve, or an empty array if the operation has no such curve.
    public func points(_ name: String) -> [CurvePoint] {
        guard case .points(let points)? = self[name] else { return [] }
        return points
    }

    /// The rectangle of a crop.
    public var rect: UnitRect {
        UnitRect(x: number("x"), y: number("y"), width: number("width"), height: number("height"))
    }

    // MARK: - Common adjustments

    /// Returns an exposure adjustment, in stops, -5...5.
    public static func exposure(_ stops: Double) -> Adjustment { make(.exposure, .number(stops)) }
    /// Returns a brightness adjustment, -1...1.
    public static func brightness(_ value: Double) -> Adjustment { make(.brightness, .number(value)) }
    /// Returns a contrast adjustment, -1...1.
    public static func contrast(_ value: Double) -> Adjustment { make(.contrast, .number(value)) }
    /// Returns a saturation adjustment, -1...1.
    public static func saturation(_ value: Double) -> Adjustment { make(.saturation, .number(value)) }
    /// Returns a vibrance adjustment, -1...1.
    public static func vibrance(_ value: Double) -> Adjustment { make(.vibrance, .number(value)) }
    /// Returns a colour temperature adjustment, -1...1. Positive values are warmer.
    public static func temperature(_ value: Double) -> Adjustment { make(.temperature, .number(value)) }
    /// Returns a conversion to black and white, strength 0...1.
    public static func blackAndWhite(_ value: Double) -> Adjustment { make(.blackAndWhite, .number(value)) }
    /// Returns a sepia adjustment, strength 0...1.
    public static func sepia(_ value: Double) -> Adjustment { make(.sepia, .number(value)) }
    /// Returns a rotation by a small angle, in degrees clockwise, -45...45.
    public static func straighten(_ degrees: Double) -> Adjustment { make(.straighten, .number(degrees)) }
    /// Returns a clockwise rotation by quarter turns.
    public static func rotate(_ turn: QuarterTurn) -> Adjustment { make(.rotate, .whole(turn.rawValue)) }
    /// Returns a mirroring along an axis.
    public static func flip(_ axis: Axis) -> Adjustment { make(.flip, .text(axis.rawValue)) }
    /// Returns a crop to a rectangle of the image as displayed at this point of the list.
    public static func crop(_ rect: UnitRect) -> Adjustment {
        Adjustment(
            .crop,
            unchecked: [
                "x": .number(rect.x), "y": .number(rect.y), "width": .number(rect.width),
                "height": .number(rect.height),
            ]
        )
    }

    private static func make(_ kind: AdjustmentKind, _ value: AdjustmentValue) -> Adjustment {
        Adjustment(kind, unchecked: ["value": value])
    }
}

extension Adjustment {
    /// The first member that is within its own range but conflicts with another member, and the values that are allowed
    /// for it.
    private var contradiction: (member: String, allowed: String)? {
        switch kind {
        case .crop where !rect.isValid:
            let member = number("x") + number("width") > 1 ? "width" : "height"
            return (member, "x + width and y + height of at most 1")
        case .timeRange where number("end") - number("start") < 0.001:
            return ("end", "a time at least 0.001 s after \"start\"")
        case .levels where number("black") + 0.005 > number("white"):
            return ("white", "a number at least 0.005 above \"black\"")
        case .curve:
            for name in ["master", "red", "green", "blue"] {
                let points = points(name)
                let isAscending = zip(points, points.dropFirst()).allSatisfy { $1.x - $0.x >= 0.001 }
                if !isAscending { return (name, "points in ascending order of x, 0.001 apart or more") }
            }
            return nil
        case .perspective:
            let corners = PerspectiveCorners(self)
            return corners.isConvex
                ? nil : ("topLeftX", "four corners, clockwise from the top left, of a convex area that is not too thin")
        default:
            return nil
        }
    }
}
