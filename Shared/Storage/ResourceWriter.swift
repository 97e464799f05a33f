import Basics
import Glibc
import Synchronization

/// A writer of new bytes for a ``ResourceStore``.
///
/// Releasing it without ``finish(verifies:)`` removes the written bytes.
public final class ResourceWriter: Sendable {
    /// The largest total, in bytes.
    public let limit: Int64
    let path: String
    private let store: ResourceStore
    /// The store's failed syncs before the first byte was written.
    private let failedSyncs: Int
    private let state: Mutex<State>

    private struct State: ~Copyable {
        var file: Descriptor?
        var hash = SHA256()
        var size: Int64 = 0
    }

    init(store: ResourceStore, path: String, limit: Int64) throws(StorageError) {
        self.store = store
        failedSyncs = store.failedSyncs.load(ordering: .sequentiallyConsistent)
        self.path = path
        self.limit = limit
        let file = try Descriptor(opening: path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        self.state = Mutex(State(file: file))
    }

    deinit { cancel() }

    /// The number of bytes appended so far.
    public var size: Int64 { state.withLock { $0.size } }

    /// Appends bytes; after an error the writer is cancelled.
    ///
    /// - Throws: ``StorageError/tooLarge(_:)`` beyond the limit, ``StorageError/notEnoughSpace(_:)``,
    ///   ``StorageError/invalid(_:)`` after finish or cancel.
    public func append(_ bytes: [UInt8]) throws(StorageError) {
        do throws(StorageError) {
            try state.withLock { (state) throws(StorageError) in
                guard state.file != nil else { throw .invalid("the upload has ended") }
                guard Int64(bytes.count) <= limit - state.size else { throw .tooLarge("more than \(limit) bytes") }
                try state.file?.write(bytes)
                state.hash.update(data: bytes)
                state.size += Int64(bytes.count)
            }
        } catch {
            cancel()
            throw error
        }
    }

    /// Returns true if the appended bytes from `offset` on equal some bytes.
    public func holds(_ bytes: [UInt8], at offset: Int64) throws(StorageError) -> Bool {
        try state.withLock { (state) throws(StorageError) in
            guard offset >= 0, offset <= state.size - Int64(bytes.count) else { return false }
            return try state.file?.read(count: bytes.count, at: offset) == bytes
        }
    }

    /// Makes the bytes durable under their digest; afterwards the writer has ended, even if this throws.
    ///
    /// - Parameters:
    ///   - verifies: if the bytes are already stored, reads them and compares them with the digest.
    ///   - hidesPresence: true to sync the written bytes also if they are already stored, so that the time does not
    ///     reveal it; with `verifies` they replace the stored file, which is not read.
    public func finish(verifies: Bool = false, hidesPresence: Bool = false) throws(StorageError) -> StoredResource {
        defer { cancel() }
        let (digest, size) = try complete()
        if hidesPresence {
            PublicationStamp.set(path, digest)
            try store.syncIncoming(path)
        }
        let stored = try store.publish(
            path,
            as: digest,
            size: size,
            isSynced: hidesPresence,
            verifies: verifies,
            hidesPresence: hidesPresence
        )
        // The temporary file was renamed or removed; nothing is left for `cancel` to remove.
        state.withLock { $0.file = nil }
        return stored
    }

    /// Makes the bytes durable like ``finish(verifies:)`` if they have the expected digest; otherwise removes them.
    ///
    /// - Throws: ``StorageError/resourceChanged(_:)`` if they have another digest.
    public func finish(expecting digest: ResourceDigest) throws(StorageError) -> StoredResource {
        guard state.withLock({ ResourceDigest($0.hash.finalize()) }) == digest else {
            cancel()
            throw .resourceChanged("other bytes arrived than those of \(digest)")
        }
        return try finish()
    }

    /// Names the bytes by their digest without waiting for the disk; ``ResourceStore/makeDurable(_:)`` must follow.
    /// Afterwards the writer has ended, even if this throws.
    ///
    /// - Parameters:
    ///   - verifies: if the bytes are already stored, reads them and compares them with the digest.
    ///   - hidesPresence: true to sync the written bytes although they are already stored, as new ones will be; with
    ///     `verifies` they replace the stored file, which is not read.
    public func stage(verifies: Bool = false, hidesPresence: Bool = false) throws(StorageError) -> StagedResource {
        defer { cancel() }
        let (digest, size) = try complete()
        let staged = try store.stage(
            path,
            as: digest,
            size: size,
            failedSyncs: failedSyncs,
            verifies: verifies,
            hidesPresence: hidesPresence
        )
        state.withLock { $0.file = nil }
        return staged
    }

    private func complete() throws(StorageError) -> (ResourceDigest, Int64) {
        try state.withLock { (state) throws(StorageError) in
            guard state.file != nil else { throw .invalid("the upload has ended") }
            try state.file?.setMode(0o444)
            return (ResourceDigest(state.hash.finalize()), state.size)
        }
    }

    /// Cancels the writer and removes the written bytes; does nothing after the end.
    public func cancel() {
        let wasOpen = state.withLock { state in
            let wasOpen = state.file != nil
            state.file = nil
            return wasOpen
        }
        if wasOpen { _ = unlink(path) }
    }
}
