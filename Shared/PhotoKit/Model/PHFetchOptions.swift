public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// The filter, the order and the limits of a fetch: `PHFetchOptions` (S-20 to S-24).
///
/// A fetch reads the options once; later changes of them have no effect on its result.
public final class PHFetchOptions {
    /// A condition: `NSPredicate(format:)` with the keys of the fetched class. The library cannot evaluate a block; a
    /// fetch with one has an `error`.
    public var predicate: NSPredicate?
    /// The order, by `NSSortDescriptor(key:ascending:)`. Equal objects are ordered by their identifiers.
    public var sortDescriptors: [NSSortDescriptor]?
    public var includeHiddenAssets = false
    public var includeAllBurstAssets = false
    /// The sources to fetch from; empty for the default of the kind of fetch: the user's own library for fetches of the
    /// whole library.
    public var includeAssetSourceTypes: PHAssetSourceType = []
    /// The maximum number of objects; 0 for all.
    public var fetchLimit = 0
    /// The number of objects to skip. PhotoKit has no counterpart (P-17).
    public var fetchOffset = 0
    /// False to get change details without index sets, only with the new result (S-24).
    public var wantsIncrementalChangeDetails = true

    public init() {}

    /// Returns a fetch with these options.
    func applied(to fetch: FetchDescription) throws(PHPhotosError) -> FetchDescription {
        var fetch = fetch
        if let predicate {
            let text = try PredicateText(predicate)
            do throws(PhotoModel.PredicateError) {
                fetch.predicate = try text.predicate(of: fetch.kind.entityClass).json
            } catch {
                throw PHPhotosError(error.rpcError)
            }
        }
        var sort: [SortDescription] = []
        for descriptor in sortDescriptors ?? [] {
            sort.append(SortDescription(key: try descriptor.photosKey(), ascending: descriptor.ascending))
        }
        fetch.sort = sort
        fetch.limit = max(0, fetchLimit)
        fetch.offset = max(0, fetchOffset)
        guard fetch.kind == .assets else { return fetch }
        if includeHiddenAssets { fetch.includeHidden = true }
        if includeAllBurstAssets { fetch.includeAllBurstAssets = true }
        if !includeAssetSourceTypes.isEmpty {
            fetch.sourceTypes = SourceTypes(rawValue: Int(includeAssetSourceTypes.rawValue))
        }
        return fetch
    }
}

extension FetchDescription.Kind {
    /// The class to which the keys of a predicate belong.
    fileprivate var entityClass: EntityClass {
        switch self {
        case .assets: .asset
        case .collections: .assetCollection
        case .lists: .collectionList
        case .children: .collection
        }
    }
}
