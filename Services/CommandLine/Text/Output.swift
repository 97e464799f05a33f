import Glibc
import JSONValue
import SystemPackage

/// Where a command speaks: results on standard output, everything else on standard error.
///
/// People get text, programs (`--json`) one JSON value or JSON lines. Colour and progress appear on a terminal only.
struct Output: Sendable {
    let isJSON: Bool
    /// Standard output is a terminal.
    let isTerminal: Bool
    /// Standard error is a terminal, so that a progress bar can be drawn.
    let showsProgress: Bool
    /// A terminal that did not ask to be spared colours (no-color.org).
    let isColoured: Bool

    init(json: Bool) {
        isJSON = json
        isTerminal = isatty(1) == 1
        let isDumb = getenv("TERM").map { String(cString: $0) } == "dumb"
        showsProgress = isatty(2) == 1 && !json && !isDumb
        isColoured = isTerminal && getenv("NO_COLOR") == nil && !isDumb
    }

    /// A line for people, made printable by its writer.
    func line(_ text: String) throws { try Self.write(text + "\n", to: .standardOutput) }

    func lines(_ lines: [String]) throws {
        guard !lines.isEmpty else { return }
        try line(lines.joined(separator: "\n"))
    }

    /// A JSON value on a line of its own.
    func json(_ value: JSON) throws { try line(value.text) }

    /// The value for programs, or the lines for people.
    func result(_ value: @autoclosure () -> JSON, people: () -> [String]) throws {
        if isJSON { try json(value()) } else { try lines(people()) }
    }

    /// A remark on standard error. That it cannot be written is no reason to stop.
    func note(_ text: String) { try? Self.write(text + "\n", to: .standardError) }

    func report(_ failure: CommandFailure) {
        note(isJSON ? failure.json.text : "safelight: \(failure.message.printable) (\(failure.name))")
    }

    func bold(_ text: String) -> String { isColoured ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

    /// Writes everything, whatever the size.
    ///
    /// A reader that has gone away (`safelight fetch | head`) ends the program as it ends others: silently.
    static func write(_ text: String, to file: FileDescriptor) throws {
        do {
            try file.writeAll(text.utf8)
        } catch Errno.brokenPipe where file == .standardOutput {
            exit(0)
        } catch  where file == .standardOutput {
            throw CommandFailure(message: "standard output cannot be written: \(error)", name: "not_written")
        }
    }
}
