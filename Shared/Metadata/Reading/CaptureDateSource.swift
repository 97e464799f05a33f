import ImageFormats

/// The field that the capture date was read from. The cases are in the order in which they are tried.
public enum CaptureDateSource: String, Sendable, Hashable, CaseIterable {
    case exifOriginal = "Exif.Photo.DateTimeOriginal"
    /// The field of TIFF/EP, and therefore of raw files.
    case tiffOriginal = "Exif.Image.DateTimeOriginal"
    case exifDigitized = "Exif.Photo.DateTimeDigitized"
    case xmpOriginal = "Xmp.exif.DateTimeOriginal"
    case photoshopCreated = "Xmp.photoshop.DateCreated"
    case xmpCreated = "Xmp.xmp.CreateDate"
    case xmpDigitized = "Xmp.exif.DateTimeDigitized"
    case iptcCreated = "Iptc.Application2.DateCreated"
    case iptcDigitized = "Iptc.Application2.DigitizationDate"
    /// The text chunk "Creation Time" of a PNG.
    case pngCreated = "PNG.CreationTime"
    case gps = "Exif.GPSInfo.GPSDateStamp"
    case xmpGPS = "Xmp.exif.GPSTimeStamp"
    case exifModified = "Exif.Image.DateTime"
    case xmpModified = "Xmp.xmp.ModifyDate"
    /// The chunk `tIME` of a PNG.
    case pngModified = "PNG.tIME"

    /// True for the time of the file's last change, which is used only if the file contains no other date.
    public var isModification: Bool {
        switch self {
        case .exifModified, .xmpModified, .pngModified: true
        default: false
        }
    }

    /// Finds the capture time of an image and its source.
    ///
    /// A date without a time of day means midnight, and one without a day the beginning of its month or year, unless a
    /// later field has a more exact date in the same period.
    static func find(_ block: borrowing MetadataBlock, _ texts: PNGTextChunks) -> (CaptureTime, CaptureDateSource)? {
        var period: (time: CaptureTime, source: CaptureDateSource)?
        for source in allCases where period == nil || !source.isModification {
            guard let time = source.time(block, texts), period?.time.contains(time) ?? true else { continue }
            guard time.isPeriod else { return (time, source) }
            period = (time, source)
        }
        return period
    }

    private func time(_ block: borrowing MetadataBlock, _ texts: PNGTextChunks) -> CaptureTime? {
        switch self {
        case .exifOriginal: Self.exif(block, rawValue, "Exif.Photo.SubSecTimeOriginal", "Exif.Photo.OffsetTimeOriginal")
        case .exifDigitized:
            Self.exif(block, rawValue, "Exif.Photo.SubSecTimeDigitized", "Exif.Photo.OffsetTimeDigitized")
        case .exifModified: Self.exif(block, rawValue, "Exif.Photo.SubSecTime", "Exif.Photo.OffsetTime")
        case .tiffOriginal: Self.exif(block, rawValue, "Exif.Photo.SubSecTimeOriginal", "Exif.Photo.OffsetTimeOriginal")
        case .xmpOriginal, .photoshopCreated, .xmpCreated, .xmpDigitized, .xmpModified:
            CaptureTime(xmp: block.text(rawValue)) ?? CaptureTime(exif: block.text(rawValue))
                ?? CaptureTime(xmpPeriod: block.text(rawValue))
        case .iptcCreated: Self.iptc(block, rawValue, "Iptc.Application2.TimeCreated")
        case .iptcDigitized: Self.iptc(block, rawValue, "Iptc.Application2.DigitizationTime")
        case .pngCreated: CaptureTime(png: texts.creationTime)
        case .pngModified: CaptureTime(xmp: texts.modificationTime)
        case .gps: CaptureTime(gps: block.text(rawValue), time: block.text("Exif.GPSInfo.GPSTimeStamp"))
        case .xmpGPS: CaptureTime(xmp: block.text(rawValue)).flatMap { $0.isPeriod ? nil : $0.atUTC }
        }
    }

    /// Reads an EXIF date. `OffsetTime` belongs to the date of the last change, but is used if no other date has an
    /// offset.
    private static func exif(
        _ block: borrowing MetadataBlock,
        _ date: String,
        _ subsec: String,
        _ offset: String
    ) -> CaptureTime? {
        let isOnly =
            block.text("Exif.Photo.OffsetTimeOriginal") == nil && block.text("Exif.Photo.OffsetTimeDigitized") == nil
        let changeOffset = isOnly ? block.text("Exif.Photo.OffsetTime") : nil
        return CaptureTime(
            exif: block.text(date),
            subsec: block.text(subsec),
            offset: block.text(offset) ?? changeOffset
        )
    }

    /// Reads an IPTC date and time. The time has an offset: "12:30:00+02:00".
    private static func iptc(_ block: borrowing MetadataBlock, _ date: String, _ time: String) -> CaptureTime? {
        guard let date = block.text(date) else { return nil }
        let timed = block.text(time).flatMap { CaptureTime(xmp: "\(date)T\($0)") }
        return timed ?? CaptureTime(xmp: date)
    }
}
