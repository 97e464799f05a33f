public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// Options of a file of a new asset: `PHAssetResourceCreationOptions` (T-21).
public final class PHAssetResourceCreationOptions: @unchecked Sendable {
    /// The name under which the file is known; nil for that of its URL.
    public var originalFilename: String?
    /// Has no effect: the library reads the type from the bytes of the file.
    public var uniformTypeIdentifier: String?
    /// Has no effect, as ``uniformTypeIdentifier``. PhotoKit has a `UTType`.
    public var contentType: String?
    /// Removes the file after the changes are committed, unless it was changed or replaced since it was read. If the
    /// library already stores a file with the same bytes, that one is compared with them first, and replaced if it is
    /// damaged. A file with other hard links is refused.
    public var shouldMoveFile = false

    public init() {}

    /// The options as they are now.
    func copy() -> PHAssetResourceCreationOptions {
        let copy = PHAssetResourceCreationOptions()
        (copy.originalFilename, copy.shouldMoveFile) = (originalFilename, shouldMoveFile)
        (copy.uniformTypeIdentifier, copy.contentType) = (uniformTypeIdentifier, contentType)
        return copy
    }
}

/// A request to create an asset from one or more files: `PHAssetCreationRequest` (T-19).
public final class PHAssetCreationRequest: PHAssetChangeRequest, @unchecked Sendable {
    /// Requests a new asset, whose files are then added.
    public class func forAsset() -> PHAssetCreationRequest { PHAssetCreationRequest(creating: ()) }

    /// Returns true if an asset can have original files of these types, one each.
    public class func supportsAssetResourceTypes(_ types: [NSNumber]) -> Bool {
        let resourceTypes = types.compactMap { ResourceType(number: $0.intValue) }
        guard resourceTypes.count == types.count else { return false }
        let connection = PHPhotoLibrary.shared().connection
        let isSupported = try? connection.wait { () async throws(RPCError) in
            try await connection.catalog(SupportsResources(types: resourceTypes)).isSupported
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
