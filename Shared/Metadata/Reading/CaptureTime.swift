/// The capture time of an image, parsed from the texts that cameras write.
struct CaptureTime: Hashable {
    /// Microseconds since 1970 by the camera's own clock.
    var local: Int64
    /// Seconds east of UTC; nil if the file does not contain the offset.
    var offset: Int?
    /// True if `local` is UTC, as that of GPS: the offset is unknown, but the point in time is not.
    var isUTC = false
    /// The length in microseconds of the period that the field names: a day, a month or a year, of which `local` is the
    /// beginning; 0 if the field has a time of day.
    var duration: Int64 = 0

    /// True if the field has no time of day.
    var isPeriod: Bool { duration > 0 }

    private static let microsecondsOfDay: Int64 = 86_400_000_000

    /// Returns true if another field has a more exact time in the period of this one.
    func contains(_ other: CaptureTime) -> Bool {
        !other.isUTC && other.duration < duration && (0..<duration).contains(other.local - local)
    }

    /// The same point in time in UTC, without the offset.
    var atUTC: CaptureTime {
        var time = self
        (time.local, time.offset, time.isUTC) = (utc(fallbackOffset: 0), nil, true)
        return time
    }

    /// Returns microseconds since 1970-01-01T00:00:00Z.
    func utc(fallbackOffset: Int) -> Int64 { local - (isUTC ? 0 : Int64(offset ?? fallbackOffset)) * 1_000_000 }

    /// Returns the offset of the time zone of a place at this time.
    func offset(at place: PhotoMetadata.Coordinates?) -> Int? {
        guard let place, let zones = PlaceTimeZones.table else { return nil }
        return isUTC ? zones.offset(at: local, place) : zones.offset(local: local, place)
    }

    /// Parses an EXIF date "2024:06:01 12:30:00" and the fields that belong to it. Some programs append a fraction and
    /// an offset as in XMP, or write the day only.
    ///
    /// Returns `nil` for invalid dates, blanks, and the zeros of a camera whose clock was never set.
    init?(exif text: String?, subsec: String? = nil, offset: String? = nil) {
        guard let text else { return nil }
        self.offset = offset.flatMap(Self.offset)
        if let seconds = Self.seconds(exif: text) {
            local = seconds * 1_000_000 + Self.fraction(subsec ?? "")
        } else if let midnight = Self.seconds(exif: text + " 00:00:00") {
            (local, duration) = (midnight * 1_000_000, Self.microsecondsOfDay)
        } else {
            let end = text.dropFirst(19)
            let digits = end.first == "." ? end.dropFirst().prefix { $0.isASCII && $0.isNumber } : ""
            let zone = end.drop { $0 == "." || $0.isNumber }
            guard !end.isEmpty, let seconds = Self.seconds(exif: String(text.prefix(19))),
                zone.isEmpty || Self.offset(String(zone)) != nil
            else { return nil }
            local = seconds * 1_000_000 + Self.fraction(digits.isEmpty ? subsec ?? "" : String(digits))
            self.offset = Self.offset(String(zone)) ?? self.offset
        }
    }

    private static func seconds(exif text: String) -> Int64? {
        let separators: Set<Character> = [":", " ", "-", "/", "T"]
        let parts = text.split(omittingEmptySubsequences: false, whereSeparator: separators.contains)
        let numbers = parts.compactMap { $0.allSatisfy { $0.isASCII && $0.isNumber } ? Int($0) : nil }
        guard parts.count == 6, numbers.count == 6, parts[0].count == 4 else { return nil }
        return seconds(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])
    }

    /// Parses an XMP date "2024-06-01T12:30:00.25+02:00" or "2024-06-01".
    ///
    /// Returns `nil` for dates without a day; see ``init(xmpPeriod:)``.
    init?(xmp text: String?) {
        guard let text else { return nil }
        let mark = text.firstIndex(of: "T") ?? text.endIndex
        let date = text[..<mark].split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard mark < text.endIndex else {
            guard date.count == 3, text.utf8.count == 10, let year = date[0], let month = date[1], let day = date[2],
                let seconds = Self.seconds(year, month, day, 0, 0, 0)
            else { return nil }
            (local, duration) = (seconds * 1_000_000, Self.microsecondsOfDay)
            return
        }
        let rest = text[text.index(after: mark)...]
        let end = rest.firstIndex { $0 == "Z" || $0 == "+" || $0 == "-" } ?? rest.endIndex
        let clock = rest[..<end].split(separator: ":", omittingEmptySubsequences: false)
        guard date.count == 3, let year = date[0], let month = date[1], let day = date[2],
            (2...3).contains(clock.count),
            let hour = Int(clock[0]), let minute = Int(clock[1])
        else { return nil }
        let second = clock.count == 3 ? clock[2].split(separator: ".") : ["0"]
        guard let whole = second.first.flatMap({ Int($0) }),
            let seconds = Self.seconds(year, month, day, hour, minute, whole)
        else { return nil }
        local = seconds * 1_000_000 + Self.fraction(second.count > 1 ? String(second[1]) : "")
        offset = end < rest.endIndex ? Self.offset(String(rest[end...])) : nil
    }

    /// Parses an XMP date without a day, "2024-06" or "2024", as scanned images have. The time is the beginning of the
    /// period.
    init?(xmpPeriod text: String?) {
        let parts = (text ?? "").split(separator: "-", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { $0.allSatisfy { $0.isASCII && $0.isNumber } ? Int($0) : nil }
        guard (1...2).contains(parts.count), numbers.count == parts.count, parts[0].utf8.count == 4 else { return nil }
        let (year, month) = (numbers[0], numbers.count == 2 ? numbers[1] : nil)
        let isLast = month == nil || month == 12
        guard parts.count == 1 || parts[1].utf8.count == 2, year < 9999,
            let first = Self.seconds(year, month ?? 1, 1, 0, 0, 0),
            let next = Self.seconds(isLast ? year + 1 : year, isLast ? 1 : (month ?? 0) + 1, 1, 0, 0, 0)
        else { return nil }
        (local, duration) = (first * 1_000_000, (next - first) * 1_000_000)
    }

    /// Parses the date and the time of GPS, "2024:06:01" and "12/1 30/1 31/2", which are UTC.
    init?(gps date: String?, time: String?) {
        guard let date, let time else { return nil }
        let parts = time.split(separator: " ").compactMap(LocationReader.rational)
        guard parts.count == 3, parts[0] == parts[0].rounded(), parts[1] == parts[1].rounded(),
            (0..<24).contains(parts[0]), (0..<60).contains(parts[1]), (0...60).contains(parts[2]),
            let midnight = CaptureTime(exif: "\(date) 00:00:00")
        else { return nil }
        local = midnight.local + Int64(((parts[0] * 3600 + parts[1] * 60 + parts[2]) * 1_000_000).rounded())
        isUTC = true
    }

    /// Parses the creation time of a PNG: "Sat, 01 Jun 2024 12:30:00 +0200", as the standard recommends, or the form of
    /// XMP or of EXIF with an offset.
    init?(png text: String?) {
        guard let text else { return nil }
        guard
            let time = Self.rfc1123(text) ?? CaptureTime(xmp: text)
                ?? CaptureTime(exif: String(text.prefix(19)), offset: String(text.dropFirst(19)))
        else { return nil }
        self = time
    }

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    private static func rfc1123(_ text: String) -> CaptureTime? {
        let words = text.split { $0 == " " || $0 == "," }.drop { $0.first?.isNumber != true }.map(String.init)
        guard words.count >= 4, let month = months.firstIndex(of: words[1].prefix(3).lowercased()) else { return nil }
        let zone = words.count > 4 ? words[4] : ""
        let stamp = "\(words[2]):\(month + 1):\(words[0]) \(words[3])"
        return CaptureTime(exif: stamp, offset: ["GMT", "UT", "UTC"].contains(zone) ? "Z" : zone)
    }

    /// Converts "123" to 123,000 microseconds. Digits after the sixth are dropped.
    private static func fraction(_ digits: String) -> Int64 {
        let kept = digits.prefix { $0.isASCII && $0.isNumber }.prefix(6)
        guard let number = Int64(kept) else { return 0 }
        return (0..<6 - kept.count).reduce(number) { value, _ in value * 10 }
    }

    /// Parses "+02:00", "-0530" or "Z"; up to fifteen hours, the limit in EXIF.
    static func offset(_ text: String) -> Int? {
        if text == "Z" { return 0 }
        guard let sign = text.first, sign == "+" || sign == "-" else { return nil }
        let digits = text.dropFirst().filter { $0 != ":" }
        guard digits.count == 4 || digits.count == 2, digits.allSatisfy({ $0.isASCII && $0.isNumber }),
            let hours = Int(digits.prefix(2)), let minutes = digits.count == 2 ? 0 : Int(digits.suffix(2)),
            minutes < 60,
            hours * 60 + minutes <= 15 * 60
        else { return nil }
        return (sign == "-" ? -1 : 1) * (hours * 3600 + minutes * 60)
    }

    /// Returns the seconds since 1970 of a date of the Gregorian calendar, years 1800...9999.
    private static func seconds(
        _ year: Int,
        _ month: Int,
        _ day: Int,
        _ hour: Int,
        _ minute: Int,
        _ second: Int
    ) -> Int64? {
        guard (1800...9999).contains(year), (1...12).contains(month), (0...23).contains(hour),
            (0...59).contains(minute),
            (0...60).contains(second)
        else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (1...lengths[month - 1]).contains(day) else { return nil }
        // Years are counted from March, so that the leap day comes last (Howard Hinnant's days_from_civil).
        let shifted = month > 2 ? year : year - 1
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        return Int64(days * 86_400 + hour * 3600 + minute * 60 + second)
    }
}
