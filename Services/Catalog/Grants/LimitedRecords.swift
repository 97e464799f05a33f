import JSONValue
import PhotoModel

/// Rewrites change records for a limited view, in the order of their sequences: assets that are added to the
/// list are insertions, those that are removed from it are deletions, and other assets are left out.
struct LimitedRecords {
    private let view: LimitedView
    /// The list after the last record.
    private var ids: Set<ObjectID>
    /// False until the view's key has a list: edits and questions before may be those of another key of the same name.
    private var hasList: Bool

    /// - Parameter sequence: the sequence before the first record
    init(_ view: LimitedView, _ reader: LibraryReader, after sequence: Int64, _ head: LibraryHead) throws {
        self.view = view
        ids = try view.assets(reader, at: sequence, head).ids
        hasList = try view.hasList(reader)
    }

    /// Returns the text of the next record as the view shows it; nil if no part of it is in the view.
    ///
    /// - Throws: `access_denied` at a record after which the grant is no longer limited
    mutating func rewriteNext(_ bytes: [UInt8], _ reader: () throws -> (LibraryReader, LibraryHead)) throws
        -> [UInt8]?
    {
        var record = try ChangeRecord(json: JSON(parsing: bytes))
        let old = ids
        record.grants.removeAll { change in
            let grant = change.after ?? change.before
            return grant?.identity != view.identity || grant?.key != view.key
        }
        for index in record.grants.indices {
            guard let grant = record.grants[index].after else { continue }
            guard grant.status == .limited else { throw GrantError.viewChanged(view.identity) }
            ids.subtract(grant.removed)
            ids.formUnion(grant.added)
            hasList = true
            guard record.grants[index].before?.key != view.key else { continue }
            // The replaced grant is that of another key, and so is the list that was removed.
            record.grants[index].before = nil
            record.grants[index].after?.removed = []
        }
        record.questions.removeAll { $0.identity != view.identity }
        if !hasList { (record.edits, record.questions) = ([], []) }
        (record.collections, record.lists) = ([], [])
        // Only the publisher of an edit sees its states.
        if record.origin.onBehalfOf != view.identity { record.edits = [] }
        var changes = record.assets.compactMap { change in
            Self.visibleChange(
                old.contains(change.id) ? change.before : nil,
                ids.contains(change.id) ? change.after : nil
            )
        }
        let listChanges = record.grants.compactMap(\.after).flatMap { $0.added + $0.removed }
        let changed = Set(record.assets.map(\.id))
        let unchanged = listChanges.filter { !changed.contains($0) && old.contains($0) != ids.contains($0) }
        if !unchanged.isEmpty {
            let (reader, head) = try reader()
            let state = HistoricalState(reader: reader, sequence: record.sequence, head: head)
            for id in unchanged {
                guard let asset = try state.asset(id) else { continue }
                if let change = Self.visibleChange(old.contains(id) ? asset : nil, ids.contains(id) ? asset : nil) {
                    changes.append(change)
                }
            }
        }
        record.assets = changes
        let isEmpty =
            changes.isEmpty && record.grants.isEmpty && record.questions.isEmpty && record.edits.isEmpty
        return isEmpty ? nil : record.bytes
    }

    private static func visibleChange(_ before: Asset?, _ after: Asset?) -> EntityChange<Asset>? {
        guard before != nil || after != nil else { return nil }
        var change = EntityChange(before: before, after: after)
        change.before?.memberships = []
        change.after?.memberships = []
        return change
    }
}
