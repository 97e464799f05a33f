public import JSONValue

/// One step of an edit: an operation of ``AdjustmentKind`` with its values.
///
/// The operation's table says what each value means and what is allowed; a step that is read from JSON was checked
/// against it. The functions below make the most usual steps in code.
public struct Adjustment: Sendable, Hashable {
    /// Which operation this is.
    public let kind: AdjustmentKind
    /// The values in the order of `kind.parameters`.
    let values: [AdjustmentValue]

    /// A clockwise turn in degrees.
    public enum QuarterTurn: Int, Sendable, Hashable, CaseIterable {
        case quarter = 90
        case half = 180
        case threeQuarters = 270
    }

    /// What is swapped: left and right, or top and bottom.
    public enum Axis: String, Sendable, Hashable, CaseIterable {
        case horizontal, vertical
    }

    /// A step with some members given and the others at their defaults, unchecked.
    init(_ kind: AdjustmentKind, unchecked given: [String: AdjustmentValue]) {
        self.kind = kind
        values = kind.parameters.map { given[$0.name] ?? $0.byDefault }
    }

    /// A step with the given members, checked against the operation's table; the others have their defaults.
    ///
    /// - Throws: `AdjustmentError`, which names the member and what is allowed.
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
                values.append(parameter.byDefault)
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

    /// Whether the step changes nothing.
    public var isNeutral: Bool {
        let deciding = zip(kind.parameters, values).filter { !$0.0.isShape }
        return !deciding.isEmpty && deciding.allSatisfy { $0.0.neutral == $0.1 }
    }

    /// The step with every member written out.
    public var json: JSON {
        var object: JSONObject = ["operation": .string(kind.rawValue)]
        for (parameter, value) in zip(kind.parameters, values) { object[parameter.name] = value.json }
        return .object(object)
    }

    // MARK: - Values by name

    private subscript(name: String) -> AdjustmentValue? {
        kind.parameters.firstIndex { $0.name == name }.map { values[$0] }
    }

    /// The number of a member; 0 where the operation has no such number.
    public func number(_ name: String = "value") -> Double {
        switch self[name] {
        case .number(let number)?: number
        case .whole(let number)?: Double(number)
        default: 0
        }
    }

    /// The text or word of a member; empty where the operation has no such text.
    public func text(_ name: String = "value") -> String {
        switch self[name] {
        case .word(let word)?: word
        default: ""
        }
    }

    /// The points of a curve; none where the operation has no such curve.
    public func points(_ name: String) -> [CurvePoint] {
        guard case .points(let points)? = self[name] else { return [] }
        return points
    }

    /// The rectangle of a crop.
    public var rect: UnitRect {
        UnitRect(x: number("x"), y: number("y"), width: number("width"), height: number("height"))
    }

    // MARK: - The most usual steps

    /// Stops, -5...5.
    public static func exposure(_ stops: Double) -> Adjustment { one(.exposure, .number(stops)) }
    /// -1...1.
    public static func brightness(_ value: Double) -> Adjustment { one(.brightness, .number(value)) }
    /// -1...1.
    public static func contrast(_ value: Double) -> Adjustment { one(.contrast, .number(value)) }
    /// -1...1.
    public static func saturation(_ value: Double) -> Adjustment { one(.saturation, .number(value)) }
    /// -1...1.
    public static func vibrance(_ value: Double) -> Adjustment { one(.vibrance, .number(value)) }
    /// -1...1, warm positive.
    public static func temperature(_ value: Double) -> Adjustment { one(.temperature, .number(value)) }
    /// Strength 0...1.
    public static func blackAndWhite(_ value: Double) -> Adjustment { one(.blackAndWhite, .number(value)) }
    /// Strength 0...1.
    public static func sepia(_ value: Double) -> Adjustment { one(.sepia, .number(value)) }
    /// Degrees clockwise, -45...45.
    public static func straighten(_ degrees: Double) -> Adjustment { one(.straighten, .number(degrees)) }
    /// Clockwise.
    public static func rotate(_ turn: QuarterTurn) -> Adjustment { one(.rotate, .whole(turn.rawValue)) }
    /// Mirrors.
    public static func flip(_ axis: Axis) -> Adjustment { one(.flip, .word(axis.rawValue)) }
    /// A rectangle of the picture as displayed at this point of the list.
    public static func crop(_ rect: UnitRect) -> Adjustment {
        Adjustment(
            .crop,
            unchecked: [
                "x": .number(rect.x), "y": .number(rect.y), "width": .number(rect.width),
                "height": .number(rect.height),
            ]
        )
    }

    private static func one(_ kind: AdjustmentKind, _ value: AdjustmentValue) -> Adjustment {
        Adjustment(kind, unchecked: ["value": value])
    }
}

extension Adjustment {
    /// The first member that fits its own range but not its neighbours, and what would be allowed.
    private var contradiction: (member: String, allowed: String)? {
        switch kind {
        case .crop where !rect.isValid:
            let member = number("x") + number("width") > 1 ? "width" : "height"
            return (member, "x + width and y + height of at most 1")
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

/// The corners of the area that a perspective correction makes the whole picture, in units of the sides.
public struct PerspectiveCorners: Sendable, Hashable {
    public typealias Point = (x: Double, y: Double)

    /// Clockwise from the top left: x, y, x, y…
    private let numbers: [Double]

    /// The corners of a step of the kind `perspective`.
    public init(_ step: Adjustment) {
        numbers = ["topLeft", "topRight", "bottomRight", "bottomLeft"].flatMap {
            [step.number($0 + "X"), step.number($0 + "Y")]
        }
    }

    /// Clockwise from the top left.
    public var points: [Point] { (0..<4).map { (numbers[2 * $0], numbers[2 * $0 + 1]) } }

    /// Whether each corner turns right by enough to be told from a line.
    public var isConvex: Bool {
        let points = points
        return (0..<4).allSatisfy { index in
            let (a, b, c) = (points[index], points[(index + 1) % 4], points[(index + 2) % 4])
            return (b.x - a.x) * (c.y - b.y) - (b.y - a.y) * (c.x - b.x) > 1e-4
        }
    }
}
