import Synchronization

/// The assets that a limited grant lists, at one moment.
///
/// Lists are equal if they are of the same identity and version: the list of a grant never changes within a version. So
/// fetches with different lists are different fetches, in caches too.
public final class GrantedAssets: Sendable, Hashable {
    public let identity: String
    /// The public key that the grant is about; another key of the same name has another list.
    public let key: String?
    /// The sequence of a transaction after which the list had these assets.
    public let version: Int64
    public let ids: Set<ObjectID>
    /// The form of the list that the store uses; made at the first fetch.
    private let storeForm = Mutex<String?>(nil)

    public init(identity: String, key: String? = nil, version: Int64, ids: Set<ObjectID>) {
        self.identity = identity
        self.key = key
        self.version = version
        self.ids = ids
    }

    /// Returns the form of the list that the store uses.
    ///
    /// - Parameter make: makes it; called once, unless several fetches begin at the same time
    public func storeForm(_ make: () throws -> String) rethrows -> String {
        if let known = storeForm.withLock({ $0 }) { return known }
        let made = try make()
        storeForm.withLock { $0 = made }
        return made
    }

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
