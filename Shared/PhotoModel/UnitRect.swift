public import JSONValue

/// A part of a displayed picture in units of its sides: (0, 0) is its upper left corner, (1, 1) its lower right one
/// (spec S-44, P-12).
public struct UnitRect: Sendable, Hashable, JSONTabled {
    public var x: Double
    public var y: Double
    public var width: Double
    public var height: Double

    public init(x: Double, y: Double, width: Double, height: Double) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    public static let full = UnitRect(x: 0, y: 0, width: 1, height: 1)

    /// It has an area and lies within the picture, allowing for the rounding of decimals.
    public var isValid: Bool {
        let slack = 1e-9
        return width > 0 && height > 0 && x >= 0 && y >= 0 && x + width <= 1 + slack && y + height <= 1 + slack
    }

    public static let table = JSONTable(
        "UnitRect",
        "A part of the displayed picture in units of its sides, from the upper left corner.",
        unknown: .refused,
        blank: UnitRect.full,
        [
            .required("x", \.x, .number(0...1), "Left edge."),
            .required("y", \.y, .number(0...1), "Upper edge."),
            .required("width", \.width, .number(0...1), "Width, above 0."),
            .required("height", \.height, .number(0...1), "Height, above 0."),
        ]
    )
}
