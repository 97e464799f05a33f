import PhotoModel

/// A file of an asset: `PHAssetResource` (T-30).
public final class PHAssetResource: Sendable {
    let resource: AssetResource
    let connection: LibraryConnection
    public let assetLocalIdentifier: String
    public let type: PHAssetResourceType

    init(_ resource: AssetResource, of asset: PHAsset, _ type: PHAssetResourceType) {
        self.resource = resource
        self.type = type
        connection = asset.connection
        assetLocalIdentifier = asset.localIdentifier
    }

    public var uniformTypeIdentifier: String { resource.contentType }
    /// The name at import; empty if unknown.
    public var originalFilename: String { resource.originalFilename ?? "" }
    /// The width in pixels, upright; 0 if the file is neither an image nor a video.
    public var pixelWidth: Int { resource.pixelWidth }
    public var pixelHeight: Int { resource.pixelHeight }
    /// The size in bytes. PhotoKit has no counterpart.
    public var fileSize: Int64 { resource.size }
    /// The SHA-256 of the bytes in hexadecimal; for a part of a file, that of the whole file. PhotoKit has no
    /// counterpart.
    public var digest: String { resource.digest }

    /// Returns the files of an asset: originals, renders and adjustment data.
    public class func assetResources(for asset: PHAsset) -> [PHAssetResource] {
        asset.asset.resources.compactMap { resource in
            PHAssetResourceType(rawValue: resource.type.number).map { PHAssetResource(resource, of: asset, $0) }
        }
    }

    var id: ObjectID { ObjectID(assetLocalIdentifier) ?? .none }
}
