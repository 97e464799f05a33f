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

    /// - Throws: `invalid_options` for a folder that cannot be opened
    init(_ folders: [String], ownUID: UInt32 = geteuid()) throws(RPCError) {
        do throws(StorageError) {
            fence = try FileFence(roots: folders.isEmpty ? ["/"] : folders)
        } catch {
            throw Refusal.invalidOptions.error("--import-root: \(error)")
        }
        onlyIdentity = folders.isEmpty ? "uid:\(ownUID)" : nil
    }

    /// Refuses to reference files unless somebody named the folders for that.
    func requireConfigured() throws(RPCError) {
        if onlyIdentity != nil { throw RescanDesk.noRoots }
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
