import Synchronization

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
        table.withLock { $0?.take(digest) ?? ResourceLease(digest, nil) }
    }

    /// Ends the lease now. The thread that stored the bytes may own a copy for a moment after its caller has continued.
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

    func take(_ digest: ResourceDigest) -> ResourceLease {
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
