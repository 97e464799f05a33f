public import JSONValue

/// One step of an edit.
///
/// `AdjustmentKind` says what each means and which values it takes.
public enum Adjustment: Sendable, Hashable {
    /// Stops, -5...5.
    case exposure(Double)
    /// -1...1.
    case contrast(Double)
    /// -1...1.
    case saturation(Double)
    /// -1...1, warm positive.
    case temperature(Double)
    /// Strength 0...1.
    case blackAndWhite(Double)
    /// A rectangle of the picture as displayed at this point of the list.
    case crop(UnitRect)
    /// Degrees clockwise, -45...45.
    case straighten(Double)
    /// Clockwise.
    case rotate(QuarterTurn)
    case flip(Axis)

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

    /// Which operation this is.
    public var kind: AdjustmentKind {
        switch self {
        case .exposure: .exposure
        case .contrast: .contrast
        case .saturation: .saturation
        case .temperature: .temperature
        case .blackAndWhite: .blackAndWhite
        case .crop: .crop
        case .straighten: .straighten
        case .rotate: .rotate
        case .flip: .flip
        }
    }

    /// Whether the step changes nothing.
    public var isNeutral: Bool {
        zip(kind.parameters, values).allSatisfy { $0.neutral == $1 }
    }

    /// The values in the order of `kind.parameters`.
    var values: [AdjustmentValue] {
        switch self {
        case .exposure(let value), .contrast(let value), .saturation(let value), .temperature(let value),
            .blackAndWhite(let value), .straighten(let value):
            [.number(value)]
        case .crop(let rect): [.number(rect.x), .number(rect.y), .number(rect.width), .number(rect.height)]
        case .rotate(let turn): [.whole(turn.rawValue)]
        case .flip(let axis): [.word(axis.rawValue)]
        }
    }

    /// The step with the values of its parameters in their order; the table has checked them.
    init?(_ kind: AdjustmentKind, _ values: [AdjustmentValue]) {
        let numbers = values.compactMap(\.number)
        switch kind {
        case .exposure, .contrast, .saturation, .temperature, .blackAndWhite, .straighten:
            guard let value = numbers.first else { return nil }
            switch kind {
            case .exposure: self = .exposure(value)
            case .contrast: self = .contrast(value)
            case .saturation: self = .saturation(value)
            case .temperature: self = .temperature(value)
            case .blackAndWhite: self = .blackAndWhite(value)
            default: self = .straighten(value)
            }
        case .crop:
            guard numbers.count == 4 else { return nil }
            self = .crop(UnitRect(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3]))
        case .rotate:
            guard case .whole(let degrees)? = values.first, let turn = QuarterTurn(rawValue: degrees) else {
                return nil
            }
            self = .rotate(turn)
        case .flip:
            guard case .word(let word)? = values.first, let axis = Axis(rawValue: word) else { return nil }
            self = .flip(axis)
        }
    }

    /// The step with every member written out.
    public var json: JSON {
        var object: JSONObject = ["operation": .string(kind.rawValue)]
        for (parameter, value) in zip(kind.parameters, values) { object[parameter.name] = value.json }
        return .object(object)
    }
}
