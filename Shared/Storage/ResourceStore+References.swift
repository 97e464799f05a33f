import Basics
import Glibc
import Synchronization

/// Referenced files.
///
/// A reference is stored as `<64 digits>.ref` next to the path of the digest's bytes; it contains the file's path and
/// identity. Each opening compares device, inode, size and modification time, so that a changed or replaced file is
/// never served under the digest.
extension ResourceStore {
    static let referenceFileExtension = ".ref"
    private static let maxReferenceBytes = 8192

    func referencePath(of digest: ResourceDigest) -> String { path(of: digest) + Self.referenceFileExtension }

    /// Returns the reference of a digest; nil if the bytes are stored, or unknown.
    ///
    /// - Throws: ``StorageError/corrupt(_:)`` for a damaged reference.
    public func reference(of digest: ResourceDigest) throws(StorageError) -> FileReference? {
        let bytes: [UInt8]
        do throws(StorageError) {
            let file = try Descriptor(opening: referencePath(of: digest), O_RDONLY | O_NOFOLLOW)
            bytes = try file.read(count: Self.maxReferenceBytes, at: 0)
        } catch .notFound {
            return nil
        }
        guard let reference = FileReference(bytes: bytes) else {
            throw .corrupt("\(referencePath(of: digest)) is damaged; import the file again, or restore a backup")
        }
        return reference
    }

    /// Reads an open file once and stores a reference to it, without copying its bytes.
    ///
    /// If the bytes are stored, or another unchanged file is referenced for them, the store is not changed.
    ///
    /// - Parameters:
    ///   - file: the file; the caller has checked that the client may name it.
    ///   - path: its absolute path.
    ///   - limit: the largest size, in bytes.
    ///   - verifies: if the bytes are already stored, reads them and compares them with the digest.
    /// - Returns: the digest of the bytes; durable.
    /// - Throws: ``StorageError/resourceChanged(_:)`` for a file that changes while it is read.
    public func refer(
        to file: ResourceFile,
        at path: String,
        limit: Int64,
        verifies: Bool = false
    ) throws(StorageError) -> StoredResource {
        guard file.size <= limit else {
            throw .tooLarge("the file has \(file.size) bytes, the limit is \(limit)")
        }
        let identity = try FileIdentity(of: file)
        let digest = try file.hash()
        return try refer(
            to: file,
            at: path,
            digest: digest,
            identity: identity,
            limit: limit,
            verifies: verifies
        )
    }

    /// Stores a reference to a file whose bytes have already been read.
    ///
    /// - Parameters:
    ///   - digest: the digest of its bytes.
    ///   - identity: its identity before they were read.
    public func refer(
        to file: ResourceFile,
        at path: String,
        digest: ResourceDigest,
        identity: FileIdentity,
        limit: Int64,
        verifies: Bool = false
    ) throws(StorageError) -> StoredResource {
        guard try FileIdentity(of: file) == identity else {
            throw .resourceChanged("\(path) changed while it was read; try again when no program writes to it")
        }
        let lease = lease(digest)
        // The lease may end before a removal that began before it.
        stripe(of: digest).mutex.withLock { $0 += 1 }
        // Stored bytes are kept; if they are damaged, they are replaced by the file's.
        if contains(digest) { return try put(copying: file, limit: limit, verifies: verifies) }
        let isPresent = (try? openReference(digest)) != nil
        if isPresent {
            // The process that stored the reference may have been killed before it synced the folder.
            let folder = try makeFolders(of: digest)
            try watcher?(.syncFolder(folder))
            try DirectoryOperations.sync(folder)
        } else {
            try setReference(FileReference(path: path, identity: identity), of: digest)
        }
        return StoredResource(
            digest: digest,
            size: file.size,
            wasPresent: isPresent,
            isHealed: false,
            isHealingOpen: false,
            lease: lease
        )
    }

    /// Stores the reference of a digest; durable when it returns.
    public func setReference(_ reference: FileReference, of digest: ResourceDigest) throws(StorageError) {
        guard reference.path.utf8.count <= Self.maxReferenceBytes - 256 else { throw .invalid("the path is too long") }
        let folder = try makeFolders(of: digest)
        let temporary = try newIncoming()
        do throws(StorageError) {
            let file = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            try file.write(reference.bytes)
            try file.sync()
            let target = referencePath(of: digest)
            guard rename(temporary, target) == 0 else { throw .system(errno, "rename to \(target)") }
        } catch {
            unlink(temporary)
            throw error
        }
        try DirectoryOperations.sync(folder)
    }

    /// Calls `visit` for each reference, folder by folder, in no particular order; `visit` returns `false` to stop.
    ///
    /// Damaged references are skipped.
    public func forEachReference(_ visit: (ResourceDigest, FileReference) -> Bool) throws(StorageError) {
        for first in try DirectoryOperations.names(in: root) where first.count == 2 {
            for second in try DirectoryOperations.names(in: "\(root)/\(first)") where second.count == 2 {
                for name in try DirectoryOperations.names(in: "\(root)/\(first)/\(second)")
                where name.hasSuffix(Self.referenceFileExtension) {
                    guard let digest = ResourceDigest(String(name.dropLast(Self.referenceFileExtension.count))),
                        let reference = try? reference(of: digest)
                    else { continue }
                    if !visit(digest, reference) { return }
                }
            }
        }
    }

    /// Removes a reference; the referenced file is not changed.
    public func removeReference(of digest: ResourceDigest) throws(StorageError) {
        do throws(StorageError) { try DirectoryOperations.removeFile(referencePath(of: digest)) } catch .notFound {}
    }

    /// Opens the referenced file of a digest if it is unchanged.
    ///
    /// - Throws: ``StorageError/notFound(_:)`` if there is no reference or its file is missing;
    ///   ``StorageError/resourceChanged(_:)`` if the file was replaced or modified.
    func openReference(_ digest: ResourceDigest) throws(StorageError) -> ResourceFile {
        guard let reference = try reference(of: digest) else {
            // Files of a store that is not at its path do not count as missing.
            throw absence() ?? .notFound("no resource \(digest) is stored")
        }
        let path = reference.path
        let file: ResourceFile
        do throws(StorageError) {
            // O_NONBLOCK, because the file may have been replaced by a named pipe.
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
            file = try ResourceFile(Descriptor(opening: path, flags), digest: digest)
        } catch {
            throw .notFound(
                "the referenced file \(path) is missing (\(error.name)); attach its disk, or restore it and rescan"
            )
        }
        do throws(StorageError) { try file.require(reference.identity) } catch {
            throw .resourceChanged("the referenced file \(path) was changed or replaced; rescan its folder")
        }
        return file
    }
}
