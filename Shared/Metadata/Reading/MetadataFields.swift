/// The fields from which each fact is read, in the order in which they are tried: the first valid value counts.
///
/// Fields have the names of the metadata library. `Shared/docs/metadata.md` shows the same table; a test compares them.
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

    // Camera settings: EXIF, TIFF/EP, XMP.
    static let apertures = [
        "Exif.Photo.FNumber", "Exif.Image.FNumber", "Exif.Photo.ApertureValue", "Exif.Image.ApertureValue",
        "Xmp.exif.FNumber", "Xmp.exif.ApertureValue",
    ]
    static let exposureTimes = [
        "Exif.Photo.ExposureTime", "Exif.Image.ExposureTime", "Exif.Photo.ShutterSpeedValue",
        "Exif.Image.ShutterSpeedValue", "Xmp.exif.ExposureTime", "Xmp.exif.ShutterSpeedValue",
    ]
    static let sensitivities = [
        "Exif.Photo.ISOSpeedRatings", "Exif.Photo.RecommendedExposureIndex", "Exif.Photo.ISOSpeed",
        "Exif.Photo.StandardOutputSensitivity", "Exif.Image.ISOSpeedRatings", "Xmp.exifEX.PhotographicSensitivity",
        "Xmp.exif.ISOSpeedRatings",
    ]
    static let focalLengths = ["Exif.Photo.FocalLength", "Exif.Image.FocalLength", "Xmp.exif.FocalLength"]
    static let focalLengthsIn35mm = ["Exif.Photo.FocalLengthIn35mmFilm", "Xmp.exif.FocalLengthIn35mmFilm"]
    static let flashes = ["Exif.Photo.Flash", "Exif.Image.Flash", "Xmp.exif.Flash/exif:Fired"]
    static let imageDirections = ["Exif.GPSInfo.GPSImgDirection", "Xmp.exif.GPSImgDirection"]

    // Texts that people write: XMP, IPTC, EXIF, like captions.
    static let titles = ["Xmp.dc.title", "Iptc.Application2.ObjectName", "Exif.Image.XPTitle"]
    static let headlines = ["Xmp.photoshop.Headline", "Iptc.Application2.Headline"]
    static let copyrights = ["Xmp.dc.rights", "Iptc.Application2.Copyright", "Exif.Image.Copyright"]
    static let creators = [
        "Xmp.dc.creator", "Iptc.Application2.Byline", "Exif.Image.Artist", "Exif.Image.XPAuthor", "Xmp.tiff.Artist",
    ]
    static let credits = ["Xmp.photoshop.Credit", "Iptc.Application2.Credit"]
    static let cities = [
        "Xmp.photoshop.City", "Iptc.Application2.City", "Xmp.iptcExt.LocationCreated[1]/Iptc4xmpExt:City",
    ]
    static let states = [
        "Xmp.photoshop.State", "Iptc.Application2.ProvinceState",
        "Xmp.iptcExt.LocationCreated[1]/Iptc4xmpExt:ProvinceState",
    ]
    static let countries = [
        "Xmp.photoshop.Country", "Iptc.Application2.CountryName",
        "Xmp.iptcExt.LocationCreated[1]/Iptc4xmpExt:CountryName",
    ]
    static let labels = ["Xmp.xmp.Label"]
    static let software = [
        "Exif.Image.Software", "Xmp.xmp.CreatorTool", "Xmp.tiff.Software", "Iptc.Application2.Program",
    ]
    /// The values of all fields are used.
    static let hierarchicalKeywords = [
        "Xmp.lr.hierarchicalSubject", "Xmp.digiKam.TagsList", "Xmp.MicrosoftPhoto.LastKeywordXMP",
    ]
    /// The values of all fields are used.
    static let persons = ["Xmp.mwg-rs.Regions", "Xmp.MP.RegionInfo", "Xmp.iptcExt.PersonInImage"]

    // Videos: the keys of QuickTime metadata without "com.apple.quicktime.", which have this prefix here.
    static let quickTime = "QuickTime."
    static let videoTitles = ["QuickTime.title", "QuickTime.displayname"]
    static let videoCopyrights = ["QuickTime.copyright"]
    static let videoCreators = ["QuickTime.author", "QuickTime.artist"]
    static let videoSoftware = ["QuickTime.software"]
    static let videoLenses = ["QuickTime.camera.lens_model"]
    static let videoDirections = ["QuickTime.direction.facing"]

    /// The table as it is documented.
    static var table: [(fact: String, fields: [String])] {
        [
            ("capture date", dates), ("caption", captions), ("keywords", keywords), ("rating", ratings),
            ("camera make", makes), ("camera model", models),
            ("lens", lensNames + lensNumbers + lensRanges + videoLenses),
            ("latitude", latitudes), ("longitude", longitudes), ("altitude", altitudes), ("aperture", apertures),
            ("exposure time", exposureTimes), ("ISO", sensitivities), ("focal length", focalLengths),
            ("focal length in 35 mm", focalLengthsIn35mm), ("flash", flashes),
            ("direction", imageDirections + videoDirections), ("title", titles + videoTitles),
            ("headline", headlines), ("copyright", copyrights + videoCopyrights),
            ("creator", creators + videoCreators), ("credit", credits), ("city", cities), ("state", states),
            ("country", countries), ("label", labels), ("software", software + videoSoftware),
            ("hierarchical keywords", hierarchicalKeywords), ("persons", persons),
        ]
    }
}
