import Contracts
import Glibc
import JSONValue
import Messaging
import Storage

/// Which files of this machine a request may name.
///
/// Only over ipc, where the kernel says who asks, and only below the configured folders; without any, everything that the
/// user of the service can read, for that user alone.
struct ImportRoots: Sendable {
    private let fence: FileFence
    /// Nil: whoever comes over ipc may name files below the folders.
    private let onlyIdentity: String?
    private let ownIdentity: String

    /// - Throws: `invalid_options` for a folder that cannot be opened
    init(_ folders: [String], ownUID: UInt32 = geteuid()) throws(RPCError) {
        do throws(StorageError) {
            fence = try FileFence(roots: folders.isEmpty ? ["/"] : folders)
        } catch {
            throw Refusal.invalidOptions.error("--import-root: \(error)")
        }
        ownIdentity = "uid:\(ownUID)"
        onlyIdentity = folders.isEmpty ? ownIdentity : nil
    }

    /// Refuses to reference files unless somebody named the folders for that.
    func requireConfigured() throws(RPCError) {
        if onlyIdentity != nil { throw RescanDesk.noRoots }
    }

    /// Checks that a file may be removed after it was taken in (spec T-21): it is the service's own user who asks, and
    /// the bytes have no other name.
    ///
    /// - Throws: `access_denied`, `request_not_supported`
    func requireMovable(_ file: ResourceFile, _ path: String, for identity: String) throws -> FileIdentity {
        guard identity == ownIdentity else {
            throw Refusal.accessDenied.error("\(identity) may not have files moved; let them be copied")
        }
        var status = stat()
        guard fstat(file.descriptor, &status) == 0, status.st_nlink == 1 else {
            throw Refusal.requestNotSupported.error(
                "\(path) has other hard links, so it is not moved; let it be copied",
                ["path": .string(path)]
            )
        }
        return try FileIdentity(of: file)
    }

    func remove(_ path: String, _ identity: FileIdentity) throws(StorageError) {
        try fence.remove(path, ifStill: identity)
    }

    /// Opens a regular file for reading; no link on the way may lead out of its folder.
    ///
    /// - Throws: `access_denied`, `invalid_params`, `invalid_resource`
    func open(_ path: String, for identity: String) throws(RPCError) -> ResourceFile {
        guard identity.hasPrefix("uid:") else {
            throw Refusal.accessDenied.error("paths are accepted over ipc only; send the bytes, or upload them")
        }
        guard onlyIdentity == nil || identity == onlyIdentity else {
            throw Refusal.accessDenied.error(
                "\(identity) may not name files here; start the catalog with --import-root"
            )
        }
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw Refusal.invalidParams.error("a path is absolute: \(path.prefix(200))", ["path": .string(path)])
        }
        do throws(StorageError) {
            return try fence.open(path)
        } catch {
            if case .invalid = error, onlyIdentity == nil {
                throw Refusal.accessDenied.error(
                    "\(path) is not below a folder that may be imported from",
                    ["path": .string(path)]
                )
            }
            throw Refusal.invalidResource.error(
                "\(path) cannot be taken in: \(error)",
                ["file": .string(path), "reason": .string("\(error)")]
            )
        }
    }
}
