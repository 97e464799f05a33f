import PhotoModel

/// A client whose grant is limited to a list of assets.
struct LimitedClient: Sendable, Hashable {
    let identity: String
    /// The public key of the client: another key of the same name has another list.
    let key: String?

    init(identity: String, key: String?) { (self.identity, self.key) = (identity, key) }

    /// The client of a list.
    init(_ granted: GrantedAssets) { self.init(identity: granted.identity, key: granted.key) }

    /// An empty list of the client, used before its assets are known.
    var nothing: GrantedAssets { GrantedAssets(identity: identity, key: key, version: 0, ids: []) }
}
