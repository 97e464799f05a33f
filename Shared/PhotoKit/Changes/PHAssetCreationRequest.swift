public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// Options of a file of a new asset: `PHAssetResourceCreationOptions` (T-21).
public final class PHAssetResourceCreationOptions: @unchecked Sendable {
    /// The original name of the file; nil for that of its URL.
    public var originalFilename: String?
    /// Has no effect: the library reads the type from the bytes of the file.
    public var uniformTypeIdentifier: String?
    /// Has no effect either. PhotoKit has a `UTType`.
    public var contentType: String?
    /// True to remove the file after the changes are committed, unless it was changed or replaced since it was read. If
    /// the library already stores a file with the same bytes, that one is first compared with them, and replaced if it
    /// is damaged. A file with other hard links is refused.
    public var shouldMoveFile = false

    public init() {}

    /// Returns a copy of the options.
    func copy() -> PHAssetResourceCreationOptions {
        let copy = PHAssetResourceCreationOptions()
        (copy.originalFilename, copy.shouldMoveFile) = (originalFilename, shouldMoveFile)
        (copy.uniformTypeIdentifier, copy.contentType) = (uniformTypeIdentifier, contentType)
        return copy
    }
}

/// A request to create an asset from one or more files: `PHAssetCreationRequest` (T-19).
public final class PHAssetCreationRequest: PHAssetChangeRequest, @unchecked Sendable {
    /// Requests a new asset, to which files are then added.
    public class func forAsset() -> PHAssetCreationRequest { PHAssetCreationRequest(creating: ()) }

    /// Returns true if an asset can have original files of these types, one each.
    public class func supportsAssetResourceTypes(_ types: [NSNumber]) -> Bool {
        let resourceTypes = types.compactMap { ResourceType(number: $0.intValue) }
        guard resourceTypes.count == types.count else { return false }
        let connection = PHPhotoLibrary.shared().connection
        let isSupported = try? connection.wait { () async throws(RPCError) in
            try await connection.askCatalog(SupportsResources(types: resourceTypes)).isSupported
        }
        return isSupported ?? false
    }

    /// Adds a file. Problems with it are reported when the changes are performed.
    public func addResource(
        with type: PHAssetResourceType,
        fileURL: URL,
        options: PHAssetResourceCreationOptions?
    ) {
        state.resources.append(NewAssetResource(type: type, bytes: .file(fileURL), options: options?.copy()))
    }

    /// Adds bytes. Problems with them are reported when the changes are performed.
    public func addResource(with type: PHAssetResourceType, data: Data, options: PHAssetResourceCreationOptions?) {
        state.resources.append(NewAssetResource(type: type, bytes: .data(data), options: options?.copy()))
    }
}
