import Glibc
import JSONValue
import SystemPackage

/// The output of a command: results on standard output, everything else on standard error.
///
/// Results are text, or with `--json` one JSON value or JSON lines. Color and progress appear on terminals only.
struct Output: Sendable {
    let isJSON: Bool
    /// True if standard output is a terminal.
    let isTerminal: Bool
    /// True if standard error is a terminal, on which a progress bar can be drawn.
    let showsProgress: Bool
    /// True if standard output is a terminal and `NO_COLOR` is not set (no-color.org).
    let isColoured: Bool

    init(json: Bool) {
        isJSON = json
        isTerminal = isatty(1) == 1
        let isDumb = getenv("TERM").map { String(cString: $0) } == "dumb"
        showsProgress = isatty(2) == 1 && !json && !isDumb
        isColoured = isTerminal && getenv("NO_COLOR") == nil && !isDumb
    }

    /// Prints a line of text. The caller makes names printable.
    func line(_ text: String) throws { try Self.write(text + "\n", to: .standardOutput) }

    func lines(_ lines: [String]) throws {
        guard !lines.isEmpty else { return }
        try line(lines.joined(separator: "\n"))
    }

    /// Prints a JSON value on a line of its own.
    func json(_ value: JSON) throws { try line(value.text) }

    /// Prints the value with `--json`, and the lines of text otherwise.
    func result(_ value: @autoclosure () -> JSON, text: () -> [String]) throws {
        if isJSON { try json(value()) } else { try lines(text()) }
    }

    /// Prints a line on standard error. A write error is ignored.
    func note(_ text: String) { try? Self.write(text + "\n", to: .standardError) }

    func report(_ failure: CommandFailure) {
        note(isJSON ? failure.json.text : "safelight: \(failure.message.printable) (\(failure.name))")
    }

    func bold(_ text: String) -> String { isColoured ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

    /// Writes the whole text.
    ///
    /// If the reader of standard output has exited (`safelight fetch | head`), the program exits silently.
    static func write(_ text: String, to file: FileDescriptor) throws { try write(Array(text.utf8), to: file) }

    /// Writes all bytes, as ``write(_:to:)-(String,_)`` does.
    static func write(_ bytes: [UInt8], to file: FileDescriptor) throws {
        do {
            try file.writeAll(bytes)
        } catch Errno.brokenPipe where file == .standardOutput {
            exit(0)
        } catch  where file == .standardOutput {
            throw CommandFailure(message: "standard output cannot be written: \(error)", name: "not_written")
        }
    }
}
