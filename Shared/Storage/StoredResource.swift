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

    /// Returns the same resource with a lease that ends on its own. The lease of this resource must not have ended.
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
