import Glibc

extension ResourceStore {
    /// The way in which the bytes of another store were adopted.
    public enum AdoptionResult: Sendable, Equatable {
        /// They were already stored.
        case present
        /// Both stores share one file by a hard link.
        case linked
        /// The bytes were copied into a file of their own.
        case copied
        /// The bytes are in a referenced file: the reference was copied, not the file.
        case referenced
    }

    /// Adopts the bytes of a digest from another store: by a hard link if the filesystem allows it, otherwise as a
    /// copy.
    ///
    /// New bytes are read completely and compared with their digest. Bytes already stored are compared by size and
    /// stamp, or completely with `verifies`. ``makeAllDurable()`` must follow for them.
    ///
    /// - Throws: ``StorageError/resourceChanged(_:)`` if the bytes are damaged, ``StorageError/notFound(_:)`` if the
    ///   other store does not have them.
    public func adopt(
        _ digest: ResourceDigest,
        from source: ResourceStore,
        verifies: Bool = false
    ) throws(StorageError) -> AdoptionResult {
        guard source.contains(digest) else {
            guard let reference = try source.reference(of: digest) else {
                throw .notFound("\(source.root) does not have the resource \(digest)")
            }
            // A damaged reference is replaced by the other store's.
            if (try? self.reference(of: digest)) != reference { try setReference(reference, of: digest) }
            return .referenced
        }
        let file = try source.open(digest)
        if let present = try? DirectoryOperations.status(path(of: digest)), Int64(present.st_size) == file.size {
            if !verifies, PublicationStamp.isIntact(present, digest) { return .present }
            // A damaged copy is replaced by the other store's.
            if (try? open(digest).verify()) != nil {
                PublicationStamp.set(path(of: digest), digest)
                return .present
            }
        }
        try file.verify()
        let name = try newIncoming()
        guard link(source.path(of: digest), name) == 0 else {
            // Another filesystem, one without hard links, or too many links to one file.
            let copy = try put(copying: file, limit: file.size)
            guard copy.digest == digest else { throw .resourceChanged("\(digest) changed while it was copied") }
            endHealing(of: digest)
            return .copied
        }
        _ = try publish(name, as: digest, size: file.size, isSynced: true)
        // Damage of a copy is not marked anywhere.
        endHealing(of: digest)
        return .linked
    }

    /// Returns the reason why another store cannot adopt the bytes of a digest: they are damaged or missing. Nil if
    /// they are intact; referenced files are not checked.
    ///
    /// - Throws: ``absence()``, or the error of a process that can open no file
    public func damage(of digest: ResourceDigest) throws(StorageError) -> StorageError? {
        do throws(StorageError) {
            if contains(digest) {
                try open(digest).verify()
            } else if try reference(of: digest) == nil {
                throw StorageError.notFound("\(root) does not have the resource \(digest)")
            }
            return nil
        } catch {
            if let absence = self.absence() { throw absence }
            _ = try Descriptor(opening: root, O_RDONLY | O_DIRECTORY)
            return error
        }
    }

    /// Returns true if the bytes of a digest are stored, or referenced, and can be adopted.
    public func isIntact(_ digest: ResourceDigest) -> Bool {
        do throws(StorageError) { return try damage(of: digest) == nil } catch { return false }
    }

    /// Syncs the filesystem: files and references that were found in the store may be those of a process that was
    /// killed before it synced their folders.
    public func makeAllDurable() throws(StorageError) {
        try watcher?(.syncFilesystem(root))
        try folder.syncFilesystem()
    }
}
