public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// A point in the library's history: `PHPersistentChangeToken` (T-35). Store it between runs, as text or encoded.
public struct PHPersistentChangeToken: Sendable, Hashable, Codable {
    let token: ChangeToken

    init(_ token: ChangeToken) { self.token = token }

    /// The token as text.
    public var stringValue: String { token.description }

    /// Reads a token from its text; nil for other text.
    public init?(stringValue: String) {
        guard let token = ChangeToken(stringValue) else { return nil }
        self.token = token
    }

    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let token = ChangeToken(text) else {
            throw PHPhotosError(.invalidParams, "\(text.prefix(80)) is not a change token")
        }
        self.token = token
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(stringValue)
    }
}

/// The objects of one kind that a transaction inserted, updated and deleted: `PHPersistentObjectChangeDetails` (T-37).
public struct PHPersistentObjectChangeDetails: Sendable, Hashable {
    public let objectType: PHObjectType
    public let insertedLocalIdentifiers: Set<String>
    /// Objects that changed, including assets that were hidden or moved to the trash.
    public let updatedLocalIdentifiers: Set<String>
    public let deletedLocalIdentifiers: Set<String>
}

/// One transaction of the history: `PHPersistentChange`.
public final class PHPersistentChange: Sendable {
    private let record: ChangeRecord

    init(_ record: ChangeRecord) { self.record = record }

    /// The point in the history after the transaction.
    public var changeToken: PHPersistentChangeToken { PHPersistentChangeToken(record.token) }
    /// The time of the commit. PhotoKit has no counterpart.
    public var date: Date { Date(microseconds: record.date) }

    /// Returns the changes of the objects of one kind.
    public func changeDetails(for objectType: PHObjectType) throws -> PHPersistentObjectChangeDetails {
        switch objectType {
        case .asset: details(objectType, record.assets)
        case .assetCollection: details(objectType, record.collections)
        case .collectionList: details(objectType, record.lists)
        }
    }

    private func details<Entity>(
        _ type: PHObjectType,
        _ changes: [EntityChange<Entity>]
    ) -> PHPersistentObjectChangeDetails where Entity: IdentifiedEntity {
        func ids(_ isIncluded: (EntityChange<Entity>) -> Bool) -> Set<String> {
            Set(changes.filter(isIncluded).compactMap { ($0.after ?? $0.before)?.id.text })
        }
        return PHPersistentObjectChangeDetails(
            objectType: type,
            insertedLocalIdentifiers: ids { $0.before == nil },
            updatedLocalIdentifiers: ids { $0.before != nil && $0.after != nil },
            deletedLocalIdentifiers: ids { $0.after == nil }
        )
    }
}

/// An entity of a change record.
protocol IdentifiedEntity {
    var id: ObjectID { get }
}

extension Asset: IdentifiedEntity {}
extension AssetCollection: IdentifiedEntity {}
extension CollectionList: IdentifiedEntity {}

extension PHPhotoLibrary {
    /// The newest point in the library's history.
    ///
    /// The property cannot throw, as in PhotoKit. If the library does not answer, it is a token of no library, from
    /// which no changes can be fetched.
    public var currentChangeToken: PHPersistentChangeToken {
        let token = try? connection.wait { [connection] () async throws(RPCError) in
            try await connection.askCatalog(CurrentToken()).token
        }
        return PHPersistentChangeToken(token ?? .none)
    }
}
