import PhotoModel

/// Formats dates, sizes and durations for output.
enum QuantityFormatter {
    /// Returns an instant to the second in local time with its offset, "2024-05-01 14:30:00 +02:00", or in UTC, marked
    /// as such, if no offset is known.
    ///
    /// - Parameters:
    ///   - microseconds: since 1970-01-01T00:00:00Z
    ///   - offset: seconds east of UTC
    static func time(_ microseconds: Int64, offset: Int? = nil) -> String {
        shortTime(microseconds, offset: offset) + " " + (offset.map(Self.offset) ?? "UTC")
    }

    /// Returns an instant with its fraction of a second, if it has one: "2024-05-01 14:30:00.25 +02:00".
    static func exactTime(_ microseconds: Int64, offset: Int? = nil) -> String {
        localText(microseconds, offset) + " " + (offset.map(Self.offset) ?? "UTC")
    }

    private static func localText(_ microseconds: Int64, _ offset: Int?) -> String {
        let shifted = microseconds.addingReportingOverflow(Int64(offset ?? 0) * 1_000_000)
        var text = Timestamp.text(shifted.overflow ? microseconds : shifted.partialValue)
        text.removeLast()
        if text.contains(".") { while text.last == "0" { text.removeLast() } }
        return text.replacing("T", with: " ", maxReplacements: 1)
    }

    /// Returns an instant to the second and without offset, for lists.
    static func shortTime(_ microseconds: Int64, offset: Int? = nil) -> String {
        String(localText(microseconds, offset).prefix { $0 != "." })
    }

    /// Returns an offset from UTC: "+02:00".
    static func offset(_ seconds: Int) -> String {
        let minutes = abs(seconds) / 60
        return (seconds < 0 ? "-" : "+") + twoDigits(minutes / 60) + ":" + twoDigits(minutes % 60)
    }

    /// Returns a number of bytes with powers of ten (SI prefixes): "1.5 MB".
    static func bytes(_ count: Int64) -> String {
        var value = Double(count)
        for unit in ["bytes", "kB", "MB", "GB"] {
            if value < 1000 { return unit == "bytes" ? "\(count) bytes" : "\(oneDigit(value)) \(unit)" }
            value /= 1000
        }
        return "\(oneDigit(value)) TB"
    }

    /// Returns a duration: "0:07", "12:30", "1:02:03".
    static func clock(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        let rest = twoDigits(Int(seconds % 60))
        guard seconds >= 3600 else { return "\(seconds / 60):\(rest)" }
        return "\(seconds / 3600):\(twoDigits(Int(seconds / 60 % 60))):\(rest)"
    }

    /// Returns a rate: "0.8", "12.3", "140".
    static func rate(_ perSecond: Double) -> String {
        perSecond.isFinite ? (perSecond < 100 ? oneDigit(perSecond) : "\(Int(perSecond.rounded()))") : "-"
    }

    /// Returns a location: "52.50000 N 13.40000 E, 34 m".
    static func location(_ location: Location) -> String {
        let latitude = fiveDigits(abs(location.latitude)) + (location.latitude < 0 ? " S" : " N")
        let longitude = fiveDigits(abs(location.longitude)) + (location.longitude < 0 ? " W" : " E")
        return "\(latitude) \(longitude)" + (location.altitude.map { ", \(Int($0.rounded())) m" } ?? "")
    }

    /// Returns a number with a noun: "1 file", "2 files".
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    /// Returns the first names of a list, and the number of the others: "a, b and 3 more".
    static func list(_ first: [String], of count: Int) -> String {
        first.joined(separator: ", ") + (count > first.count ? " and \(count - first.count) more" : "")
    }

    private static func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func oneDigit(_ value: Double) -> String {
        let tenths = Int64((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func fiveDigits(_ value: Double) -> String {
        let units = Int64((value * 100_000).rounded())
        let digits = String(units % 100_000)
        return "\(units / 100_000)." + String(repeating: "0", count: 5 - digits.count) + digits
    }
}
