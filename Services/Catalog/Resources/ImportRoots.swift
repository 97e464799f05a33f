import Glibc
import Storage

/// The files of this machine that a request may name.
///
/// Paths are accepted only over ipc, where the kernel reports the peer's uid, and only below the configured folders.
/// Without configured folders every file that the service's user can read is allowed, for that user alone.
struct ImportRoots: Sendable {
    private let allowlist: PathAllowlist
    /// The only identity that may name files; nil if every identity that connects over ipc may.
    private let onlyIdentity: String?
    private let ownIdentity: String

    /// - Throws: `invalid_options` if a folder cannot be opened
    init(_ folders: [String], ownUID: UInt32 = geteuid()) throws(ResourceError) {
        do throws(StorageError) {
            allowlist = try PathAllowlist(roots: folders.isEmpty ? ["/"] : folders)
        } catch {
            throw ResourceError.importFolderNotOpened(error)
        }
        ownIdentity = "uid:\(ownUID)"
        onlyIdentity = folders.isEmpty ? ownIdentity : nil
    }

    /// Checks that import folders are configured: only files in these may be referenced.
    func requireConfigured() throws(MaintenanceError) {
        if onlyIdentity != nil { throw .noImportFolder }
    }

    /// Checks that a file may be removed after it was ingested (T-21): the request comes from the service's own user,
    /// and the file has no other hard link.
    ///
    /// - Throws: `access_denied`, `request_not_supported`
    func requireMovable(_ file: ResourceFile, _ path: String, for identity: String) throws -> FileIdentity {
        guard identity == ownIdentity else {
            throw ResourceError.moveDenied(identity: identity)
        }
        var status = stat()
        guard fstat(file.descriptor, &status) == 0, status.st_nlink == 1 else {
            throw ResourceError.hasOtherLinks(path: path)
        }
        return try FileIdentity(of: file)
    }

    func remove(_ path: String, _ identity: FileIdentity) throws(StorageError) {
        try allowlist.remove(path, ifStill: identity)
    }

    /// Opens a regular file for reading. No symbolic link on the path may lead out of the allowed folder.
    ///
    /// - Throws: `access_denied`, `invalid_params`, `invalid_resource`
    func open(_ path: String, for identity: String) throws(ResourceError) -> ResourceFile {
        guard identity.hasPrefix("uid:") else {
            throw ResourceError.pathOverNetwork
        }
        guard onlyIdentity == nil || identity == onlyIdentity else {
            throw ResourceError.pathDenied(identity: identity)
        }
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw ResourceError.pathNotAbsolute(path)
        }
        do throws(StorageError) {
            return try allowlist.open(path)
        } catch {
            if case .invalid = error, onlyIdentity == nil {
                throw ResourceError.notBelowImportFolder(path: path)
            }
            throw ResourceError.unreadable(file: path, reason: "\(error)")
        }
    }
}
