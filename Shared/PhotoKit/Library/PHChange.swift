import Logging
public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// Receives changes of the library: `PHPhotoLibraryChangeObserver`.
///
/// Called on a serial queue of the library, for each transaction that affects a fetch result or object that the program
/// still references; also for the program's own transactions (S-63, D6).
public protocol PHPhotoLibraryChangeObserver: AnyObject, Sendable {
    func photoLibraryDidChange(_ changeInstance: PHChange)
}

extension PHPhotoLibrary {
    /// Adds an observer, which is not retained. It is notified of every change that is committed after this call, even
    /// while services restart.
    public func register(_ observer: any PHPhotoLibraryChangeObserver) { observers.register(observer) }

    /// Removes an observer. A call in progress is completed.
    public func unregisterChangeObserver(_ observer: any PHPhotoLibraryChangeObserver) {
        observers.unregister(observer)
    }
}

/// A change of the library: `PHChange` (S-65). It has the details of any object and any fetch result of the library.
public final class PHChange: Sendable {
    /// The point in the history after the change.
    let token: ChangeToken
    /// The transaction; nil if the history before ``token`` is not available.
    let record: ChangeRecord?
    private let connection: LibraryConnection

    init(_ token: ChangeToken, record: ChangeRecord?, _ connection: LibraryConnection) {
        self.token = token
        self.record = record
        self.connection = connection
    }

    /// The library's state after the change, as a token to store.
    public var changeToken: PHPersistentChangeToken { PHPersistentChangeToken(token) }

    /// The time of the commit; nil if the history before it is not available. PhotoKit has no counterpart.
    public var date: Date? { record.map { Date(microseconds: $0.date) } }

    /// The name of the program that made the change; nil if it has none. PhotoKit has no counterpart (D6).
    public var originClient: String? { record?.origin.client }

    /// Returns the change of an object; nil if it did not change, or if the object already includes a later change.
    ///
    /// If the history before the change is not available, this function requests the current object, and blocks until
    /// the library answers. It then also returns nil if the library refuses the request, and after
    /// ``PHPhotoLibrary/close()``.
    public func changeDetails<ObjectType: PHObject>(for object: ObjectType) -> PHObjectChangeDetails<ObjectType>? {
        guard let record else { return difference(of: object) }
        // The object of this change would be older than the program's. An object whose last change is this one gets the
        // details: programs request them for `changedObjects`, which are objects after the change.
        if object.history == record.library, let revision = object.revision, revision.sequence > record.sequence {
            return nil
        }
        let (id, connection) = (object.id, connection)
        func details<Entity>(
            _ change: EntityChange<Entity>,
            isContentChanged: Bool = false,
            _ makeObject: (Entity) -> PHObject
        ) -> PHObjectChangeDetails<ObjectType> {
            PHObjectChangeDetails(
                objectBeforeChanges: object,
                objectAfterChanges: change.after.flatMap { makeObject($0) as? ObjectType },
                assetContentChanged: isContentChanged,
                objectWasDeleted: change.objectWasDeleted
            )
        }
        if let change = record.assets.first(where: { $0.id == id }) {
            return details(change, isContentChanged: change.isContentChanged) {
                PHAsset($0, connection, object.interest, history: record.library)
            }
        }
        if let change = record.collections.first(where: { $0.id == id }) {
            return details(change) { PHAssetCollection($0, connection, object.interest, history: record.library) }
        }
        if let change = record.lists.first(where: { $0.id == id }) {
            return details(change) { PHCollectionList($0, connection, object.interest, history: record.library) }
        }
        return nil
    }

    /// Compares an object with the current one.
    private func difference<ObjectType: PHObject>(of object: ObjectType) -> PHObjectChangeDetails<ObjectType>? {
        guard let revision = object.revision, !object.id.isTransient else { return nil }
        let subject: FetchDescription.Kind =
            switch object.id.kind {
            case .asset: .assets
            case .assetCollection: .collections
            case .collectionList: .lists
            }
        let fetch = FetchDescription(subject, [object.localIdentifier])
        let (connection, interest) = (connection, object.interest)
        let found: [PHObject]
        do throws(RPCError) {
            found = try connection.waitForAnswer { () async throws(RPCError) -> [PHObject] in
                let page = try await connection.page(fetch, nil, from: 0, count: 1, interest)
                guard page.objects.isEmpty, subject == .assets else { return page.objects }
                // An asset in the trash is not deleted yet. Both fetches read the same state of the library.
                var trash = fetch
                trash.inTrash = true
                return try await connection.page(trash, page.token, from: 0, count: 1, interest).objects
            }
        } catch {
            connection.logger.warning("change details are not available", metadata: ["error": "\(error)"])
            return nil
        }
        let after = found.first as? ObjectType
        guard after?.revision != revision else { return nil }
        let isContentChanged =
            if let old = object as? PHAsset, let new = after as? PHAsset {
                old.asset.contentRevision != new.asset.contentRevision
            } else {
                false
            }
        return PHObjectChangeDetails(
            objectBeforeChanges: object,
            objectAfterChanges: after,
            assetContentChanged: isContentChanged,
            objectWasDeleted: after == nil
        )
    }

    /// Returns the changes of a fetch result up to this change; nil if there are none, or if it was fetched afterwards.
    ///
    /// This function sends a request to the library, and blocks until it is answered. If the library no longer has the
    /// details, they are not incremental: the result after the changes is fetched again, and is empty if its album or
    /// folder was deleted. The details are also nil if the library refuses that fetch, for example without access, and
    /// after ``PHPhotoLibrary/close()``.
    public func changeDetails<ObjectType>(
        for fetchResult: PHFetchResult<ObjectType>
    ) -> PHFetchResultChangeDetails<ObjectType>? {
        guard case .remote(let fetch, let from) = fetchResult.source else { return nil }
        guard from.library != token.library || from.sequence < token.sequence else { return nil }
        let request = ChangesDetails(
            from: from,
            to: token,
            fetch: fetch,
            wantsIncrementalChangeDetails: fetchResult.wantsIncrementalChangeDetails
        )
        let connection = connection
        do throws(RPCError) {
            let result = try connection.waitForAnswer { () async throws(RPCError) in
                try await connection.askCatalog(request)
            }
            guard let details = result.details else { return nil }
            return PHFetchResultChangeDetails(
                from: fetchResult,
                to: fetchResult.later(fetch, result.to, count: details.countAfter),
                details
            )
        } catch {
            // The result was empty because its album or folder was deleted earlier: it has not changed.
            if error.errorCode == .identifierNotFound, fetchResult.count == 0 { return nil }
            connection.logger.warning("change details are not available", metadata: ["error": "\(error)"])
            return fetchResult.fetchAgain(fetch, token).map {
                PHFetchResultChangeDetails(from: fetchResult, to: $0, nil)
            }
        }
    }
}

extension PHObject {
    /// The revision of a fetched object; nil for a placeholder.
    fileprivate var revision: Revision? {
        switch self {
        case let asset as PHAsset: asset.asset.revision
        case let album as PHAssetCollection: album.collection.revision
        case let folder as PHCollectionList: folder.list.revision
        default: nil
        }
    }
}

extension PHFetchResult {
    /// Returns the result of the same fetch at a later point in the history.
    func later(_ fetch: FetchDescription, _ token: ChangeToken, count: Int) -> PHFetchResult {
        let interest = interest ?? Interest(fetch)
        connection.interests.insert(interest)
        return PHFetchResult(
            fetch,
            token,
            count: count,
            connection,
            interest,
            isIncremental: wantsIncrementalChangeDetails
        )
    }

    /// Repeats the fetch and returns its result; nil if the library refuses it.
    ///
    /// - Parameter token: the token of the empty result if the album or folder of the fetch was deleted
    func fetchAgain(_ fetch: FetchDescription, _ token: ChangeToken) -> PHFetchResult? {
        let isIncremental = wantsIncrementalChangeDetails
        do throws(RPCError) {
            return try connection.waitForAnswer { [connection] () async throws(RPCError) in
                try await Self.result(of: fetch, isIncremental, connection)
            }
        } catch {
            guard error.errorCode == .identifierNotFound, count > 0 else { return nil }
            return later(fetch, token, count: 0)
        }
    }
}

/// The change of one object: `PHObjectChangeDetails` (S-66).
public final class PHObjectChangeDetails<ObjectType: PHObject>: Sendable {
    /// The object before the change.
    public let objectBeforeChanges: ObjectType
    /// The object after the change; nil if it was deleted.
    public let objectAfterChanges: ObjectType?
    /// True if the pixels changed.
    public let assetContentChanged: Bool
    /// True if it was deleted from the library. Removal from an album is not a deletion.
    public let objectWasDeleted: Bool

    init(
        objectBeforeChanges: ObjectType,
        objectAfterChanges: ObjectType?,
        assetContentChanged: Bool,
        objectWasDeleted: Bool
    ) {
        self.objectBeforeChanges = objectBeforeChanges
        self.objectAfterChanges = objectAfterChanges
        self.assetContentChanged = assetContentChanged
        self.objectWasDeleted = objectWasDeleted
    }
}
