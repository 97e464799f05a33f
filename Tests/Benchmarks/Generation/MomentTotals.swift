import Catalog
import PhotoModel

/// The moments and their lists of a library to which assets are only added.
struct MomentTotals: Sendable {
    private var moments: [Moment: AssetCollection] = [:]
    private var lists: [MomentList: CollectionList] = [:]

    /// Adds new assets and returns the changes of moments and lists, within one transaction.
    mutating func add(
        _ assets: [Asset],
        sequence: Int64,
        date: Int64
    ) -> (moments: [EntityChange<AssetCollection>], lists: [EntityChange<CollectionList>]) {
        var oldMoments: [Moment: AssetCollection?] = [:]
        var oldLists: [MomentList: CollectionList?] = [:]
        for asset in assets {
            guard let moment = asset.moment, let captureDate = asset.creationDate else { continue }
            let previous = moments[moment]
            if oldMoments[moment] == nil { oldMoments[moment] = .some(previous) }
            var collection = previous ?? AssetCollection(moment, revision: Revision(sequence))
            collection.localizedLocationNames = moment.placeNames
            if previous == nil { collection.creationDate = date }
            collection.revision = Revision(sequence)
            collection.modificationDate = date
            collection.estimatedAssetCount = (collection.estimatedAssetCount ?? 0) + 1
            collection.startDate = min(collection.startDate ?? captureDate, captureDate)
            collection.endDate = max(collection.endDate ?? captureDate, captureDate)
            moments[moment] = collection
            for key in moment.lists {
                let old = lists[key]
                if oldLists[key] == nil { oldLists[key] = .some(old) }
                var list = old ?? CollectionList(key, revision: Revision(sequence))
                if old == nil { list.creationDate = date }
                list.revision = Revision(sequence)
                list.modificationDate = date
                list.childCount += previous == nil ? 1 : 0
                list.startDate = min(list.startDate ?? captureDate, captureDate)
                list.endDate = max(list.endDate ?? captureDate, captureDate)
                lists[key] = list
            }
        }
        return (
            oldMoments.sorted { $0.key < $1.key }.map { EntityChange(before: $0.value, after: moments[$0.key]) },
            oldLists.sorted { $0.key.id < $1.key.id }.map { EntityChange(before: $0.value, after: lists[$0.key]) }
        )
    }
}
