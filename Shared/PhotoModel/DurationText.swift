/// Durations as text: a number and a unit, for example `60 s`, `1.5 min` or `250ms`.
enum DurationText {
    /// The units and their microseconds.
    static let units: [(name: String, microseconds: Double)] = [
        ("us", 1), ("ms", 1000), ("s", 1_000_000), ("min", 60_000_000), ("h", 3_600_000_000),
    ]

    /// Returns the microseconds of a text, rounded; nil if it is not a duration of at most 10¹⁵ microseconds.
    static func microseconds(_ text: String) -> Int64? {
        let digits = text.prefix { $0.isASCII && ($0.isNumber || "+-.eE".contains($0)) }
        let name = text.dropFirst(digits.count).drop { $0 == " " }
        guard let unit = units.first(where: { $0.name == name }), let number = Double(String(digits)) else {
            return nil
        }
        let microseconds = number * unit.microseconds
        return abs(microseconds) <= 1e15 ? Int64(microseconds.rounded()) : nil
    }
}
