/// A rectangle in units of the picture as it is displayed: (0, 0) is the upper left corner, (1, 1) the lower right one.
///
/// Source: rows S-44 (normalized crop rectangle) and the editor's crop operation.
public struct UnitRect: Sendable, Hashable {
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

    /// The whole picture.
    public static let full = UnitRect(x: 0, y: 0, width: 1, height: 1)

    /// Whether all numbers are finite, the rectangle has an area and it lies within the picture; a billionth beyond the
    /// edge is forgiven, because clients compute 1/3 + 2/3.
    public var isValid: Bool {
        [x, y, width, height].allSatisfy(\.isFinite) && x >= 0 && y >= 0 && width > 0 && height > 0
            && x + width <= 1 + 1e-9 && y + height <= 1 + 1e-9
    }
}
