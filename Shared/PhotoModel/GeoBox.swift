/// A rectangle of latitudes and longitudes, edges included. If `west > east` it crosses the antimeridian.
public struct GeoBox: Sendable, Hashable {
    /// Degrees north of the lower edge, -90...90.
    public let south: Double
    /// Degrees east of the left edge, -180...180.
    public let west: Double
    /// Degrees north of the upper edge, -90...90; not below ``south``.
    public let north: Double
    /// Degrees east of the right edge, -180...180.
    public let east: Double

    /// Creates a box; `nil` if a number is out of range or north is below south.
    public init?(south: Double, west: Double, north: Double, east: Double) {
        guard (-90...90).contains(south), (-90...90).contains(north), south <= north, (-180...180).contains(west),
            (-180...180).contains(east)
        else { return nil }
        self.init(checkedSouth: south + 0, west: west + 0, north: north + 0, east: east + 0)
    }

    init(checkedSouth south: Double, west: Double, north: Double, east: Double) {
        self.south = south
        self.west = west
        self.north = north
        self.east = east
    }

    /// True if the box extends across the antimeridian, where 180 and -180 degrees east meet.
    public var crossesAntimeridian: Bool { west > east }

    /// Returns true if a point is inside the box.
    public func contains(latitude: Double, longitude: Double) -> Bool {
        guard latitude >= south, latitude <= north else { return false }
        return crossesAntimeridian
            ? longitude >= west || longitude <= east : longitude >= west && longitude <= east
    }
}
