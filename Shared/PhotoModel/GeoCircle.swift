#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A circle on the earth's surface: all points within a distance of its centre, on a sphere (haversine).
public struct GeoCircle: Sendable, Hashable {
    /// The mean radius of the earth in metres.
    public static let earthRadius = 6_371_008.8
    /// Half the circumference of the earth in metres. A circle of this radius contains every point.
    public static let maxRadius = 20_037_509.0

    /// Degrees north, -90...90.
    public let latitude: Double
    /// Degrees east, -180...180.
    public let longitude: Double
    /// Metres. Points at exactly this distance are inside.
    public let radius: Double

    /// Creates a circle; `nil` if a number is out of range.
    public init?(latitude: Double, longitude: Double, radius: Double) {
        guard (-90...90).contains(latitude), (-180...180).contains(longitude), radius >= 0, radius <= Self.maxRadius
        else { return nil }
        // Adding zero turns -0 into 0, so that equal circles have equal bytes.
        self.latitude = latitude + 0
        self.longitude = longitude + 0
        self.radius = radius + 0
    }

    /// Returns the great-circle distance from the centre in metres.
    public func distance(latitude: Double, longitude: Double) -> Double {
        let north = Self.radians(latitude - self.latitude) / 2
        let east = Self.radians(longitude - self.longitude) / 2
        let cosines = cos(Self.radians(self.latitude)) * cos(Self.radians(latitude))
        let haversine = sin(north) * sin(north) + cosines * sin(east) * sin(east)
        return 2 * Self.earthRadius * asin(min(1, haversine.squareRoot()))
    }

    /// Returns true if a point is inside the circle.
    public func contains(latitude: Double, longitude: Double) -> Bool {
        distance(latitude: latitude, longitude: longitude) <= radius
    }

    /// A box that contains the circle, slightly enlarged, for a first look-up in an index.
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
