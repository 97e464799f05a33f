import PhotoModel

extension ChangeTransaction {
    /// Updates moments and their lists after changes of assets (S-07): a moment is created with its first asset and
    /// deleted with its last one, in the same transaction.
    mutating func updateMoments(_ changes: [EntityChange<Asset>]) throws {
        var steps: [Moment: Int] = [:]
        for index in changes.indices {
            let (before, after) = (changes[index].before?.moment, changes[index].after?.moment)
            let (old, new) = (changes[index].before?.creationDate, changes[index].after?.creationDate)
            guard before != after || old != new else { continue }
            if let before { steps[before, default: 0] -= 1 }
            if let after { steps[after, default: 0] += 1 }
        }
        guard !steps.isEmpty else { return }
        var members: [Moment: [Asset]] = [:]
        for asset in changes.compactMap(\.after) {
            if let moment = asset.moment { members[moment, default: []].append(asset) }
        }
        let touched = Set(changes.map(\.id))
        var changed: [(before: AssetCollection?, after: AssetCollection?, moment: Moment)] = []
        for (moment, step) in steps.sorted(by: { $0.key < $1.key }) {
            let before = try collection(moment.id)
            var collection = before ?? AssetCollection(moment, revision: Revision(sequence))
            if before == nil {
                (collection.creationDate, collection.modificationDate) = (now, now)
                collection.localizedLocationNames = moment.placeNames
            }
            let count = (collection.estimatedAssetCount ?? 0) + step
            guard count > 0 else {
                if before != nil { try setDerived(moment.id, nil as AssetCollection?) }
                changed.append((before, nil, moment))
                continue
            }
            let ours = members[moment, default: []].compactMap(\.creationDate)
            let others = try state.captureDates(of: moment, excluding: touched)
            collection.estimatedAssetCount = count
            collection.startDate = [ours.min(), others?.lowerBound].compactMap { $0 }.min()
            collection.endDate = [ours.max(), others?.upperBound].compactMap { $0 }.max()
            guard collection != before else { continue }
            try setDerived(moment.id, collection)
            changed.append((before, collection, moment))
        }
        try updateMomentLists(changed)
    }

    private mutating func updateMomentLists(
        _ changed: [(before: AssetCollection?, after: AssetCollection?, moment: Moment)]
    ) throws {
        var lists: [MomentList: [(before: AssetCollection?, after: AssetCollection?, moment: Moment)]] = [:]
        for change in changed where change.before != nil || change.after != nil {
            for list in change.moment.lists { lists[list, default: []].append(change) }
        }
        let touched = Set(changed.map(\.moment.id))
        for (list, changes) in lists.sorted(by: { $0.key.id < $1.key.id }) {
            let before = try self.list(list.id)
            var entity = before ?? CollectionList(list, revision: Revision(sequence))
            if before == nil { (entity.creationDate, entity.modificationDate) = (now, now) }
            entity.childCount += changes.reduce(0) { $0 + ($1.after == nil ? 0 : 1) - ($1.before == nil ? 0 : 1) }
            guard entity.childCount > 0 else {
                if before != nil { try setDerived(list.id, nil as CollectionList?) }
                continue
            }
            let others = try state.momentDates(in: list, excluding: touched)
            let ours = changes.compactMap(\.after)
            entity.startDate = [ours.compactMap(\.startDate).min(), others?.lowerBound].compactMap { $0 }.min()
            entity.endDate = [ours.compactMap(\.endDate).max(), others?.upperBound].compactMap { $0 }.max()
            if entity != before { try setDerived(list.id, entity) }
        }
    }
}
