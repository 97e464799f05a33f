import Synchronization

/// Keeps the bytes of a digest in their ``ResourceStore`` as long as it lives.
///
/// Bytes are stored before the transaction that refers to them: in between nothing but the lease says that they are
/// needed. It is of this process alone, as is everybody who removes.
public final class ResourceLease: Sendable {
    /// The bytes.
    public let digest: ResourceDigest
    private let table: LeaseTable

    fileprivate init(_ digest: ResourceDigest, _ table: LeaseTable) {
        self.digest = digest
        self.table = table
    }

    deinit { table.release(digest) }
}

/// How many leases each digest has.
final class LeaseTable: Sendable {
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
