public import Foundation
import Contracts
import JSONValue
import PhotoModel

public enum PHCollectionListType: Int, Sendable, CaseIterable {
    case momentList = 1
    case folder = 2
    case smartFolder = 3
}

public enum PHCollectionListSubtype: Int, Sendable, CaseIterable {
    case momentListCluster = 1
    case momentListYear = 2
    case regularFolder = 100
    case rootFolder = 101
    case smartFolderEvents = 200
    case smartFolderFaces = 201
    case any = 0x7FFF_FFFF_FFFF_FFFF
}

/// A folder or a list of moments: `PHCollectionList` (S-06).
public final class PHCollectionList: PHCollection, @unchecked Sendable {
    let list: CollectionList
    /// The members of a transient list; nil for all others.
    let transientMembers: [PHCollection]?

    init(
        _ list: CollectionList,
        _ connection: LibraryConnection,
        _ interest: Interest?,
        history: String?,
        members: [PHCollection]? = nil
    ) {
        self.list = list
        transientMembers = members
        super.init(list.id, connection, interest, history: history)
    }

    override public var localizedTitle: String? { list.title }
    override public var canContainCollections: Bool { true }
    public var collectionListType: PHCollectionListType {
        PHCollectionListType(rawValue: list.type.number) ?? .folder
    }
    public var collectionListSubtype: PHCollectionListSubtype {
        PHCollectionListSubtype(rawValue: list.subtype.number) ?? .any
    }
    public var startDate: Date? { list.startDate.map { Date(microseconds: $0) } }
    public var endDate: Date? { list.endDate.map { Date(microseconds: $0) } }

    override public func canPerform(_ anOperation: PHCollectionEditOperation) -> Bool {
        transientMembers == nil && list.allowedOperations.contains { $0.number == anOperation.rawValue }
    }

    // MARK: Fetching

    public class func fetchCollectionLists(
        with collectionListType: PHCollectionListType,
        subtype: PHCollectionListSubtype,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHCollectionList> {
        .fetch(lists(collectionListType, subtype), options)
    }

    public class func fetchCollectionLists(
        withLocalIdentifiers identifiers: [String],
        options: PHFetchOptions?
    ) -> PHFetchResult<PHCollectionList> {
        .fetch(FetchDescription(.lists, identifiers), options)
    }

    /// Fetches the folder that contains a collection, or the cluster and the year of a moment (T-05).
    public class func fetchCollectionListsContaining(
        _ collection: PHCollection,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHCollectionList> {
        var fetch = FetchDescription(.lists)
        fetch.containing = collection.id
        return .fetch(fetch, options, collection.connection)
    }

    /// Fetches the moment lists of a subtype: clusters or years.
    public class func fetchMomentLists(
        with momentListSubtype: PHCollectionListSubtype,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHCollectionList> {
        .fetch(lists(.momentList, momentListSubtype), options)
    }

    /// Fetches the cluster or the year of a moment.
    public class func fetchMomentLists(
        with momentListSubtype: PHCollectionListSubtype,
        containingMoment moment: PHAssetCollection,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHCollectionList> {
        let unlimited = PHFetchOptions()
        unlimited.predicate = options?.predicate
        unlimited.sortDescriptors = options?.sortDescriptors
        let lists = fetchCollectionListsContaining(moment, options: unlimited)
        let limit = max(0, options?.fetchLimit ?? 0)
        let found = lists.filter { $0.collectionListSubtype == momentListSubtype }
            .dropFirst(max(0, options?.fetchOffset ?? 0))
            .prefix(limit == 0 ? .max : limit)
        return PHFetchResult(Array(found), moment.connection, error: lists.error)
    }

    private static func lists(_ type: PHCollectionListType, _ subtype: PHCollectionListSubtype) -> FetchDescription {
        var fetch = FetchDescription(.lists)
        fetch.collectionType = String(type.rawValue)
        if subtype != .any { fetch.collectionSubtype = String(subtype.rawValue) }
        return fetch
    }

    // MARK: Transient lists

    /// Creates a list of collections that exists only in this process (S-31).
    public class func transientCollectionList(with collections: [PHCollection], title: String?) -> PHCollectionList {
        var distinct: Set<PHCollection> = []
        let members = collections.filter { distinct.insert($0).inserted }
        var random = SystemRandomNumberGenerator()
        var list = CollectionList(id: .transient(.collectionList, using: &random))
        list.title = title
        let connection = members.first?.connection ?? PHPhotoLibrary.shared().connection
        return PHCollectionList(list, connection, nil, history: nil, members: members)
    }

    /// Creates a list of the collections of a fetch result, as ``transientCollectionList(with:title:)`` does. If one
    /// cannot be read, only those before it are members; the `error` of the result then has the reason.
    public class func transientCollectionList(
        withCollectionsFetchResult fetchResult: PHFetchResult<PHCollection>,
        title: String?
    ) -> PHCollectionList {
        transientCollectionList(with: Array(fetchResult), title: title)
    }
}
