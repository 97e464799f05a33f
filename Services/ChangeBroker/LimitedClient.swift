import PhotoModel

/// A client whose grant is limited to a list of assets.
struct LimitedClient: Sendable, Hashable {
    let identity: String
    /// Its public key: another key of the same name has another list.
    let key: String?

    init(identity: String, key: String?) { (self.identity, self.key) = (identity, key) }

    /// The client of a list.
    init(_ granted: GrantedAssets) { self.init(identity: granted.identity, key: granted.key) }

    /// A list of the client before its assets are known.
    var nothing: GrantedAssets { GrantedAssets(identity: identity, key: key, version: 0, ids: []) }
}
