public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// A moment in the library's history: `PHPersistentChangeToken` (T-35). Store it between runs, as text or encoded.
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
    /// Objects that changed; assets that were hidden or moved to the trash among them.
    public let updatedLocalIdentifiers: Set<String>
    public let deletedLocalIdentifiers: Set<String>
}

/// One transaction of the history: `PHPersistentChange`.
public final class PHPersistentChange: Sendable {
    private let record: ChangeRecord

    init(_ record: ChangeRecord) { self.record = record }

    /// The moment after the transaction.
    public var changeToken: PHPersistentChangeToken { PHPersistentChangeToken(record.token) }
    /// When it was committed. PhotoKit has none.
    public var date: Date { Date(microseconds: record.date) }

    /// Returns what happened to the objects of one kind.
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
        func ids(_ isWanted: (EntityChange<Entity>) -> Bool) -> Set<String> {
            Set(changes.filter(isWanted).compactMap { ($0.after ?? $0.before)?.id.text })
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

/// The transactions after a moment, in order: `PHPersistentChangeFetchResult`. Pages of a hundred are read when they are
/// needed.
///
/// Reading blocks for as long as the library does not answer. If the library refuses, for example without access, or
/// was closed, reading stops the program, as it does for a ``PHFetchResult``: an end would look like the last
/// transaction.
public struct PHPersistentChangeFetchResult: Sequence, Sendable {
    let connection: LibraryConnection
    let token: ChangeToken
    let head: ChangeToken

    public func makeIterator() -> Iterator { Iterator(connection: connection, token: token, head: head) }

    /// Calls a block with each transaction, until the block sets `stop`.
    public func enumerateChanges(_ block: (PHPersistentChange, UnsafeMutablePointer<ObjCBool>) -> Void) {
        var stop = ObjCBool(false)
        for change in self {
            block(change, &stop)
            if stop.boolValue { return }
        }
    }

    public struct Iterator: IteratorProtocol {
        let connection: LibraryConnection
        var token: ChangeToken
        let head: ChangeToken
        private var records: ArraySlice<ChangeRecord> = []

        init(connection: LibraryConnection, token: ChangeToken, head: ChangeToken) {
            self.connection = connection
            self.token = token
            self.head = head
        }

        /// Returns the next transaction; nil after the last one at the time of the fetch.
        public mutating func next() -> PHPersistentChange? {
            while records.isEmpty {
                guard token.sequence < head.sequence else { return nil }
                let page = Self.page(connection, after: token)
                precondition(page.token != token, "PHPersistentChangeFetchResult: the library returned an empty page")
                token = page.token
                records = page.records[...]
            }
            guard let record = records.popFirst(), record.sequence <= head.sequence else { return nil }
            return PHPersistentChange(record)
        }

        private static func page(
            _ connection: LibraryConnection,
            after token: ChangeToken
        ) -> (records: [ChangeRecord], token: ChangeToken) {
            let request = ChangesSince(token: token, limit: 100)
            do {
                let page = try connection.waitForAnswer { () async throws(RPCError) in
                    try await connection.catalog(request)
                }
                return (try page.records.map { try ChangeRecord(json: $0) }, page.token)
            } catch {
                preconditionFailure("PHPersistentChangeFetchResult: \(error)")
            }
        }
    }
}

extension PHPhotoLibrary {
    /// The newest moment of the library's history.
    ///
    /// PhotoKit's property does not fail. Here it is that of the first moment of no library if the library does not answer,
    /// from which no changes can be fetched.
    public var currentChangeToken: PHPersistentChangeToken {
        let token = try? connection.wait { [connection] () async throws(RPCError) in
            try await connection.catalog(CurrentToken()).token
        }
        return PHPersistentChangeToken(token ?? .none)
    }

    /// Returns the transactions after a moment (T-36).
    ///
    /// - Throws: ``PHPhotosError/Code/persistentChangeTokenExpired`` if the history does not reach back that far: fetch
    ///   everything again
    public func fetchPersistentChanges(since token: PHPersistentChangeToken) throws -> PHPersistentChangeFetchResult {
        let connection = connection
        do throws(RPCError) {
            // The first page tells whether the token is valid.
            let page = try connection.wait { () async throws(RPCError) in
                try await connection.catalog(ChangesSince(token: token.token, limit: 1))
            }
            return PHPersistentChangeFetchResult(connection: connection, token: token.token, head: page.head)
        } catch {
            throw PHPhotosError(error)
        }
    }
}
