import Glibc
import Synchronization

/// Bytes under their digest in a ``ResourceStore`` that are not yet durable.
public struct StagedResource: Sendable {
    /// The bytes; nothing may refer to them before ``ResourceStore/makeDurable(_:)`` has returned.
    public let stored: StoredResource
    /// The number of failed syncs when the bytes were written; nil if they were made durable at once.
    let failedSyncs: Int?

    /// Wraps bytes that are durable already.
    public init(durable stored: StoredResource) { self.init(stored: stored, failedSyncs: nil) }

    init(stored: StoredResource, failedSyncs: Int?) {
        self.stored = stored
        self.failedSyncs = failedSyncs
    }
}

/// Storing many files with few syncs.
///
/// A staged file has its name at once, but no ``PublicationStamp`` before it is durable. If power is lost in between,
/// the file has no stamp; it is read and compared when its bytes arrive again.
extension ResourceStore {
    /// The maximum number of files that are synced one by one: syncing a filesystem also waits for the writes of other
    /// programs.
    static let maxSyncedSingly = 3

    /// Stages bytes; ``makeDurable(_:)`` must follow.
    ///
    /// - Parameters:
    ///   - verifies: if the bytes are already stored, reads them and compares them with the digest.
    ///   - hidesPresence: true to sync the written bytes although they are already stored, as new ones will be; with
    ///     `verifies` they replace the stored file, which is not read.
    public func stage(
        bytes: [UInt8],
        verifies: Bool = false,
        hidesPresence: Bool = false
    ) throws(StorageError) -> StagedResource {
        let writer = try writer(limit: Int64(bytes.count))
        try writer.append(bytes)
        return try writer.stage(verifies: verifies, hidesPresence: hidesPresence)
    }

    /// Syncs a complete temporary file.
    func syncIncoming(_ path: String) throws(StorageError) {
        try watcher?(.syncFile(path))
        try Descriptor(opening: path, O_RDONLY).sync()
    }

    /// Renames a complete temporary file to its digest, like ``publish(_:as:size:isSynced:verifies:hidesPresence:)``
    /// but without waiting for the disk.
    func stage(
        _ path: String,
        as digest: ResourceDigest,
        size: Int64,
        failedSyncs: Int,
        verifies: Bool,
        hidesPresence: Bool = false
    ) throws(StorageError) -> StagedResource {
        let lease = lease(digest)
        var isSynced = false
        while true {
            let found = try examine(digest, size: size, verifies: verifies, hidesPresence: hidesPresence)
            if hidesPresence, found.isGood, !isSynced {
                try syncIncoming(path)
                isSynced = true
            }
            // Assets may refer to a damaged file, so only durable bytes replace it.
            if case .damaged = found {
                return StagedResource(
                    durable: try publish(
                        path,
                        as: digest,
                        size: size,
                        verifies: verifies,
                        hidesPresence: hidesPresence
                    )
                )
            }
            let isStored = try stripe(of: digest).mutex.withLock { (publications) throws(StorageError) in
                publications += 1
                return try renameOrRemove(path, as: digest, found)
            }
            guard isStored else { continue }
            let stored = StoredResource(
                digest: digest,
                size: size,
                wasPresent: found.isGood,
                isHealed: false,
                isHealingOpen: found.isGood && isHealingOpen(digest),
                lease: lease
            )
            return StagedResource(stored: stored, failedSyncs: failedSyncs)
        }
    }

    /// Renames a file, or removes it if the bytes are stored; returns false if the target has changed since it was
    /// examined. The digest's lock is held.
    private func renameOrRemove(
        _ path: String,
        as digest: ResourceDigest,
        _ found: TargetState
    ) throws(StorageError) -> Bool {
        let target = self.path(of: digest)
        guard case .good(let state) = found else {
            try createFolders(of: digest)
            try watcher?(.rename(path, target))
            return try DirectoryOperations.renameExclusively(path, to: target)
        }
        guard (try? DirectoryOperations.status(target)).map(FileState.init) == state else { return false }
        try DirectoryOperations.removeFile(path)
        return true
    }

    private func createFolders(of digest: ResourceDigest) throws(StorageError) {
        let (first, folder) = folders(of: digest)
        if durableFolders.withLock({ $0.contains(folder) }) { return }
        _ = try DirectoryOperations.create(first)
        _ = try DirectoryOperations.create(folder)
    }

    /// Makes staged bytes durable, all together with one sync of the filesystem; blocks.
    ///
    /// - Throws: ``StorageError`` if none of them may be used. Those that were new are removed then: the page cache may
    ///   still have bytes that never reached the disk.
    public func makeDurable(_ staged: [StagedResource]) throws(StorageError) {
        let pending = staged.filter { $0.failedSyncs != nil }.map(\.stored)
        guard !pending.isEmpty else { return }
        do throws(StorageError) {
            if pending.count <= Self.maxSyncedSingly {
                for resource in pending { try sync(resource.digest) }
            } else {
                try syncFilesystem(staged)
                durableFolders.withLock { known in
                    for resource in pending {
                        let (first, folder) = folders(of: resource.digest)
                        known.insert(first)
                        known.insert(folder)
                    }
                }
            }
            for resource in pending { try stamp(resource) }
        } catch {
            for resource in pending where !resource.wasPresent { removeUnlessDurable(resource) }
            throw error
        }
    }

    /// Syncs the filesystem, and throws if a sync has failed since any of the files was written. The system reports a
    /// write error once, and the sync that receives the report need not be that of the files whose bytes were lost.
    private func syncFilesystem(_ staged: [StagedResource]) throws(StorageError) {
        do throws(StorageError) {
            try watcher?(.syncFilesystem(root))
            try folder.syncFilesystem()
        } catch {
            failedSyncs.add(1, ordering: .sequentiallyConsistent)
            throw error
        }
        let now = failedSyncs.load(ordering: .sequentiallyConsistent)
        guard staged.allSatisfy({ $0.failedSyncs ?? now == now }) else {
            throw .io("the disk failed while \(root) was synced; try again")
        }
    }

    /// Syncs a staged file and its folders.
    private func sync(_ digest: ResourceDigest) throws(StorageError) {
        let path = path(of: digest)
        try watcher?(.syncFile(path))
        try Descriptor(opening: path, O_RDONLY | O_NOFOLLOW).sync()
        let folder = try makeFolders(of: digest)
        try watcher?(.syncFolder(folder))
        try DirectoryOperations.sync(folder)
    }

    /// Marks a file as durable, with the digest's lock held: a failed sync of the same bytes may remove it.
    private func stamp(_ resource: StoredResource) throws(StorageError) {
        let path = path(of: resource.digest)
        try stripe(of: resource.digest).mutex.withLock { (_) throws(StorageError) in
            guard Int64(try DirectoryOperations.status(path).st_size) == resource.size else {
                throw .io("\(path) changed while it was stored; try again")
            }
            PublicationStamp.set(path, resource.digest)
        }
    }

    private func removeUnlessDurable(_ resource: StoredResource) {
        let path = path(of: resource.digest)
        stripe(of: resource.digest).mutex.withLock { _ in
            // On a filesystem without nanoseconds no file has a stamp, so a missing stamp does not mean that the file
            // is not durable.
            guard let status = try? DirectoryOperations.status(path), status.st_mtim.tv_nsec != 0,
                !PublicationStamp.isIntact(status, resource.digest)
            else { return }
            try? DirectoryOperations.removeFile(path)
        }
    }

    private func folders(of digest: ResourceDigest) -> (first: String, second: String) {
        let first = "\(root)/\(digest.text.prefix(2))"
        return (first, "\(first)/\(digest.text.dropFirst(2).prefix(2))")
    }
}
