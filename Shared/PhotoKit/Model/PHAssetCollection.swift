public import Foundation
import Contracts
import JSONValue
import PhotoModel

public enum PHAssetCollectionType: Int, Sendable, CaseIterable {
    case album = 1
    case smartAlbum = 2
    case moment = 3
}

public enum PHAssetCollectionSubtype: Int, Sendable, CaseIterable {
    case albumRegular = 2
    case albumSyncedEvent = 3
    case albumSyncedFaces = 4
    case albumSyncedAlbum = 5
    case albumImported = 6
    case albumMyPhotoStream = 100
    case albumCloudShared = 101
    case smartAlbumGeneric = 200
    case smartAlbumPanoramas = 201
    case smartAlbumVideos = 202
    case smartAlbumFavorites = 203
    case smartAlbumTimelapses = 204
    case smartAlbumAllHidden = 205
    case smartAlbumRecentlyAdded = 206
    case smartAlbumBursts = 207
    case smartAlbumSlomoVideos = 208
    case smartAlbumUserLibrary = 209
    case smartAlbumSelfPortraits = 210
    case smartAlbumScreenshots = 211
    case smartAlbumDepthEffect = 212
    case smartAlbumLivePhotos = 213
    case smartAlbumAnimated = 214
    case smartAlbumLongExposures = 215
    case smartAlbumUnableToUpload = 216
    case smartAlbumRAW = 217
    case smartAlbumCinematic = 218
    case smartAlbumSpatial = 219
    case smartAlbumScreenRecordings = 220
    case any = 0x7FFF_FFFF_FFFF_FFFF
}

/// An album, a smart album or a moment: `PHAssetCollection` (S-05).
public final class PHAssetCollection: PHCollection, @unchecked Sendable {
    let collection: AssetCollection
    /// The members of a transient collection; nil for all others.
    let transientMembers: [ObjectID]?

    init(
        _ collection: AssetCollection,
        _ connection: LibraryConnection,
        _ interest: Interest?,
        history: String?,
        members: [ObjectID]? = nil
    ) {
        self.collection = collection
        transientMembers = members
        super.init(collection.id, connection, interest, history: history)
    }

    override public var localizedTitle: String? { collection.title }
    override public var canContainAssets: Bool { true }
    public var assetCollectionType: PHAssetCollectionType {
        PHAssetCollectionType(rawValue: collection.type.number) ?? .album
    }
    public var assetCollectionSubtype: PHAssetCollectionSubtype {
        PHAssetCollectionSubtype(rawValue: collection.subtype.number) ?? .any
    }
    /// The number of members; `NSNotFound` if it is not known without counting them (S-39).
    public var estimatedAssetCount: Int { transientMembers?.count ?? collection.estimatedAssetCount ?? NSNotFound }
    /// The earliest and the latest creation date of the members.
    public var startDate: Date? { collection.startDate.map { Date(microseconds: $0) } }
    public var endDate: Date? { collection.endDate.map { Date(microseconds: $0) } }
    /// The location of a moment.
    public var approximateLocation: CLLocation? { collection.approximateLocation.map { CLLocation($0) } }
    public var localizedLocationNames: [String] { collection.localizedLocationNames }

    override public func canPerform(_ anOperation: PHCollectionEditOperation) -> Bool {
        transientMembers == nil && collection.allowedOperations.contains { $0.number == anOperation.rawValue }
    }

    // MARK: Fetching

    public class func fetchAssetCollections(
        with type: PHAssetCollectionType,
        subtype: PHAssetCollectionSubtype,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHAssetCollection> {
        .fetch(collections(type, subtype), options)
    }

    public class func fetchAssetCollections(
        withLocalIdentifiers identifiers: [String],
        options: PHFetchOptions?
    ) -> PHFetchResult<PHAssetCollection> {
        .fetch(FetchDescription(.collections, identifiers), options)
    }

    /// Fetches the collections of a type that contain an asset; also smart albums, which PhotoKit refuses (T-04).
    public class func fetchAssetCollectionsContaining(
        _ asset: PHAsset,
        with type: PHAssetCollectionType,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHAssetCollection> {
        var fetch = FetchDescription(.collections)
        fetch.containing = asset.id
        fetch.collectionType = String(type.rawValue)
        return .fetch(fetch, options, asset.connection)
    }

    /// Fetches all moments.
    public class func fetchMoments(with options: PHFetchOptions?) -> PHFetchResult<PHAssetCollection> {
        .fetch(collections(.moment, .any), options)
    }

    /// Fetches the moments of a moment list.
    public class func fetchMoments(
        inMomentList momentList: PHCollectionList,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHAssetCollection> {
        .fetch(FetchDescription(.children, in: momentList.id), options, momentList.connection)
    }

    private static func collections(
        _ type: PHAssetCollectionType,
        _ subtype: PHAssetCollectionSubtype
    ) -> FetchDescription {
        var fetch = FetchDescription(.collections)
        fetch.collectionType = String(type.rawValue)
        if subtype != .any { fetch.collectionSubtype = String(subtype.rawValue) }
        return fetch
    }

    /// Fetches collections as ``fetchAssetCollections(with:subtype:options:)`` does, but does not block.
    public static func assetCollections(
        with type: PHAssetCollectionType,
        subtype: PHAssetCollectionSubtype,
        options: PHFetchOptions? = nil
    ) async throws -> PHFetchResult<PHAssetCollection> {
        try await .fetchAsync(collections(type, subtype), options)
    }

    // MARK: Transient collections

    /// The maximum number of members of a transient collection.
    public static let maxTransientAssets = FetchDescription.maxIDs

    /// Creates a collection of assets that exists only in this process (S-30). An asset that occurs twice is a member
    /// once.
    ///
    /// Only the first ``maxTransientAssets`` assets become members.
    public class func transientAssetCollection(with assets: [PHAsset], title: String?) -> PHAssetCollection {
        transient(
            IDList(assets.map(\.id)).ids,
            title,
            assets.first?.connection ?? PHPhotoLibrary.shared().connection
        )
    }

    /// Creates a collection of the assets of a fetch result, as ``transientAssetCollection(with:title:)`` does. If one
    /// cannot be read, only those before it are members; the `error` of the result then has the reason.
    public class func transientAssetCollection(
        withAssetFetchResult fetchResult: PHFetchResult<PHAsset>,
        title: String?
    ) -> PHAssetCollection {
        let assets = fetchResult.readableObjects(at: 0..<min(fetchResult.count, maxTransientAssets))
        return transient(assets.map(\.id), title, fetchResult.connection)
    }

    private static func transient(
        _ members: [ObjectID],
        _ title: String?,
        _ connection: LibraryConnection
    ) -> PHAssetCollection {
        var random = SystemRandomNumberGenerator()
        var collection = AssetCollection(id: .transient(.assetCollection, using: &random))
        collection.title = title
        return PHAssetCollection(
            collection,
            connection,
            nil,
            history: nil,
            members: Array(members.prefix(maxTransientAssets))
        )
    }
}
