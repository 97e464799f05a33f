import Storage
import Synchronization

/// The bytes that were stored for a transaction that is not committed yet, and the memory of the metadata that was read
/// from them. The bytes are not collected as long as this object exists.
final class UncommittedResources: Sendable {
    private let stored = Mutex<[StoredResource]>([])
    private let unsynced = Mutex<[StagedResource]>([])
    private let restored = Mutex<Set<ResourceDigest>>([])
    private let uploadNames = Mutex<[String]>([])
    private let maybeCommitted = Mutex(false)
    private let metadata = Mutex<MetadataMemory.Reservation?>(nil)

    /// Adds stored bytes.
    ///
    /// - Parameter upload: the upload that delivered the bytes; nil if none did
    func add(_ resource: StagedResource, upload: String? = nil) {
        stored.withLock { $0.append(resource.stored) }
        unsynced.withLock { $0.append(resource) }
        if let upload { uploadNames.withLock { $0.append(upload) } }
    }

    /// Sets the reservation in which metadata is counted, which this object keeps as long as it exists.
    func countMetadata(in reservation: MetadataMemory.Reservation) { metadata.withLock { $0 = reservation } }

    /// Reserves memory for the metadata of a file.
    ///
    /// - Throws: `limit_exceeded`, `busy`
    func reserve(_ bytes: Int) throws { try metadata.withLock { $0 }?.add(bytes) }

    /// Returns the resources that were added since the last call; they may not be durable yet.
    func staged() -> [StagedResource] {
        unsynced.withLock { unsynced in
            defer { unsynced = [] }
            return unsynced
        }
    }

    /// True if nothing was stored.
    var isEmpty: Bool { stored.withLock { $0.isEmpty } && uploadNames.withLock { $0.isEmpty } }

    /// The uploads that delivered some of the bytes.
    var uploads: [String] { uploadNames.withLock { $0 } }

    /// The digests whose stored file was replaced because it was or may have been damaged, or because it was lost. A
    /// file that an earlier request has replaced is included until its damage marks are removed.
    var healed: [ResourceDigest] {
        let replaced = stored.withLock { stored in Set(stored.filter(\.isHealingOpen).map(\.digest)) }
        return restored.withLock { replaced.union($0) }.sorted()
    }

    /// Records that files of existing assets were lost, and are stored again.
    func noteRestored(_ digests: [ResourceDigest]) { restored.withLock { $0.formUnion(digests) } }

    /// True if a commit that may have happened refers to the bytes: only the collector may remove them.
    var isMaybeCommitted: Bool { maybeCommitted.withLock { $0 } }

    /// Records that a commit that refers to the bytes failed but may have happened.
    func noteUnknownCommit() { maybeCommitted.withLock { $0 = true } }

    /// Releases the resources and returns the digests of those that may be removed if nothing else refers to them.
    func release() -> [ResourceDigest] {
        let released: [ResourceDigest] = stored.withLock { stored in
            defer { stored = [] }
            return stored.map {
                $0.lease.end()
                return $0.digest
            }
        }
        return isMaybeCommitted ? [] : released
    }
}
