import Foundation
import Glibc

/// The controlling terminal, which answers queries.
struct Terminal: ~Copyable {
    private let descriptor: Int32
    private let saved: termios

    /// The time, in milliseconds, in which a terminal answers, also over a slow connection.
    private static let timeout: Int32 = 2000

    /// The byte of Ctrl-C.
    private static let interrupt: UInt8 = 3

    /// Opens the controlling terminal; nil without one.
    init?() {
        descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var mode = termios()
        let isKnown = tcgetattr(descriptor, &mode) == 0
        saved = mode
        guard isKnown else { return nil }
    }

    deinit {
        restore()
        close(descriptor)
    }

    private func restore() {
        var saved = saved
        tcsetattr(descriptor, TCSAFLUSH, &saved)
    }

    /// Returns the size in pixels of an image that leaves half of the lines for text, at most 1,200 pixels a side.
    func imageSize() -> (width: Int, height: Int) {
        var size = winsize()
        let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_xpixel > 0 && size.ws_ypixel > 0
        // A cell of an unknown terminal is assumed to have 8 x 16 pixels.
        let width = isKnown ? Int(size.ws_xpixel) : 8 * max(40, Int(size.ws_col))
        let height = isKnown ? Int(size.ws_ypixel) : 16 * max(24, Int(size.ws_row))
        return (min(max(64, width), 1200), min(max(64, height / 2), 1200))
    }

    /// Asks the terminal for the protocol in which it shows images; nil if it shows none.
    ///
    /// The queries are kitty's query, XTVERSION for the terminal's name, and the primary device attributes, which
    /// every terminal answers: their answer is the last one.
    func graphics() -> TerminalGraphics? {
        // The console of Linux shows none, and prints queries that it does not know.
        guard !["linux", "dumb"].contains(ProcessInfo.processInfo.environment["TERM"] ?? "") else { return nil }
        var raw = saved
        // Ctrl-C is a byte meanwhile: the signal would end the program in this mode, without an echo for the shell.
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG)
        guard tcsetattr(descriptor, TCSAFLUSH, &raw) == 0 else { return nil }
        let queries = "\u{1B}_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\u{1B}\\\u{1B}[>q\u{1B}[c"
        guard
            Array(queries.utf8).withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) == queries.utf8.count
        else { return nil }
        let answers = answers()
        if answers.utf8.contains(Self.interrupt) {
            restore()
            _exit(128 + SIGINT)
        }
        return Self.graphics(inAnswers: answers)
    }

    /// Reads until the device attributes have arrived, the time is up, or the user interrupts.
    private func answers() -> String {
        var (text, buffer) = ("", [UInt8](repeating: 0, count: 256))
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while text.utf8.count < 4096, text.firstMatch(of: Self.attributes) == nil, poll(&waiting, 1, Self.timeout) == 1
        {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            text += String(decoding: buffer[..<count], as: UTF8.self)
            if text.utf8.contains(Self.interrupt) { break }
        }
        return text
    }

    /// The primary device attributes: `ESC [ ? 62 ; 4 c`.
    private static var attributes: Regex<(Substring, Substring)> { /\x1B\[\?([0-9;]*)c/ }

    /// Returns the best protocol of a terminal that gave these answers.
    static func graphics(inAnswers text: String) -> TerminalGraphics? {
        if text.contains("\u{1B}_Gi=31;OK") { return .kitty }
        if text.contains(/\x1BP>\|(iTerm2|WezTerm)/) { return .iterm }
        // Attribute 4 is Sixel.
        let attributes = text.firstMatch(of: attributes)?.1.split(separator: ";") ?? []
        return attributes.contains("4") ? .sixel : nil
    }
}
