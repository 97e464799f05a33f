import Basics
import Glibc
public import Logging

/// Logging for services: one line per event on standard error. Control characters in events are escaped.
///
/// `2026-03-01T12:00:00.123456Z info catalog listening address=ipc:///run/…`
public enum ServiceLog {
    /// Maximum length of a line in bytes; longer lines are truncated.
    public static let maxLineBytes = 8 << 10

    /// Creates a logger for standard error.
    public static func logger(label: String, level: Logger.Level) -> Logger {
        logger(label: label, level: level) { line in
            _ = write(2, line, line.count)
        }
    }

    /// Creates a logger that passes each line, including its newline, to `write`.
    public static func logger(
        label: String,
        level: Logger.Level,
        write: @escaping @Sendable ([UInt8]) -> Void
    ) -> Logger {
        Logger(label: label) { label in
            var handler = ServiceLogHandler(label: label, now: WallClock.nowMicroseconds, write: write)
            handler.logLevel = level
            return handler
        }
    }

    /// Formats a date in microseconds since 1970 as `2026-03-01T12:00:00.123456Z`.
    static func format(_ microseconds: Int64) -> String {
        let (whole, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000)
        var seconds = time_t(whole)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ number: Int, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let date = [
            padded(Int(parts.tm_year) + 1900, 4), padded(Int(parts.tm_mon) + 1, 2), padded(Int(parts.tm_mday), 2),
        ].joined(separator: "-")
        let time = [padded(Int(parts.tm_hour), 2), padded(Int(parts.tm_min), 2), padded(Int(parts.tm_sec), 2)]
            .joined(separator: ":")
        return "\(date)T\(time).\(padded(Int(fraction), 6))Z"
    }

    /// Escapes characters that would affect a terminal or split a line.
    static func escape(_ text: some StringProtocol) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            default:
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse:
                    result += "\\u{\(String(scalar.value, radix: 16))}"
                default: result.unicodeScalars.append(scalar)
                }
            }
        }
        return result
    }
}
