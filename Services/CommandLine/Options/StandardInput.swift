import SystemPackage

/// Reads standard input, or another open file, line by line. A read error is thrown, not treated as the end of the
/// input.
final class StandardInput {
    private let file: FileDescriptor
    private var buffer: [UInt8] = []
    /// The beginning of the next line.
    private var start = 0
    /// The bytes that were searched for the end of that line.
    private var searched = 0
    private var isAtEnd = false

    private static let newline = UInt8(ascii: "\n")

    init(_ file: FileDescriptor = .standardInput) { self.file = file }

    /// Returns the next line without its end; nil after the last. Invalid UTF-8 is replaced by U+FFFD.
    ///
    /// - Throws: ``CommandFailure`` `not_read`
    func line() throws -> String? {
        while true {
            if let end = buffer[searched...].firstIndex(of: Self.newline) { return removeLine(to: end) }
            searched = buffer.count
            guard !isAtEnd else { return start < buffer.count ? removeLine(to: buffer.count) : nil }
            buffer.removeFirst(start)
            (start, searched) = (0, buffer.count)
            try readMore()
        }
    }

    private func removeLine(to end: Int) -> String {
        let line = String(decoding: buffer[start..<end], as: UTF8.self)
        start = min(end + 1, buffer.count)
        searched = start
        return line
    }

    private func readMore() throws {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        do {
            let count = try chunk.withUnsafeMutableBytes { try file.read(into: $0) }
            buffer += chunk[..<count]
            isAtEnd = count == 0
        } catch {
            throw CommandFailure(message: "standard input cannot be read: \(error)", name: "not_read")
        }
    }
}
