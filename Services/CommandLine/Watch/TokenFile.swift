import Glibc
import PhotoModel
import SystemPackage

/// The file that stores the last processed token, on one line.
///
/// It is written under a temporary name, synced and renamed: after a crash it contains either the old or the new token.
struct TokenFile: Sendable {
    let path: FilePath
    private var written: ChangeToken?

    init(_ path: String) { self.path = FilePath(path) }

    /// Returns the token in the file, or nil if the file does not exist.
    mutating func read() throws -> ChangeToken? {
        guard access(path.string, F_OK) == 0 || errno != ENOENT else { return nil }
        let bytes = try InputFile.read(path.string, limit: 1024)
        let text = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first.map(String.init)
        guard let token = ChangeToken(text ?? "") else {
            throw CommandFailure(
                message: "\(path.string) contains no token; use another --token-file, or delete this one",
                name: "not_read"
            )
        }
        written = token
        return token
    }

    /// The path of the temporary file.
    private var partial: FilePath { FilePath(path.string + ".\(getpid()).part") }

    /// Checks that a token can be stored. This is called before any change is handled that the token covers.
    func check() throws {
        do {
            try FileDescriptor.open(
                partial,
                .writeOnly,
                options: [.create, .truncate],
                permissions: [.ownerReadWrite, .groupRead, .otherRead]
            )
            .close()
        } catch {
            throw CommandFailure(message: "\(path.string) cannot be written: \(error)", name: "not_written")
        }
        unlink(partial.string)
    }

    /// Stores a token.
    mutating func write(_ token: ChangeToken) throws {
        guard token != written else { return }
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
            let parent = path.removingLastComponent()
            let folder = try FileDescriptor.open(parent.isEmpty ? "." : parent, .readOnly)
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
