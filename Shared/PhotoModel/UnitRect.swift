public import JSONValue

/// A part of a displayed image as fractions of its sides: (0, 0) is the upper left corner, (1, 1) the lower right one
/// (S-44, P-12).
public struct UnitRect: Sendable, Hashable, JSONTabled {
    /// The left edge, 0...1.
    public var x: Double
    /// The upper edge, 0...1.
    public var y: Double
    /// The width, above 0 and at most 1.
    public var width: Double
    /// The height, above 0 and at most 1.
    public var height: Double

    public init(x: Double, y: Double, width: Double, height: Double) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    /// The whole image.
    public static let full = UnitRect(x: 0, y: 0, width: 1, height: 1)

    /// True if it has an area and lies within the image, allowing for the rounding of decimals.
    public var isValid: Bool {
        let slack = 1e-9
        return width > 0 && height > 0 && x >= 0 && y >= 0 && x + width <= 1 + slack && y + height <= 1 + slack
    }

    public static let table = JSONTable(
        "UnitRect",
        "A part of the displayed image as fractions of its sides, from the upper left corner.",
        unknown: .refused,
        blank: UnitRect.full,
        [
            .required("x", \.x, .fraction, "Left edge."),
            .required("y", \.y, .fraction, "Upper edge."),
            .required("width", \.width, .fraction, "Width, above 0."),
            .required("height", \.height, .fraction, "Height, above 0."),
        ]
    )
}

extension JSONType where Value == Double {
    /// A fraction of a side, 0 to 1. Other numbers are decoded too: ``UnitRect/isValid`` is true if a rectangle lies
    /// within the image, and the error of the request names the remedy (D12).
    fileprivate static var fraction: JSONType {
        JSONType(
            schema: number(0...1).schema(),
            decode: { (json: JSON) throws(JSONProblem) in
                guard let number = json.doubleValue else { throw JSONProblem("expected a number from 0 to 1") }
                return number
            },
            encode: { .double($0) }
        )
    }
}
