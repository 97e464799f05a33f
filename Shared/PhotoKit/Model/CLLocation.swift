import Foundation
import PhotoModel

/// A latitude and longitude in WGS 84: Core Location's type, which Linux lacks.
public struct CLLocationCoordinate2D: Sendable, Hashable {
    /// The degrees north, from -90 to 90.
    public var latitude: Double
    /// The degrees east, from -180 to 180.
    public var longitude: Double

    public init(latitude: Double, longitude: Double) {
        self.latitude = latitude
        self.longitude = longitude
    }
}

/// The location of an asset: Core Location's type, which Linux lacks, with the properties that the library stores.
public struct CLLocation: Sendable, Hashable {
    public let coordinate: CLLocationCoordinate2D
    /// The altitude in metres above sea level; 0 if unknown, in which case ``verticalAccuracy`` is negative.
    public let altitude: Double
    /// Negative if the altitude is unknown; else 0, because the library does not store an accuracy.
    public let verticalAccuracy: Double

    public init(latitude: Double, longitude: Double) {
        self.init(coordinate: CLLocationCoordinate2D(latitude: latitude, longitude: longitude))
    }

    public init(coordinate: CLLocationCoordinate2D, altitude: Double? = nil) {
        self.coordinate = coordinate
        self.altitude = altitude ?? 0
        verticalAccuracy = altitude == nil ? -1 : 0
    }

    init(_ location: Location) {
        self.init(
            coordinate: CLLocationCoordinate2D(latitude: location.latitude, longitude: location.longitude),
            altitude: location.altitude
        )
    }

    var location: Location {
        Location(
            latitude: coordinate.latitude,
            longitude: coordinate.longitude,
            altitude: verticalAccuracy < 0 ? nil : altitude
        )
    }
}

extension Date {
    /// Creates a date from microseconds since 1970.
    init(microseconds: Int64) { self.init(timeIntervalSince1970: Double(microseconds) / 1_000_000) }

    /// The microseconds since 1970, rounded and clamped to the years that the library stores; the start of the first of
    /// them for a date that is not a number.
    var microseconds: Int64 {
        let range = AssetPatch.dates
        let value = (timeIntervalSince1970 * 1_000_000).rounded()
        guard !value.isNaN else { return range.lowerBound }
        return value >= Double(range.upperBound)
            ? range.upperBound : value <= Double(range.lowerBound) ? range.lowerBound : Int64(value)
    }
}
