import Glibc
import SystemPackage

/// Writes files that the user names; `-` is standard output.
enum OutputFile {
    /// Refuses the extension of another format for a command that writes JPEG.
    static func requireJPEG(_ path: String) throws {
        guard path != "-", let name = FilePath(path).lastComponent, let fileExtension = name.extension?.lowercased()
        else { return }
        guard ["jpg", "jpeg", "jpe", "jfif"].contains(fileExtension) else {
            throw CommandFailure.usage(
                "the image is a JPEG and cannot be written as .\(fileExtension.prefix(20)); use .jpg"
            )
        }
    }

    /// Writes a file atomically: it is either complete or absent.
    ///
    /// - Parameter replaces: false to refuse a path that exists
    static func write(_ bytes: [UInt8], to path: String, replaces: Bool = true) throws {
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
        let writer = try OutputFileWriter(path, replaces: replaces)
        try writer.write(bytes)
        try writer.finish()
    }
}
