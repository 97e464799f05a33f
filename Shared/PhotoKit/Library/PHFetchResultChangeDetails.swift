public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// The changes of a fetch result: `PHFetchResultChangeDetails` (S-67 to S-69).
///
/// To update a list: remove ``removedIndexes`` (of the list before), insert ``insertedIndexes``, reload
/// ``changedIndexes``, then perform all moves at once.
public final class PHFetchResultChangeDetails<ObjectType: PHObject>: Sendable {
    /// The result before the changes.
    public let fetchResultBeforeChanges: PHFetchResult<ObjectType>
    /// The same fetch after the changes.
    public let fetchResultAfterChanges: PHFetchResult<ObjectType>
    /// False if there are no index sets, and the new result replaces the old one as a whole.
    public let hasIncrementalChanges: Bool
    private let details: ChangeDetails?
    /// The removed, inserted, changed and moved indexes in PhotoKit's form; nil without incremental changes.
    private let rice: RICE?

    init(
        from before: PHFetchResult<ObjectType>,
        to after: PHFetchResult<ObjectType>,
        _ details: ChangeDetails?
    ) {
        fetchResultBeforeChanges = before
        fetchResultAfterChanges = after
        self.details = details
        rice = details.flatMap { try? $0.rice() }
        hasIncrementalChanges = rice != nil
    }

    /// Creates the difference between two results, also of different fetches
    /// (`changeDetails(from:to:changedObjects:)`).
    ///
    /// - Parameter changedObjects: the objects that count as changed; empty for those that changed between the two
    ///   results according to the library's history, which PhotoKit cannot do
    public convenience init(
        from fromResult: PHFetchResult<ObjectType>,
        to toResult: PHFetchResult<ObjectType>,
        changedObjects: [ObjectType] = []
    ) {
        self.init(from: fromResult, to: toResult, Self.difference(fromResult, toResult, changedObjects))
    }

    private static func difference(
        _ before: PHFetchResult<ObjectType>,
        _ after: PHFetchResult<ObjectType>,
        _ changed: [ObjectType]
    ) -> ChangeDetails? {
        let ids = changed.map(\.id)
        switch (before.source, after.source) {
        // The library refuses to compare results in an album that was deleted before both.
        case (.remote, .remote) where before.count == 0 && after.count == 0:
            return ChangeDetails(countBefore: 0, countAfter: 0)
        case (.remote(let from, let start), .remote(let to, let end)):
            let request = DetailsDiff(
                from: ResultReference(fetch: from, token: start),
                to: ResultReference(fetch: to, token: end),
                changedIds: ids.isEmpty ? nil : ids
            )
            let connection = after.connection
            let result = try? connection.wait { () async throws(RPCError) in try await connection.askCatalog(request) }
            guard let result else { return nil }
            return result.details ?? ChangeDetails(countBefore: before.count, countAfter: after.count)
        default:
            // With only a part of a result, the other objects would count as removed or inserted.
            guard let old = try? before.identifiers(), let new = try? after.identifiers() else { return nil }
            return .between(old, new, changed: Set(ids)) ?? ChangeDetails(countBefore: old.count, countAfter: new.count)
        }
    }

    /// Indexes in the result before the changes; nil if the changes are not incremental.
    public var removedIndexes: IndexSet? { rice.map { IndexSet($0.removedIndexes) } }
    /// Indexes in the result after the changes.
    public var insertedIndexes: IndexSet? { rice.map { IndexSet($0.insertedIndexes) } }
    /// Indexes of changed objects in the list after removals and insertions, before moves (D1).
    public var changedIndexes: IndexSet? { rice.map { IndexSet($0.changedIndexes) } }
    /// Indexes of changed objects in the result before the changes, which list views reload (P-01).
    public var changedIndexesBefore: IndexSet? { rice.map { IndexSet($0.changedIndexesBefore) } }
    /// Indexes of changed objects in the result after the changes.
    public var changedIndexesAfter: IndexSet? { rice.map { IndexSet($0.changedIndexesAfter) } }

    /// The objects at ``removedIndexes``, in this order. If one cannot be read, only those before it; the `error` of
    /// ``fetchResultBeforeChanges`` then has the reason.
    public var removedObjects: [ObjectType] {
        fetchResultBeforeChanges.readableObjects(at: (details?.removed ?? []).map(\.index))
    }
    /// The objects at ``insertedIndexes``, in this order. If one cannot be read, only those before it; the `error` of
    /// ``fetchResultAfterChanges`` then has the reason.
    public var insertedObjects: [ObjectType] {
        fetchResultAfterChanges.readableObjects(at: (details?.inserted ?? []).map(\.index))
    }
    /// The objects at ``changedIndexes``, in this order, as they are after the changes. If one cannot be read, only
    /// those before it; the `error` of ``fetchResultAfterChanges`` then has the reason.
    ///
    /// ``changedIndexesBefore`` is in the same order. If objects have moved, ``changedIndexesAfter`` is in another one.
    public var changedObjects: [ObjectType] {
        // Removals and insertions do not change the order of the other objects.
        let changed = (details?.changed ?? []).sorted { $0.before < $1.before }
        return fetchResultAfterChanges.readableObjects(at: changed.map(\.after))
    }

    public var hasMoves: Bool { rice?.hasMoves ?? false }

    /// Calls a handler with each move: from the index after removals and insertions to the index after the changes.
    /// Perform all moves at once (D2).
    public func enumerateMoves(_ handler: (_ fromIndex: Int, _ toIndex: Int) -> Void) {
        for move in rice?.moves ?? [] { handler(move.from, move.to) }
    }

    /// Calls a handler with a minimal sequence of single moves, each relative to the list after the previous move (D2).
    public func enumerateSequentialMoves(_ handler: (_ fromIndex: Int, _ toIndex: Int) -> Void) {
        for move in rice?.moveScript ?? [] { handler(move.from, move.to) }
    }
}
