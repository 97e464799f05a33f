import Contracts
import Glibc
import JSONValue
import Messaging

/// Which files of this machine a request may name.
///
/// Only over ipc, where the kernel says who asks, and only below the configured folders; without any, everything that the
/// user of the service can read, for that user alone.
struct ImportRoots: Sendable {
    /// Real paths.
    private let folders: [String]
    private let ownIdentity: String

    /// - Throws: `invalid_options` for a folder that is not there
    init(_ folders: [String], ownUID: UInt32 = geteuid()) throws(RPCError) {
        var real: [String] = []
        for folder in folders {
            guard let path = Self.realPath(folder) else {
                throw Refusal.invalidOptions.error("--import-root \(folder): there is no such folder")
            }
            real.append(path)
        }
        self.folders = real
        self.ownIdentity = "uid:\(ownUID)"
    }

    /// Opens a file for reading. A link as its last part is refused, and so is whatever is no regular file.
    ///
    /// - Throws: `access_denied`, `invalid_resource`
    func open(_ path: String, for identity: String) throws(RPCError) -> ImportedFile {
        guard identity.hasPrefix("uid:") else {
            throw Refusal.accessDenied.error("paths are accepted over ipc only; send the bytes, or upload them")
        }
        guard !folders.isEmpty || identity == ownIdentity else {
            throw Refusal.accessDenied.error(
                "\(identity) may not name files here; start the catalog with --import-root"
            )
        }
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw Refusal.invalidParams.error("a path is absolute: \(path.prefix(200))", ["path": .string(path)])
        }
        // Not blocking: a named pipe must not be waited for.
        let descriptor = Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            let reason = errno == ELOOP ? "it is a symbolic link" : String(cString: strerror(errno))
            throw Self.refusal(path, reason)
        }
        let file = ImportedFile(descriptor: descriptor)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Self.refusal(path, "it is no regular file")
        }
        if !folders.isEmpty {
            // Where the open file really is: no link on the way can have led out.
            guard let real = Self.linkTarget("/proc/self/fd/\(descriptor)"),
                folders.contains(where: { real.isBelow($0) })
            else {
                throw Refusal.accessDenied.error(
                    "\(path) is not below a folder that may be imported from",
                    ["path": .string(path)]
                )
            }
        }
        return file
    }

    private static func refusal(_ path: String, _ reason: String) -> RPCError {
        Refusal.invalidResource.error(
            "\(path) cannot be taken in: \(reason)",
            ["file": .string(path), "reason": .string(reason)]
        )
    }

    private static func realPath(_ path: String) -> String? {
        guard let pointer = realpath(path, nil) else { return nil }
        defer { free(pointer) }
        return String(cString: pointer)
    }

    private static func linkTarget(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return -1 }
            return readlink(path, start.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        guard count > 0, count < buffer.count else { return nil }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }
}

/// An open file; closes itself.
final class ImportedFile: Sendable {
    let descriptor: Int32

    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }
}

extension String {
    fileprivate func isBelow(_ folder: String) -> Bool { folder == "/" || hasPrefix(folder + "/") }
}
