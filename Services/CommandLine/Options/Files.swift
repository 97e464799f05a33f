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

/// Writes files that the user names; `-` is standard output.
enum OutputFile {
    /// Writes a file atomically: it is either complete or not there.
    static func write(_ bytes: [UInt8], to path: String) throws {
        if path == "-" {
            guard isatty(1) == 0 else {
                throw CommandFailure.usage("binary data is not written to a terminal; name a file with -o")
            }
            do {
                try FileDescriptor.standardOutput.writeAll(bytes)
            } catch {
                throw CommandFailure(message: "standard output cannot be written: \(error)", name: "not_written")
            }
            return
        }
        let writer = try OutputFileWriter(path)
        try writer.write(bytes)
        try writer.finish()
    }
}

/// A file that is written in pieces under a temporary name and renamed when it is complete.
struct OutputFileWriter {
    private let path: FilePath
    private let partial: FilePath
    private let file: FileDescriptor

    init(_ path: String) throws {
        self.path = FilePath(path)
        self.partial = FilePath(path + ".\(getpid()).part")
        do {
            file = try FileDescriptor.open(
                partial,
                .writeOnly,
                options: [.create, .truncate],
                permissions: [.ownerReadWrite, .groupRead, .otherRead]
            )
        } catch {
            throw CommandFailure(message: "\(path) cannot be written: \(error)", name: "not_written")
        }
    }

    func write(_ bytes: [UInt8]) throws {
        do {
            try file.writeAll(bytes)
        } catch {
            abandon()
            throw CommandFailure(message: "\(path) cannot be written: \(error)", name: "not_written")
        }
    }

    func finish() throws {
        try? file.close()
        guard rename(partial.string, path.string) == 0 else {
            let problem = Errno(rawValue: errno)
            unlink(partial.string)
            throw CommandFailure(message: "\(path) cannot be written: \(problem)", name: "not_written")
        }
    }

    /// Closes and deletes the incomplete file.
    func abandon() {
        try? file.close()
        unlink(partial.string)
    }
}
