public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// A photo or video with its metadata: `PHAsset` (S-03). It has no pixels; ``PHImageManager`` delivers them.
public final class PHAsset: PHObject, @unchecked Sendable {
    let asset: Asset
    let connection: LibraryConnection

    init(_ asset: Asset, _ connection: LibraryConnection, _ interest: Interest?, history: String) {
        self.asset = asset
        self.connection = connection
        super.init(asset.id, interest, history: history)
    }

    // MARK: Metadata

    public var mediaType: PHAssetMediaType { PHAssetMediaType(rawValue: asset.mediaType.number) ?? .unknown }
    public var mediaSubtypes: PHAssetMediaSubtype { PHAssetMediaSubtype(rawValue: UInt(asset.mediaSubtypes.rawValue)) }
    public var playbackStyle: PlaybackStyle { PlaybackStyle(rawValue: asset.playbackStyle.number) ?? .unsupported }
    public var playbackVariation: PlaybackVariation {
        PlaybackVariation(rawValue: asset.playbackVariation.number) ?? .none
    }
    public var sourceType: PHAssetSourceType { PHAssetSourceType(rawValue: UInt(asset.sourceType.number)) }
    /// The width of the current version in pixels, upright.
    public var pixelWidth: Int { asset.pixelWidth }
    public var pixelHeight: Int { asset.pixelHeight }
    /// The capture date; nil if unknown.
    public var creationDate: Date? { asset.creationDate.map { Date(microseconds: $0) } }
    /// The date of the last change of any kind.
    public var modificationDate: Date? { Date(microseconds: asset.modificationDate) }
    /// The date at which the asset was added to the library.
    public var addedDate: Date? { Date(microseconds: asset.addedDate) }
    public var location: CLLocation? { asset.location.map { CLLocation($0) } }
    /// The duration in seconds; 0 for a still.
    public var duration: TimeInterval { Double(asset.duration) / 1_000_000 }
    public var isFavorite: Bool { asset.isFavorite }
    public var isHidden: Bool { asset.isHidden }
    public var burstIdentifier: String? { asset.burstIdentifier }
    public var representsBurst: Bool { asset.representsBurst }
    public var burstSelectionTypes: PHAssetBurstSelectionType {
        PHAssetBurstSelectionType(rawValue: UInt(asset.burstSelectionTypes.rawValue))
    }
    public var hasAdjustments: Bool { asset.hasAdjustments }
    public var adjustmentFormatIdentifier: String? { asset.adjustmentFormatIdentifier }
    /// An edit counts as an adjustment by the user, because no file records that a camera made it.
    public var adjustmentsState: AdjustmentsState {
        AdjustmentsState(rawValue: asset.adjustmentsState.number) ?? .none
    }
    /// The original that is displayed and edited, if the asset has a RAW and a compressed one; for other assets
    /// ``OriginalResourceChoice/compressed``.
    public var originalResourceChoice: OriginalResourceChoice {
        asset.originalResourceChoice == .raw ? .raw : .compressed
    }
    public var adjustmentTimestamp: Date? { asset.adjustmentDate.map { Date(microseconds: $0) } }
    /// The uniform type identifier of the current version. PhotoKit has a `UTType`.
    public var contentType: String { asset.contentType }
    /// The rating, from 1 to 5; 0 if unset.
    public var rating: Int { asset.rating }
    public var caption: String? { asset.caption }
    public var keywords: [String] { asset.keywords }
    public var originalFilename: String? { asset.originalFilename }

    public enum PlaybackStyle: Int, Sendable, CaseIterable {
        case unsupported = 0
        case image = 1
        case imageAnimated = 2
        case livePhoto = 3
        case video = 4
        case videoLooping = 5
    }

    public enum PlaybackVariation: Int, Sendable, CaseIterable {
        case none = 0
        case autoloop = 1
        case mirror = 2
        case longExposure = 3
    }

    public enum AdjustmentsState: Int, Sendable, CaseIterable {
        case none = 0
        case userAdjusted = 2
        case cameraAutoAdjusted = 3
    }

    /// An original of an asset that has a RAW and a compressed one.
    public enum OriginalResourceChoice: Int, Sendable, CaseIterable {
        case compressed = 0
        case raw = 1

        var choice: OriginalChoice {
            switch self {
            case .compressed: .compressed
            case .raw: .raw
            }
        }
    }

    /// Returns true if the library allows an operation. It is decided from this snapshot, without a request.
    public func canPerform(_ editOperation: PHAssetEditOperation) -> Bool {
        asset.allowedOperations.contains { $0.number == editOperation.rawValue }
    }

    // MARK: Fetching

    public class func fetchAssets(with options: PHFetchOptions?) -> PHFetchResult<PHAsset> {
        .fetch(FetchDescription(.assets), options)
    }

    public class func fetchAssets(with mediaType: PHAssetMediaType, options: PHFetchOptions?) -> PHFetchResult<PHAsset>
    {
        .fetch(assets(of: mediaType), options)
    }

    /// Fetches assets by their identifiers, hidden ones included, in the order of the identifiers. Unknown identifiers
    /// are left out.
    public class func fetchAssets(
        withLocalIdentifiers identifiers: [String],
        options: PHFetchOptions?
    ) -> PHFetchResult<PHAsset> {
        .fetch(FetchDescription(.assets, identifiers), options)
    }

    public class func fetchAssets(
        in assetCollection: PHAssetCollection,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHAsset> {
        .fetch(members(of: assetCollection, options), options, assetCollection.connection)
    }

    /// Fetches every frame of a burst.
    public class func fetchAssets(
        withBurstIdentifier burstIdentifier: String,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHAsset> {
        var fetch = FetchDescription(.assets)
        fetch.burstIdentifier = burstIdentifier
        return .fetch(fetch, options)
    }

    /// Fetches the covers of a collection, which are at most three of its members; nil if they cannot be read.
    public class func fetchKeyAssets(
        in assetCollection: PHAssetCollection,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHAsset>? {
        let (connection, id) = (assetCollection.connection, assetCollection.id)
        let covers = try? connection.wait { () async throws(RPCError) in
            try await connection.askCatalog(FetchKeyAssets(collection: id)).assets.map(\.id.text)
        }
        return covers.map { .fetch(FetchDescription(.assets, $0), options, connection) }
    }

    /// Returns a fetch of the members of a collection. Those of a transient collection are fetched by their
    /// identifiers.
    private static func members(of collection: PHAssetCollection, _ options: PHFetchOptions?) -> FetchDescription {
        guard let members = collection.transientMembers else { return FetchDescription(.assets, in: collection.id) }
        var fetch = FetchDescription(.assets)
        fetch.ids = members
        fetch.includeHidden = options?.includeHiddenAssets ?? false
        return fetch
    }

    private static func assets(of mediaType: PHAssetMediaType) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        fetch.mediaType = MediaType(number: mediaType.rawValue)
        return fetch
    }
}

// MARK: - Asynchronous forms

extension PHAsset {
    /// Fetches assets as ``fetchAssets(with:)`` does, but does not block, and throws the `error` that a fetch result
    /// would have.
    public static func assets(with options: PHFetchOptions? = nil) async throws -> PHFetchResult<PHAsset> {
        try await .fetchAsync(FetchDescription(.assets), options)
    }

    /// Fetches assets as ``fetchAssets(with:options:)`` does, but does not block.
    public static func assets(
        with mediaType: PHAssetMediaType,
        options: PHFetchOptions? = nil
    ) async throws -> PHFetchResult<PHAsset> {
        try await .fetchAsync(assets(of: mediaType), options)
    }

    /// Fetches assets as ``fetchAssets(withLocalIdentifiers:options:)`` does, but does not block.
    public static func assets(
        withLocalIdentifiers identifiers: [String],
        options: PHFetchOptions? = nil
    ) async throws -> PHFetchResult<PHAsset> {
        try await .fetchAsync(FetchDescription(.assets, identifiers), options)
    }

    /// Fetches assets as ``fetchAssets(in:options:)`` does, but does not block.
    public static func assets(
        in assetCollection: PHAssetCollection,
        options: PHFetchOptions? = nil
    ) async throws -> PHFetchResult<PHAsset> {
        try await .fetchAsync(members(of: assetCollection, options), options, assetCollection.connection)
    }
}

extension FetchDescription {
    /// Creates a fetch by identifiers. Text that cannot be an identifier is left out, as in PhotoKit.
    init(_ kind: Kind, _ identifiers: [String]) {
        self.init(kind)
        let objectKind: ObjectKind =
            switch kind {
            case .assets: .asset
            case .collections: .assetCollection
            case .lists, .children: .collectionList
            }
        ids = identifiers.compactMap { ObjectID($0) }.filter { $0.kind == objectKind }
    }

    init(_ kind: Kind, in container: ObjectID) {
        self.init(kind)
        self.container = container
    }
}
