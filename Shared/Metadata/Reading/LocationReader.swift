/// Reads the location of an image.
enum LocationReader {
    /// Returns the EXIF location, or else the XMP one. Latitude and longitude are of the same standard.
    ///
    /// Latitude and longitude need their hemispheres. Values out of range are `nil`; so is exactly 0, 0, which cameras
    /// without a GPS fix write.
    static func location(_ block: borrowing MetadataBlock) -> PhotoMetadata.Coordinates? {
        let (latitudes, longitudes) = (MetadataFields.latitudes, MetadataFields.longitudes)
        if let place = place(
            degrees(block.text(latitudes[0]), block.text("Exif.GPSInfo.GPSLatitudeRef"), "N", "S"),
            degrees(block.text(longitudes[0]), block.text("Exif.GPSInfo.GPSLongitudeRef"), "E", "W")
        ) {
            return with(altitude(block, MetadataFields.altitudes), place)
        }
        guard
            let place = place(
                degrees(xmp: block.text(latitudes[1]), block.text(latitudes[1] + "Ref"), "N", "S"),
                degrees(xmp: block.text(longitudes[1]), block.text(longitudes[1] + "Ref"), "E", "W")
            )
        else { return nil }
        return with(altitude(block, MetadataFields.altitudes.reversed()), place)
    }

    private static func place(_ latitude: Double?, _ longitude: Double?) -> (latitude: Double, longitude: Double)? {
        guard let latitude, let longitude, (-90...90).contains(latitude), (-180...180).contains(longitude),
            latitude != 0 || longitude != 0
        else { return nil }
        return (latitude, longitude)
    }

    private static func with(
        _ altitude: Double?,
        _ place: (latitude: Double, longitude: Double)
    ) -> PhotoMetadata.Coordinates {
        PhotoMetadata.Coordinates(latitude: place.latitude, longitude: place.longitude, altitude: altitude)
    }

    /// Parses "52/1 31/1 1234/100" and "N".
    private static func degrees(_ text: String?, _ hemisphere: String?, _ plus: String, _ minus: String) -> Double? {
        guard let text else { return nil }
        let parts = text.split(separator: " ").map { rational($0) }
        guard (1...3).contains(parts.count), parts.allSatisfy({ $0 != nil }), let sign = sign(hemisphere, plus, minus)
        else { return text.contains("/") ? nil : degrees(written: text, hemisphere, plus, minus) }
        let numbers = parts.compactMap(\.self)
        return sign * zip(numbers, [1, 60, 3600]).reduce(0) { $0 + $1.0 / $1.1 }
    }

    /// Parses the text that old cameras write instead of numbers: "52 deg 31' 30.5\"", "N 52.525" or "-33.85".
    ///
    /// The hemisphere may be in the text itself, as its first or last letter or as a sign.
    private static func degrees(written text: String, _ hemisphere: String?, _ plus: String, _ minus: String) -> Double?
    {
        guard text.count <= 64 else { return nil }
        let numbers = text.split { !$0.isASCII || !($0.isNumber || $0 == ".") }.map { Double($0) }
        guard (1...3).contains(numbers.count), numbers.allSatisfy({ $0 != nil }),
            numbers.dropFirst().allSatisfy({ ($0 ?? 61) <= 60 }), !text.dropFirst().contains("-"),
            let sign = sign(hemisphere, plus, minus) ?? sign(text.prefix(1).description, plus, minus)
                ?? sign(text.suffix(1).description, plus, minus) ?? (text.hasPrefix("-") ? -1 : nil)
                ?? (text.hasPrefix("+") ? 1 : nil)
        else { return nil }
        return sign * zip(numbers.compactMap(\.self), [1, 60, 3600]).reduce(0) { $0 + $1.0 / $1.1 }
    }

    /// Parses "52,31.5N" or "52,31,30N", as the standard has it, or "52.525" with a sign, or with the hemisphere in a
    /// field of its own, as Photos for Mac writes it.
    private static func degrees(xmp text: String?, _ hemisphere: String?, _ plus: String, _ minus: String) -> Double? {
        guard let text, !text.contains("/") else { return nil }
        guard let last = text.last, let sign = sign(String(last), plus, minus) else {
            return degrees(written: text, hemisphere, plus, minus)
        }
        // A small number of minutes may have an exponent, as in "52,6e-05N".
        let numbers = text.dropLast().split(separator: ",").map { Double($0) ?? -1 }
        guard (1...3).contains(numbers.count), numbers.allSatisfy({ (0...180).contains($0) }),
            numbers.dropFirst().allSatisfy({ $0 <= 60 })
        else { return degrees(written: text, nil, plus, minus) }
        return sign * zip(numbers, [1, 60, 3600]).reduce(0) { $0 + $1.0 / $1.1 }
    }

    private static func sign(_ hemisphere: String?, _ plus: String, _ minus: String) -> Double? {
        switch hemisphere?.prefix(1).uppercased() {
        case plus: 1
        case minus: -1
        default: nil
        }
    }

    /// Returns the altitude in metres; `AltitudeRef` 1 is below sea level.
    private static func altitude(_ block: borrowing MetadataBlock, _ fields: [String]) -> Double? {
        for field in fields {
            guard let text = block.text(field), let metres = number(Substring(text)),
                (-20_000...100_000).contains(metres)
            else { continue }
            return block.text(field + "Ref") == "1" ? -metres : metres
        }
        return nil
    }

    /// Parses a number such as "1234/100"; 0/0 means unknown.
    static func number(_ text: Substring) -> Double? { text.hasSuffix("/0") ? nil : rational(text) }

    /// Parses a part of degrees or of a time, such as "1234/100".
    ///
    /// 0/0 is 0, because cameras write it for a missing part; any other division by zero is `nil`.
    static func rational(_ text: Substring) -> Double? {
        let parts = text.split(separator: "/")
        guard let first = parts.first, let over = Double(first) else { return nil }
        guard parts.count == 2 else { return parts.count == 1 ? over : nil }
        guard let under = Double(parts[1]) else { return nil }
        if under == 0 { return over == 0 ? 0 : nil }
        return over / under
    }
}
