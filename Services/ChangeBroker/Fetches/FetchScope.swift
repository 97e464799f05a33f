import PhotoModel

/// The effect of a transaction on the scope of a fetch (`Fetch.scope`).
enum ScopeChange: Hashable {
    case none
    /// The scope is this set after the transaction.
    case to(Set<ObjectID>)
    /// Entities that are not in the record entered or left the result, for example the assets of an album that was
    /// moved: the result has to be read again.
    case unknown
    /// The access of the view's identity is no longer limited, or belongs to another key.
    case ended
}

extension Fetch {
    /// Returns the effect of a transaction on the scope of the fetch.
    func scopeChange(by record: ChangeRecord) -> ScopeChange {
        if let granted { return Self.listChange(by: record, granted) }
        guard let scope else { return .none }
        switch kind {
        case .assets(.below(let folder)): return Self.scopeChange(by: record, scope, below: folder)
        case .collectionsContaining(let asset, _):
            guard let change = record.assets.first(where: { $0.id == asset }) else { return .none }
            return change.after?.collections ?? [] == scope ? .none : .unknown
        case .listsContaining(let member):
            let after: PhotoCollection?
            if let change = record.collections.first(where: { $0.id == member }) {
                after = change.after.map { .collection($0) }
            } else if let change = record.lists.first(where: { $0.id == member }) {
                after = change.after.map { .list($0) }
            } else {
                return .none
            }
            return after?.lists ?? [] == scope ? .none : .unknown
        default: return .none
        }
    }

    /// Returns the effect of a transaction on the list of a limited grant.
    private static func listChange(by record: ChangeRecord, _ granted: GrantedAssets) -> ScopeChange {
        guard let grant = record.grants.lazy.compactMap(\.after).first(where: { $0.identity == granted.identity })
        else {
            return .none
        }
        guard grant.status == .limited, grant.key == granted.key else { return .ended }
        let (removed, added) = (grant.removed.filter(granted.contains), grant.added.filter { !granted.contains($0) })
        guard !removed.isEmpty || !added.isEmpty else { return .none }
        // A record has the properties of assets that entered or left the list only if it contains the assets
        // themselves.
        let touched = Set(record.assets.map(\.id))
        guard removed.allSatisfy(touched.contains), added.allSatisfy(touched.contains) else { return .unknown }
        return .to(granted.ids.subtracting(removed).union(added))
    }

    private static func scopeChange(
        by record: ChangeRecord,
        _ scope: Set<ObjectID>,
        below folder: ObjectID
    ) -> ScopeChange {
        var after = scope
        var (created, moved): ([(id: ObjectID, parent: ObjectID?)], [(id: ObjectID, parent: ObjectID?)]) = ([], [])
        func add(_ id: ObjectID, existedBefore: Bool, existsAfter: Bool, _ before: ObjectID?, _ parent: ObjectID?) {
            if !existsAfter {
                after.remove(id)
            } else if !existedBefore {
                created.append((id, parent))
            } else if before != parent, id != folder {
                moved.append((id, parent))
            }
        }
        for change in record.lists {
            let (before, parent) = (change.before?.parent, change.after?.parent)
            add(change.id, existedBefore: change.before != nil, existsAfter: change.after != nil, before, parent)
        }
        for change in record.collections {
            let (before, parent) = (change.before?.parent, change.after?.parent)
            add(change.id, existedBefore: change.before != nil, existsAfter: change.after != nil, before, parent)
        }
        // A folder may be created together with its content.
        var isGrowing = true
        while isGrowing {
            isGrowing = false
            for (id, parent) in created where parent.map(after.contains) == true {
                if after.insert(id).inserted { isGrowing = true }
            }
        }
        for (id, parent) in moved where after.contains(id) != (parent.map(after.contains) ?? false) { return .unknown }
        return after == scope ? .none : .to(after)
    }
}
