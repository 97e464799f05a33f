import Metadata
package import PhotoModel

extension Moment {
    /// The place names of its cell, from the narrowest to the widest; empty without a location and at sea.
    package var placeNames: [String] {
        guard let centre = cell?.centre else { return [] }
        return PlaceNames.table.names(latitude: centre.latitude, longitude: centre.longitude)
    }
}
