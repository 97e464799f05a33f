import ArgumentParser
import CSixel
import Foundation
import Glibc

/// A protocol in which a terminal shows images.
///
/// - Source: kitty's "Terminal graphics protocol", iTerm2's "Inline Images Protocol", DEC's STD 070 for Sixel
enum TerminalGraphics: String, CaseIterable, ExpressibleByArgument, Sendable {
    case kitty, iterm, sixel

    /// The maximum payload of one of kitty's control sequences, in characters of Base64.
    private static let maxPayload = 4096

    /// Returns the bytes that make a terminal show a PNG image at the cursor, and end with a new line.
    ///
    /// - Throws: ``CommandFailure`` if the image cannot be converted, which only Sixel needs
    func sequence(png: [UInt8]) throws -> [UInt8] {
        switch self {
        case .kitty: Array(Self.kitty(Data(png).base64EncodedString()).utf8)
        case .iterm:
            Array(
                ("\u{1B}]1337;File=inline=1;size=\(png.count);preserveAspectRatio=1:"
                    + Data(png).base64EncodedString() + "\u{07}\n").utf8
            )
        case .sixel: try Self.sixel(png) + Array("\n".utf8)
        }
    }

    private static func kitty(_ payload: String) -> String {
        var (rest, text) = (Substring(payload), "")
        while true {
            let part = rest.prefix(maxPayload)
            rest = rest.dropFirst(maxPayload)
            // q=2: the terminal sends no answer, because none is read.
            let keys = text.isEmpty ? "a=T,f=100,q=2," : ""
            text += "\u{1B}_G\(keys)m=\(rest.isEmpty ? 0 : 1);\(part)\u{1B}\\"
            if rest.isEmpty { return text + "\n" }
        }
    }

    /// Converts an image with libsixel, which reduces its colors to 256 and dithers.
    private static func sixel(_ png: [UInt8]) throws -> [UInt8] {
        let source = try UnnamedFile()
        let result = try UnnamedFile()
        try source.write(png)
        var encoder: OpaquePointer?
        guard sixel_encoder_new(&encoder, nil) == 0, let encoder else { throw failure() }
        defer { sixel_encoder_unref(encoder) }
        guard sixel_encoder_setopt(encoder, Int32(UInt8(ascii: "o")), result.path) == 0,
            sixel_encoder_encode(encoder, source.path) == 0
        else { throw failure() }
        return try result.read()
    }

    private static func failure() -> CommandFailure {
        let reason = sixel_helper_get_additional_message().map { String(cString: $0) } ?? ""
        return CommandFailure(message: "the image cannot be converted to Sixel: \(reason)", name: "not_converted")
    }
}

/// A file without a name in the file system, for a library that reads and writes files by path.
private struct UnnamedFile: ~Copyable {
    private let descriptor: Int32

    init() throws {
        var template = Array((NSTemporaryDirectory() + "/safelight-XXXXXX").utf8CString)
        descriptor = mkstemp(&template)
        guard descriptor >= 0 else {
            throw CommandFailure(
                message:
                    "no temporary file can be created in \(NSTemporaryDirectory()): "
                    + String(cString: strerror(errno)),
                name: "not_written"
            )
        }
        unlink(template)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    deinit { close(descriptor) }

    var path: String { "/proc/self/fd/\(descriptor)" }

    func write(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

    func read() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
}
