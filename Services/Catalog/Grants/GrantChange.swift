import Contracts
import PhotoModel

/// A change of one grant, as part of a ``WriteRequest``; it is applied within the transaction of the database.
struct GrantChange: Sendable {
    let identity: String
    /// The change of the list of a limited grant; nil for none.
    var list: GrantListChange?
    /// True if the identity's access was limited by its key's file, without a stored grant.
    var wasLimited = false
    /// Returns the grant after the change from the stored one; nil if nothing changes.
    let apply: @Sendable (_ stored: Grant?) throws -> Grant?
}

/// A change of the list of a limited grant.
struct GrantListChange: Sendable {
    let action: LimitGrant.Action
    let assets: [ObjectID]
    /// True for assets that the same transaction creates, which the database does not have yet.
    let areNew: Bool

    init(_ action: LimitGrant.Action, _ assets: [ObjectID], areNew: Bool = false) {
        (self.action, self.assets, self.areNew) = (action, assets, areNew)
    }

    /// Records in the grant which assets are added to its list and which are removed.
    ///
    /// - Throws: `identifier_not_found` for an asset that does not exist, `limit_exceeded`
    func apply(to grant: inout Grant, _ stored: Grant?, _ reader: LibraryReader) throws {
        if action != .remove, !areNew {
            for id in assets where try reader.assets.rowNumber(of: id) == nil { throw CatalogError.objectNotFound(id) }
        }
        // A grant does not inherit the list of another key of the same name.
        let isSameKey = stored.map { $0.key == grant.key } ?? false
        let old = try reader.grants.listedAssets(of: grant.identity)
        var new = isSameKey && action != .set ? old : []
        switch action {
        case .set, .add: new.formUnion(assets)
        case .remove: new.subtract(assets)
        }
        guard new.count <= Grant.maxAssets else { throw GrantError.tooManyAssets(limit: Grant.maxAssets) }
        grant.added = (isSameKey ? new.subtracting(old) : new).sorted()
        grant.removed = old.subtracting(new).sorted()
        grant.assetCount = new.count
    }
}

extension WriteRequest {
    /// Returns a transaction that changes one grant.
    static func grant(_ change: GrantChange, by identity: String, client: String? = nil) -> WriteRequest {
        var origin = ChangeOrigin(identity: identity)
        origin.client = client
        var write = WriteRequest(origin: origin)
        write.grant = change
        return write
    }

    /// Returns a transaction that records a question about consent; it changes no entity.
    static func question(_ question: ConsentQuestion, by identity: String) -> WriteRequest {
        var write = WriteRequest(origin: ChangeOrigin(identity: identity))
        write.question = question
        return write
    }
}
