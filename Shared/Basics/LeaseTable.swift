/// The leases of resources, each of which belongs to an owner and expires some time after its last use.
///
/// The resources themselves are stored by the caller under the same keys. Times are parameters, in microseconds
/// of a monotonic clock.
public struct LeaseTable<Key: Hashable & Sendable>: Sendable {
    private struct Lease: Sendable {
        let owner: String
        var expires: Int64
    }

    /// The time from the last use of a resource to the end of its lease, in microseconds.
    public let duration: Int64
    private var leases: [Key: Lease] = [:]
    private var keysByOwner: [String: Set<Key>] = [:]

    /// Creates an empty table.
    ///
    /// - Parameter duration: the time from the last use to the end of a lease, in microseconds
    public init(duration: Int64) { self.duration = duration }

    /// The number of leases, expired ones included until they are removed.
    public var count: Int { leases.count }

    /// Returns the keys of an owner, those of expired leases included.
    public func keys(of owner: String) -> Set<Key> { keysByOwner[owner] ?? [] }

    /// Returns true if the key has a lease of this owner, whether or not it has expired.
    public func isOwned(_ key: Key, by owner: String) -> Bool { leases[key]?.owner == owner }

    /// Adds a lease for a new key.
    public mutating func insert(_ key: Key, owner: String, now: Int64) {
        remove(key)
        leases[key] = Lease(owner: owner, expires: end(from: now))
        keysByOwner[owner, default: []].insert(key)
    }

    /// Renews a lease.
    ///
    /// - Returns: false if there is none, it belongs to another owner, or it has expired
    public mutating func renew(_ key: Key, owner: String, now: Int64) -> Bool {
        guard let lease = leases[key], lease.owner == owner, lease.expires > now else { return false }
        let end = end(from: now)
        leases[key]?.expires = end
        return true
    }

    /// Ends a lease; does nothing if there is none.
    public mutating func remove(_ key: Key) {
        guard let lease = leases.removeValue(forKey: key) else { return }
        keysByOwner[lease.owner]?.remove(key)
        if keysByOwner[lease.owner]?.isEmpty == true { keysByOwner[lease.owner] = nil }
    }

    /// Returns the keys whose leases have expired; ``remove(_:)`` removes them.
    public func expired(now: Int64) -> [Key] { leases.filter { $0.value.expires <= now }.map(\.key) }

    private func end(from now: Int64) -> Int64 {
        let (end, overflow) = now.addingReportingOverflow(duration)
        return overflow ? .max : end
    }
}
