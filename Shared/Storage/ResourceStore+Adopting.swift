import Glibc

extension ResourceStore {
    /// How bytes came from another store.
    public enum Adoption: Sendable, Equatable {
        /// They were there already.
        case present
        /// Both stores share one file on the disk.
        case linked
        case copied
        /// A file outside stands for them: the reference was taken over, not the file.
        case referenced
    }

    /// Takes the bytes of a digest over from another store: by a hard link where the disk allows it, else as a copy.
    ///
    /// What is new is read whole and compared with its digest. What is there already is compared by its size, or whole
    /// where `verifies` says so.
    ///
    /// - Throws: ``StorageError/resourceChanged(_:)`` where the bytes are damaged, ``StorageError/notFound(_:)`` where
    ///   the other store lacks them.
    public func adopt(
        _ digest: ResourceDigest,
        from source: ResourceStore,
        verifies: Bool = false
    ) throws(StorageError) -> Adoption {
        guard source.contains(digest) else {
            guard let reference = try source.reference(of: digest) else {
                throw .notFound("\(source.root) lacks the resource \(digest)")
            }
            if try self.reference(of: digest) != reference { try setReference(reference, of: digest) }
            return .referenced
        }
        let file = try source.open(digest)
        if let present = try? Folder.status(path(of: digest)), Int64(present.st_size) == file.size {
            if !verifies, PublicationStamp.isIntact(present, digest) { return .present }
            // A damaged copy is replaced by what the other store has.
            if (try? open(digest).verify()) != nil {
                PublicationStamp.set(path(of: digest), digest)
                return .present
            }
        }
        try file.verify()
        let name = try newIncoming()
        guard link(source.path(of: digest), name) == 0 else {
            // Another disk, or one without links, or too many links of one file.
            let copy = try put(copying: file, limit: file.size)
            guard copy.digest == digest else { throw .resourceChanged("\(digest) changed while it was copied") }
            return .copied
        }
        _ = try publish(name, as: digest, size: file.size, isSynced: true)
        return .linked
    }
}

/// Small files that are replaced whole: a reader sees the old or the new content, also after a power cut.
public enum DurableFile {
    /// Writes a file under another name, and gives it its own; durable when it returns.
    public static func replace(_ path: String, with bytes: [UInt8]) throws(StorageError) {
        let partial = path + ".part"
        do throws(StorageError) {
            let file = try Descriptor(opening: partial, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
            try file.write(bytes)
            try file.sync()
        } catch {
            unlink(partial)
            throw error
        }
        try take(partial, as: path)
    }

    /// Gives a file that was written by somebody else its name; durable when it returns.
    public static func take(_ partial: String, as path: String) throws(StorageError) {
        try Descriptor(opening: partial, O_RDONLY).sync()
        guard rename(partial, path) == 0 else { throw .system(errno, "rename to \(path)") }
        try Folder.sync(path.lastIndex(of: "/").map { String(path[..<$0]) + "/" } ?? ".")
    }

    /// An existing file, for reading.
    public static func open(_ path: String) throws(StorageError) -> ResourceFile {
        try ResourceFile(Descriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK), digest: nil)
    }
}
