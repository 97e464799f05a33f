import Glibc
import SystemPackage

/// Reads files that the user names.
enum InputFile {
    /// Returns the bytes of a file, or of standard input for `-`.
    ///
    /// - Throws: ``CommandFailure`` `limit_exceeded` if there are more than `limit` bytes
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        do {
            let file = path == "-" ? FileDescriptor.standardInput : try FileDescriptor.open(path, .readOnly)
            defer { if path != "-" { try? file.close() } }
            var bytes: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = try chunk.withUnsafeMutableBytes { try file.read(into: $0) }
                if count == 0 { return bytes }
                bytes += chunk[..<count]
                guard bytes.count <= limit else {
                    throw CommandFailure(message: "\(path) has more than \(limit) bytes", name: "limit_exceeded")
                }
            }
        } catch let error as Errno {
            throw CommandFailure(message: "\(path) cannot be read: \(error)", name: "not_read")
        }
    }
}
