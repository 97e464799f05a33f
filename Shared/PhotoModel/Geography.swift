#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// All places within a distance of a point, on a sphere (haversine).
public struct GeoCircle: Sendable, Hashable {
    /// Mean radius of the earth in metres.
    public static let earthRadius = 6_371_008.8
    /// Half way round the earth, in metres: a larger circle holds everything.
    public static let maxRadius = 20_037_509.0

    /// Degrees north, -90...90.
    public let latitude: Double
    /// Degrees east, -180...180.
    public let longitude: Double
    /// Metres, the edge included.
    public let radius: Double

    /// A circle; `nil` for numbers out of range.
    public init?(latitude: Double, longitude: Double, radius: Double) {
        guard (-90...90).contains(latitude), (-180...180).contains(longitude), radius >= 0, radius <= Self.maxRadius
        else { return nil }
        // Adding zero turns -0 into 0: equal circles have equal bytes.
        self.latitude = latitude + 0
        self.longitude = longitude + 0
        self.radius = radius + 0
    }

    /// Metres along the earth from the centre.
    public func distance(latitude: Double, longitude: Double) -> Double {
        let north = Self.radians(latitude - self.latitude) / 2
        let east = Self.radians(longitude - self.longitude) / 2
        let cosines = cos(Self.radians(self.latitude)) * cos(Self.radians(latitude))
        let haversine = sin(north) * sin(north) + cosines * sin(east) * sin(east)
        return 2 * Self.earthRadius * asin(min(1, haversine.squareRoot()))
    }

    public func contains(latitude: Double, longitude: Double) -> Bool {
        distance(latitude: latitude, longitude: longitude) <= radius
    }

    /// A box that holds the whole circle, a little larger than need be: an index can look there first.
    public var boundingBox: GeoBox {
        let angle = radius / Self.earthRadius + 1e-9
        let height = angle * 180 / Double.pi
        let south = latitude - height
        let north = latitude + height
        guard south > -90, north < 90, angle < Double.pi / 2 else {
            return GeoBox(checkedSouth: max(south, -90), west: -180, north: min(north, 90), east: 180)
        }
        let ratio = sin(angle) / cos(Self.radians(latitude))
        let width = asin(min(1, ratio)) * 180 / Double.pi + 1e-9
        let west = longitude - width
        let east = longitude + width
        return GeoBox(
            checkedSouth: south,
            west: west < -180 ? west + 360 : west,
            north: north,
            east: east > 180 ? east - 360 : east
        )
    }

    private static func radians(_ degrees: Double) -> Double { degrees * Double.pi / 180 }
}

/// A rectangle of latitudes and longitudes, its edges included; where `west > east` it crosses the antimeridian.
public struct GeoBox: Sendable, Hashable {
    public let south: Double
    public let west: Double
    public let north: Double
    public let east: Double

    /// A box; `nil` for numbers out of range or where north is below south.
    public init?(south: Double, west: Double, north: Double, east: Double) {
        guard (-90...90).contains(south), (-90...90).contains(north), south <= north, (-180...180).contains(west),
            (-180...180).contains(east)
        else { return nil }
        self.init(checkedSouth: south + 0, west: west + 0, north: north + 0, east: east + 0)
    }

    fileprivate init(checkedSouth south: Double, west: Double, north: Double, east: Double) {
        self.south = south
        self.west = west
        self.north = north
        self.east = east
    }

    public var crossesAntimeridian: Bool { west > east }

    public func contains(latitude: Double, longitude: Double) -> Bool {
        guard latitude >= south, latitude <= north else { return false }
        return crossesAntimeridian
            ? longitude >= west || longitude <= east : longitude >= west && longitude <= east
    }
}
