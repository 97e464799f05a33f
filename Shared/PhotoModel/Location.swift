public import JSONValue

/// The place where an image was taken, WGS 84.
public struct Location: Sendable, Hashable, JSONTabled {
    /// Degrees north, -90...90.
    public var latitude: Double
    /// Degrees east, -180...180.
    public var longitude: Double
    /// Metres above sea level; nil if unknown.
    public var altitude: Double?

    public init(latitude: Double, longitude: Double, altitude: Double? = nil) {
        self.latitude = latitude
        self.longitude = longitude
        self.altitude = altitude
    }

    public static let table = JSONTable(
        "Location",
        "A place on earth, WGS 84.",
        unknown: .refused,
        blank: Location(latitude: 0, longitude: 0),
        [
            .required("latitude", \.latitude, .number(-90...90), "Degrees north."),
            .required("longitude", \.longitude, .number(-180...180), "Degrees east."),
            .optional("altitude", \.altitude, .number(-20_000...100_000), "Metres above sea level."),
        ]
    )
}
