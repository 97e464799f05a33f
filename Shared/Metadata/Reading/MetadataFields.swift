/// The fields from which each fact is read, in the order in which they are tried: the first valid value counts.
///
/// Fields have the names of the metadata library. `Shared/docs/images.md` shows the same table; a test compares them.
enum MetadataFields {
    /// The dates are those of ``CaptureDateSource``.
    static let dates = CaptureDateSource.allCases.map(\.rawValue)
    static let captions = ["Xmp.dc.description", "Iptc.Application2.Caption", "Exif.Image.ImageDescription"]
    /// The values of all fields are used.
    static let keywords = ["Xmp.dc.subject", "Iptc.Application2.Keywords"]
    static let ratings = ["Xmp.xmp.Rating", "Exif.Image.Rating"]
    static let makes = ["Exif.Image.Make", "Xmp.tiff.Make"]
    static let models = ["Exif.Image.Model", "Xmp.tiff.Model"]
    static let lensNames = ["Exif.Photo.LensModel", "Xmp.exifEX.LensModel", "Xmp.aux.Lens"]
    /// Numbers and names of lenses in maker notes.
    static let lensNumbers = [
        "Exif.CanonCs.LensType", "Exif.NikonLd1.LensIDNumber", "Exif.NikonLd2.LensIDNumber",
        "Exif.NikonLd3.LensIDNumber", "Exif.Pentax.LensType", "Exif.PentaxDng.LensType", "Exif.Minolta.LensID",
        "Exif.SonyMinolta.LensID", "Exif.Sony1.LensID", "Exif.Sony2.LensID", "Exif.OlympusEq.LensType",
        "Exif.Panasonic.LensType", "Exif.Samsung2.LensType",
    ]
    /// Focal lengths and apertures.
    static let lensRanges = [
        "Exif.Photo.LensSpecification", "Exif.Image.LensInfo", "Exif.Nikon3.Lens", "Xmp.exifEX.LensSpecification",
        "Xmp.aux.LensInfo",
    ]
    static let latitudes = ["Exif.GPSInfo.GPSLatitude", "Xmp.exif.GPSLatitude"]
    static let longitudes = ["Exif.GPSInfo.GPSLongitude", "Xmp.exif.GPSLongitude"]
    static let altitudes = ["Exif.GPSInfo.GPSAltitude", "Xmp.exif.GPSAltitude"]

    /// The table as it is documented.
    static var table: [(fact: String, fields: [String])] {
        [
            ("capture date", dates), ("caption", captions), ("keywords", keywords), ("rating", ratings),
            ("camera make", makes), ("camera model", models), ("lens", lensNames + lensNumbers + lensRanges),
            ("latitude", latitudes), ("longitude", longitudes), ("altitude", altitudes),
        ]
    }
}
