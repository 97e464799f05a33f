import Glibc
import Synchronization

// Marks of stored files: empty files beside them, whose names are the digest and a file extension.

// MARK: - Healing

/// The follow-up after intact bytes have replaced a damaged stored file: marks of the damage are removed elsewhere.
///
/// An empty file beside the stored one records that the follow-up is open, so that it is not lost if the process is
/// killed in between, or if the disk is full: the bytes are then reported as healed again when they arrive again.
extension ResourceStore {
    private static let healingFileExtension = ".healed"

    private func healingPath(of digest: ResourceDigest) -> String { path(of: digest) + Self.healingFileExtension }

    /// Records that intact bytes are about to replace a damaged file. The folder is synced afterwards, with both names;
    /// the time of another sync, of the empty file, would reveal that there was a file.
    ///
    /// Errors are ignored: without this record the follow-up is lost only by a kill.
    func noteHealing(of digest: ResourceDigest) {
        let flags = O_WRONLY | O_CREAT | O_NOFOLLOW
        try? Descriptor(opening: healingPath(of: digest), flags, mode: 0o600).setMode(0o600)
    }

    /// Returns true if the follow-up for stored bytes is open.
    func isHealingOpen(_ digest: ResourceDigest) -> Bool { access(healingPath(of: digest), F_OK) == 0 }

    /// Ends the follow-up for the bytes of a digest, after all its steps.
    public func endHealing(of digest: ResourceDigest) { unlink(healingPath(of: digest)) }
}

// MARK: - Keeping

/// The files that are removed only on request, because the database may have lost the changes that refer to them.
///
/// An empty file beside a stored one, or beside its reference, is the mark. A file in the folder of the store names the
/// last loss of changes after which all of them were marked.
extension ResourceStore {
    static let keepingFileExtension = ".kept"

    private func keepingPath(of digest: ResourceDigest) -> String { path(of: digest) + Self.keepingFileExtension }

    private var lossPath: String { "\(root)/\(Self.keepingFileExtension)" }

    /// Marks a file, if it exists, to be removed only on request; ``noteLoss(_:)`` must follow.
    public func keep(_ digest: ResourceDigest) throws(StorageError) {
        try stripe(of: digest).mutex.withLock { (_) throws(StorageError) in
            guard isLocal(digest.text) else { return }
            let flags = O_WRONLY | O_CREAT | O_NOFOLLOW
            try Descriptor(opening: keepingPath(of: digest), flags, mode: 0o600).setMode(0o600)
        }
    }

    /// Removes the mark of ``keep(_:)``, if there is one.
    public func endKeeping(_ digest: ResourceDigest) { unlink(keepingPath(of: digest)) }

    /// Makes the marks durable, and records the loss after which they are complete.
    public func noteLoss(_ name: String) throws(StorageError) {
        try makeAllDurable()
        try DurableFile.replace(lossPath, with: Array(name.utf8))
    }

    /// Returns the last loss after which all files were marked; nil if there was none, or if it cannot be read.
    public func notedLoss() -> String? {
        guard let bytes = try? DurableFile.open(lossPath).read(offset: 0, count: 1024) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}
