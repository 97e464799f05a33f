import Metadata
package import PhotoModel

extension Moment {
    /// The names of its cell, from the narrowest to the widest; empty without a location and at sea.
    package var placeNames: [String] {
        guard let middle = cell?.middle else { return [] }
        return PlaceNames.table.names(latitude: middle.latitude, longitude: middle.longitude)
    }
}
