import Glibc
import PhotoModel
import SystemPackage

/// The file in which a reader of changes remembers how far it has come: one token on a line.
///
/// Written under another name, made durable and renamed: whatever happens, the file holds the token before or after.
struct TokenFile: Sendable {
    let path: FilePath
    private var written: ChangeToken?

    init(_ path: String) { self.path = FilePath(path) }

    /// The token in the file; nil where there is no file yet.
    mutating func read() throws -> ChangeToken? {
        guard access(path.string, F_OK) == 0 || errno != ENOENT else { return nil }
        let bytes = try InputFile.read(path.string, limit: 1024)
        let text = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first.map(String.init)
        guard let token = ChangeToken(text ?? "") else {
            throw CommandFailure(
                message: "\(path.string) holds no token; give another --token-file, or remove this one to begin anew",
                name: "not_read"
            )
        }
        written = token
        return token
    }

    /// Remembers a token.
    mutating func write(_ token: ChangeToken) throws {
        guard token != written else { return }
        let partial = FilePath(path.string + ".\(getpid()).part")
        do {
            let file = try FileDescriptor.open(
                partial,
                .writeOnly,
                options: [.create, .truncate],
                permissions: [.ownerReadWrite, .groupRead, .otherRead]
            )
            try file.closeAfter {
                try file.writeAll((token.description + "\n").utf8)
                guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
            }
            guard rename(partial.string, path.string) == 0 else { throw Errno(rawValue: errno) }
            let above = path.removingLastComponent()
            let folder = try FileDescriptor.open(above.isEmpty ? "." : above, .readOnly)
            try folder.closeAfter {
                guard fsync(folder.rawValue) == 0 else { throw Errno(rawValue: errno) }
            }
        } catch {
            unlink(partial.string)
            throw CommandFailure(message: "\(path.string) cannot be written: \(error)", name: "not_written")
        }
        written = token
    }
}
