import JSONValue

/// The corners of the area that a perspective correction stretches to the whole image, as fractions of the sides.
public struct PerspectiveCorners: Sendable, Hashable {
    /// A corner as fractions of the sides.
    public typealias Point = (x: Double, y: Double)

    /// Clockwise from the top left: x, y, x, y…
    private let numbers: [Double]

    /// Reads the corners of an adjustment of kind `perspective`.
    public init(_ adjustment: Adjustment) {
        numbers = ["topLeft", "topRight", "bottomRight", "bottomLeft"].flatMap {
            [adjustment.number($0 + "X"), adjustment.number($0 + "Y")]
        }
    }

    /// The corners, clockwise from the top left.
    public var points: [Point] { (0..<4).map { (numbers[2 * $0], numbers[2 * $0 + 1]) } }

    /// True if the polygon turns right at every corner, by more than rounding errors could explain.
    public var isConvex: Bool {
        let points = points
        return (0..<4).allSatisfy { index in
            let (a, b, c) = (points[index], points[(index + 1) % 4], points[(index + 2) % 4])
            return (b.x - a.x) * (c.y - b.y) - (b.y - a.y) * (c.x - b.x) > 1e-4
        }
    }
}
