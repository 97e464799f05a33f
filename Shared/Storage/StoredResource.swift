import Synchronization

/// The result of storing bytes.
public struct StoredResource: Sendable {
    /// The digest of the bytes.
    public let digest: ResourceDigest
    /// The size in bytes.
    public let size: Int64
    /// True if they were already stored; their age then counts from now.
    public let wasPresent: Bool
    /// True if they replaced a damaged stored file; false if it was replaced without being read.
    public let isHealed: Bool
    /// True if they replaced a stored file that was or may have been damaged, now or before, and
    /// ``ResourceStore/endHealing(of:)`` was not called since.
    public let isHealingOpen: Bool
    /// Keeps the bytes in the store until a transaction refers to them.
    public let lease: ResourceLease

    /// Returns the same resource with a separate lease. The lease of this resource must not have ended.
    public func leasedAgain() -> StoredResource {
        StoredResource(
            digest: digest,
            size: size,
            wasPresent: wasPresent,
            isHealed: isHealed,
            isHealingOpen: isHealingOpen,
            lease: lease.renewed()
        )
    }
}

/// Keeps the bytes of a digest in their ``ResourceStore`` as long as the lease exists and is not ended.
///
/// Bytes are stored before the transaction that refers to them is committed; until then only the lease prevents their
/// removal. It is known to this process only, as are all removals.
public final class ResourceLease: Sendable {
    /// The digest of the bytes.
    public let digest: ResourceDigest
    /// The table that counts the lease; nil once it has ended.
    private let table: Mutex<ResourceLeases?>

    fileprivate init(_ digest: ResourceDigest, _ table: ResourceLeases?) {
        self.digest = digest
        self.table = Mutex(table)
    }

    deinit { end() }

    /// Returns another lease of the same bytes. If this one has ended, the other one has, too.
    func renewed() -> ResourceLease {
        table.withLock { $0?.makeLease(of: digest) ?? ResourceLease(digest, nil) }
    }

    /// Ends the lease now. The thread that stored the bytes may briefly own a copy after its caller has continued.
    public func end() {
        let ended = table.withLock { table in
            defer { table = nil }
            return table
        }
        ended?.release(digest)
    }
}

/// The number of leases of each digest.
final class ResourceLeases: Sendable {
    private let counts = Mutex<[ResourceDigest: Int]>([:])

    func makeLease(of digest: ResourceDigest) -> ResourceLease {
        counts.withLock { $0[digest, default: 0] += 1 }
        return ResourceLease(digest, self)
    }

    func has(_ digest: ResourceDigest) -> Bool { counts.withLock { $0[digest] != nil } }

    fileprivate func release(_ digest: ResourceDigest) {
        counts.withLock { counts in
            guard let count = counts[digest] else { return }
            counts[digest] = count > 1 ? count - 1 : nil
        }
    }
}
