import Foundation
import Contracts
import JSONValue
import PhotoModel

public enum PHCollectionEditOperation: Int, Sendable, CaseIterable {
    case deleteContent = 1
    case removeContent = 2
    case addContent = 3
    case createContent = 4
    case rearrangeContent = 5
    case delete = 6
    case rename = 7
}

/// The base class of albums and folders: `PHCollection` (S-04). It does not contain its members, which are fetched.
public class PHCollection: PHObject, @unchecked Sendable {
    let connection: LibraryConnection

    init(_ id: ObjectID, _ connection: LibraryConnection, _ interest: Interest?, history: String?) {
        self.connection = connection
        super.init(id, interest, history: history)
    }

    public var localizedTitle: String? { nil }
    public var canContainAssets: Bool { false }
    public var canContainCollections: Bool { false }

    /// Returns true if the library allows an operation. It is decided from this snapshot, without a request.
    public func canPerform(_ anOperation: PHCollectionEditOperation) -> Bool { false }

    /// Fetches the albums and folders directly in a list, together in their order. For a transient list the options
    /// have no effect.
    public class func fetchCollections(
        in collectionList: PHCollectionList,
        options: PHFetchOptions?
    ) -> PHFetchResult<PHCollection> {
        if let members = collectionList.transientMembers { return PHFetchResult(members, collectionList.connection) }
        return .fetch(FetchDescription(.children, in: collectionList.id), options, collectionList.connection)
    }

    /// Fetches the user's albums and folders that are in no folder, in their order.
    public class func fetchTopLevelUserCollections(with options: PHFetchOptions?) -> PHFetchResult<PHCollection> {
        .fetch(FetchDescription(.children), options)
    }
}

extension PHCollection {
    /// Fetches collections as ``fetchCollections(in:options:)`` does, but does not block, and throws the `error` that a
    /// fetch result would have.
    public static func collections(
        in collectionList: PHCollectionList,
        options: PHFetchOptions? = nil
    ) async throws -> PHFetchResult<PHCollection> {
        if let members = collectionList.transientMembers { return PHFetchResult(members, collectionList.connection) }
        let fetch = FetchDescription(.children, in: collectionList.id)
        return try await .fetchAsync(fetch, options, collectionList.connection)
    }

    /// Fetches collections as ``fetchTopLevelUserCollections(with:)`` does, but does not block.
    public static func topLevelUserCollections(
        with options: PHFetchOptions? = nil
    ) async throws -> PHFetchResult<PHCollection> {
        try await .fetchAsync(FetchDescription(.children), options)
    }
}
