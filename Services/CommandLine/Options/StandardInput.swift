import SystemPackage

/// Reads standard input, or another open file, line by line. An error of reading is not taken for the end.
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

    /// Returns the next line without its end; nil after the last. Bytes that are not UTF-8 are repaired.
    ///
    /// - Throws: ``CommandFailure`` `not_read`
    func line() throws -> String? {
        while true {
            if let end = buffer[searched...].firstIndex(of: Self.newline) { return take(end) }
            searched = buffer.count
            guard !isAtEnd else { return start < buffer.count ? take(buffer.count) : nil }
            buffer.removeFirst(start)
            (start, searched) = (0, buffer.count)
            try readMore()
        }
    }

    private func take(_ end: Int) -> String {
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
