import Glibc
import Synchronization

/// The files that are removed only on request, because the database may have lost the changes that refer to them.
///
/// An empty file beside a stored one, or beside its reference, is the mark. A file in the folder of the store names the
/// last loss of changes after which all of them were marked.
extension ResourceStore {
    static let keepingEnding = ".kept"

    private func keepingPath(of digest: ResourceDigest) -> String { path(of: digest) + Self.keepingEnding }

    private var lossPath: String { "\(root)/\(Self.keepingEnding)" }

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
