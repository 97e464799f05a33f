import Synchronization

/// The assets that a limited grant lists, in one version of the list.
///
/// Lists are equal if they are of the same identity and version: the list of a grant never changes within a version. So
/// fetches with different lists are different fetches, in caches too.
public final class GrantedAssets: Sendable, Hashable {
    /// The identity of the grant.
    public let identity: String
    /// The public key that the grant is about; another key of the same name has another list.
    public let key: String?
    /// The sequence of a transaction after which the list had these assets.
    public let version: Int64
    /// The assets.
    public let ids: Set<ObjectID>
    /// The form of the list that the store uses; created at the first fetch.
    private let cachedStoreForm = Mutex<String?>(nil)

    public init(identity: String, key: String? = nil, version: Int64, ids: Set<ObjectID>) {
        self.identity = identity
        self.key = key
        self.version = version
        self.ids = ids
    }

    /// Returns the form of the list that the store uses.
    ///
    /// - Parameter make: creates it; called once, unless several fetches begin at the same time
    public func storeForm(_ make: () throws -> String) rethrows -> String {
        if let cached = cachedStoreForm.withLock({ $0 }) { return cached }
        let form = try make()
        cachedStoreForm.withLock { $0 = form }
        return form
    }

    /// Returns true if the list has an asset.
    public func contains(_ id: ObjectID) -> Bool { ids.contains(id) }

    public static func == (left: GrantedAssets, right: GrantedAssets) -> Bool {
        left === right
            || (left.version == right.version && left.identity == right.identity && left.key == right.key)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(version)
        hasher.combine(identity)
    }
}
