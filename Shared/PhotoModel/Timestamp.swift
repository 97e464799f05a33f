/// Conversion between RFC 3339 text and microseconds since 1970-01-01T00:00:00Z.
public enum Timestamp {
    /// The years 1 to 9999, the range of RFC 3339.
    public static let range: ClosedRange<Int64> = -62_135_596_800_000_000...253_402_300_799_999_999

    /// The length of the text of a day without a time, `2024-05-01`.
    static let dayLength = 10

    /// Parses `2024-05-01T12:30:00.25+02:00`, or `2024-05-01` as its midnight in UTC; `nil` for anything else.
    ///
    /// Digits below a microsecond are dropped. Leap seconds are refused.
    public static func parse(_ text: String) -> Int64? {
        var reader = Reader(bytes: Array(text.utf8))
        guard let year = reader.readNumber(4, in: 1...9999), reader.consume("-"),
            let month = reader.readNumber(2, in: 1...12), reader.consume("-"),
            let day = reader.readNumber(2, in: 1...days(inMonth: month, of: year))
        else { return nil }
        var seconds = daysSince1970(year, month, day) * 86_400
        if reader.isAtEnd { return seconds * 1_000_000 }
        guard reader.consume("T") || reader.consume("t") || reader.consume(" "),
            let hour = reader.readNumber(2, in: 0...23), reader.consume(":"),
            let minute = reader.readNumber(2, in: 0...59), reader.consume(":"),
            let second = reader.readNumber(2, in: 0...59)
        else { return nil }
        seconds += hour * 3600 + minute * 60 + second
        var fraction: Int64 = 0
        if reader.consume(".") {
            guard let digits = reader.readFraction() else { return nil }
            fraction = digits
        }
        guard let offset = reader.readOffset(), reader.isAtEnd else { return nil }
        return (seconds - offset) * 1_000_000 + fraction
    }

    /// Returns the text in UTC with six decimals of the second, or none if they are zero; clamped to ``range``.
    public static func text(_ microseconds: Int64) -> String {
        let clamped = min(max(microseconds, range.lowerBound), range.upperBound)
        let (days, time) = floorDivide(clamped, 86_400_000_000)
        let (year, month, day) = date(daysSince1970: days)
        let seconds = time / 1_000_000
        let fraction = time % 1_000_000
        return String(unsafeUninitializedCapacity: 27) { text in
            var end = 0
            func write(_ number: Int64, _ width: Int, _ separator: Unicode.Scalar) {
                var number = number
                for position in (end..<end + width).reversed() {
                    text[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10)
                    number /= 10
                }
                text[end + width] = UInt8(ascii: separator)
                end += width + 1
            }
            write(year, 4, "-")
            write(month, 2, "-")
            write(day, 2, "T")
            write(seconds / 3600, 2, ":")
            write(seconds / 60 % 60, 2, ":")
            write(seconds % 60, 2, fraction == 0 ? "Z" : ".")
            if fraction != 0 { write(fraction, 6, "Z") }
            return end
        }
    }

    static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    static func floorDivide(_ value: Int64, _ divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    // Conversion between days and dates of the proleptic Gregorian calendar, in eras of 400 years that begin in March,
    // so that the leap day is the last day of a year.

    private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let (era, yearOfEra) = floorDivide(month <= 2 ? year - 1 : year, 400)
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    static func date(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }

    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        var isAtEnd: Bool { position == bytes.count }

        mutating func consume(_ byte: Unicode.Scalar) -> Bool {
            guard position < bytes.count, bytes[position] == UInt8(truncatingIfNeeded: byte.value) else { return false }
            position += 1
            return true
        }

        private mutating func readDigit() -> Int64? {
            guard position < bytes.count, (0x30...0x39).contains(bytes[position]) else { return nil }
            position += 1
            return Int64(bytes[position - 1] - 0x30)
        }

        mutating func readNumber(_ width: Int, in range: ClosedRange<Int64>) -> Int64? {
            var value: Int64 = 0
            for _ in 0..<width {
                guard let digit = readDigit() else { return nil }
                value = value * 10 + digit
            }
            return range.contains(value) ? value : nil
        }

        /// Reads one to nine digits and returns them in microseconds.
        mutating func readFraction() -> Int64? {
            var value: Int64 = 0
            var count = 0
            while let digit = readDigit() {
                if count < 6 { value = value * 10 + digit }
                count += 1
            }
            guard (1...9).contains(count) else { return nil }
            for _ in min(count, 6)..<6 { value *= 10 }
            return value
        }

        /// Reads the offset in seconds east of UTC.
        mutating func readOffset() -> Int64? {
            if consume("Z") || consume("z") { return 0 }
            let sign: Int64 = consume("-") ? -1 : 1
            guard sign < 0 || consume("+"), let hour = readNumber(2, in: 0...23), consume(":"),
                let minute = readNumber(2, in: 0...59)
            else { return nil }
            return sign * (hour * 3600 + minute * 60)
        }
    }
}
