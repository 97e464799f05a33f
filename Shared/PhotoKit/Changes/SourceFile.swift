import Basics
import Contracts
import Foundation
import Glibc
import JSONValue
import SystemPackage

/// An open file whose bytes are sent to the library; closed when released.
///
/// It is opened once: all bytes come from one file, even if another file is moved to its path meanwhile.
final class SourceFile: Sendable {
    /// The attributes by which a change of the file, or another file at its path, is recognized.
    struct Identity: Sendable, Hashable {
        private let device: UInt64
        private let inode: UInt64
        private let size: Int64
        private let seconds: Int
        private let nanoseconds: Int

        init(_ status: stat) {
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
            size = Int64(status.st_size)
            (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        }
    }

    /// The size in bytes when it was opened.
    let size: Int
    /// The identity of the file when it was opened.
    let identity: Identity
    /// True if the file had other hard links when it was opened.
    let hasOtherLinks: Bool
    /// The path of the file, for errors.
    var path: String { url.path }
    /// The file's descriptor, which is open for as long as this object exists.
    var descriptor: FileDescriptor { FileDescriptor(rawValue: number) }
    private let url: URL
    private let number: Int32

    /// - Throws: `missing_resource` if there is no regular file that can be read
    init(_ url: URL) throws(RPCError) {
        // O_NONBLOCK, because opening a named pipe would otherwise wait for its writer.
        let number = open(url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard number >= 0 else { throw Self.readError(url) }
        var status = stat()
        guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            _ = close(number)
            throw Self.readError(url)
        }
        self.url = url
        self.number = number
        size = Int(status.st_size)
        identity = Identity(status)
        hasOtherLinks = status.st_nlink > 1
    }

    deinit { _ = close(number) }

    /// Returns all bytes.
    ///
    /// - Throws: `missing_resource`
    func read() throws(RPCError) -> Bytes {
        var bytes = Bytes(repeating: 0, count: size)
        var filled = 0
        while filled < size {
            let count = bytes.withUnsafeMutableBytes { buffer in
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                return pread(number, rest.baseAddress, rest.count, off_t(filled))
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.readError(url) }
            // The file was truncated after it was opened.
            if count == 0 { break }
            filled += count
        }
        bytes.removeLast(size - filled)
        return bytes
    }

    private static func readError(_ url: URL) -> RPCError {
        ErrorCode.missingResource.error("\(url.path) cannot be read", ["path": .string(url.path)])
    }
}

/// A file that is removed once the library has its bytes.
struct MovedFile: Sendable {
    let url: URL
    /// The identity of the file whose bytes were sent.
    let identity: SourceFile.Identity

    /// Removes the file, unless it was changed or replaced since its bytes were sent. That may be minutes ago, if the
    /// owner of the library had to consent.
    ///
    /// - Returns: false if a file remains at the path
    func remove() -> Bool {
        var status = stat()
        guard lstat(url.path, &status) == 0 else { return errno == ENOENT }
        return SourceFile.Identity(status) == identity && unlink(url.path) == 0
    }
}
