/// Reads the location of an image.
enum LocationReader {
    /// Returns the EXIF location, or else the XMP one.
    ///
    /// Latitude and longitude need their hemispheres. Values out of range are `nil`; so is exactly 0, 0, which cameras
    /// without a GPS fix write.
    static func location(_ block: borrowing MetadataBlock) -> PhotoMetadata.Coordinates? {
        let latitude =
            degrees(block.text("Exif.GPSInfo.GPSLatitude"), block.text("Exif.GPSInfo.GPSLatitudeRef"), "N", "S")
            ?? degrees(xmp: block.text("Xmp.exif.GPSLatitude"), "N", "S")
        let longitude =
            degrees(block.text("Exif.GPSInfo.GPSLongitude"), block.text("Exif.GPSInfo.GPSLongitudeRef"), "E", "W")
            ?? degrees(xmp: block.text("Xmp.exif.GPSLongitude"), "E", "W")
        guard let latitude, let longitude, (-90...90).contains(latitude), (-180...180).contains(longitude),
            latitude != 0 || longitude != 0
        else { return nil }
        return PhotoMetadata.Coordinates(latitude: latitude, longitude: longitude, altitude: altitude(block))
    }

    /// Parses "52/1 31/1 1234/100" and "N".
    private static func degrees(_ text: String?, _ hemisphere: String?, _ plus: String, _ minus: String) -> Double? {
        guard let text, let sign = sign(hemisphere, plus, minus) else { return nil }
        let parts = text.split(separator: " ").map { rational($0) }
        guard (1...3).contains(parts.count), parts.allSatisfy({ $0 != nil }) else { return nil }
        let numbers = parts.compactMap(\.self)
        return sign * zip(numbers, [1, 60, 3600]).reduce(0) { $0 + $1.0 / $1.1 }
    }

    /// Parses "52,31.5N" or "52,31,30N".
    private static func degrees(xmp text: String?, _ plus: String, _ minus: String) -> Double? {
        guard let text, let last = text.last, let sign = sign(String(last), plus, minus) else { return nil }
        let numbers = text.dropLast().split(separator: ",").map { Double($0) }
        guard (1...3).contains(numbers.count), numbers.allSatisfy({ $0?.isFinite == true }) else { return nil }
        return sign * zip(numbers.compactMap(\.self), [1, 60, 3600]).reduce(0) { $0 + $1.0 / $1.1 }
    }

    private static func sign(_ hemisphere: String?, _ plus: String, _ minus: String) -> Double? {
        switch hemisphere?.prefix(1).uppercased() {
        case plus: 1
        case minus: -1
        default: nil
        }
    }

    /// Returns metres; `AltitudeRef` 1 is below sea level.
    private static func altitude(_ block: borrowing MetadataBlock) -> Double? {
        guard let text = block.text("Exif.GPSInfo.GPSAltitude"), let metres = rational(Substring(text)),
            (-20_000...100_000).contains(metres)
        else { return nil }
        return block.text("Exif.GPSInfo.GPSAltitudeRef") == "1" ? -metres : metres
    }

    /// Parses a number such as "1234/100".
    ///
    /// 0/0 is 0, because cameras write it for a missing part; any other division by zero is `nil`.
    private static func rational(_ text: Substring) -> Double? {
        let parts = text.split(separator: "/")
        guard let first = parts.first, let over = Double(first) else { return nil }
        guard parts.count == 2 else { return parts.count == 1 ? over : nil }
        guard let under = Double(parts[1]) else { return nil }
        if under == 0 { return over == 0 ? 0 : nil }
        return over / under
    }
}
