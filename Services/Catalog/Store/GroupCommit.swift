import Contracts
import JSONValue
import PhotoModel
import Storage

/// Commits several requests in one transaction of the database; each is applied completely or not at all and has its own
/// sequence.
struct GroupCommit {
    let database: SQLConnection
    let context: WriteContext

    /// The limits, clocks and identifier source that a commit uses besides the database.
    struct WriteContext: Sendable {
        /// The maximum number of entities that one transaction may touch.
        var maxEntities = ChangeRecord.maxEntities
        /// The maximum size of one record in bytes.
        var maxRecordBytes = 8 << 20
        /// The maximum size of a record of one asset that the catalog changes by itself, in bytes. Such a transaction
        /// cannot be split, and the record has the asset before and after. It still fits into a message.
        var maxSingleRecordBytes = 15 << 20
        /// Microseconds for which an asset counts as recently added, and for which an asset stays in the trash.
        var recentSpan: Int64 = 30 * 86_400_000_000
        var trashSpan: Int64 = 30 * 86_400_000_000
        /// The number of finished published edits that are kept.
        var finishedEdits = EditLimits.finished
        /// Returns the current time in microseconds since 1970.
        var now: @Sendable () -> Int64
        /// Returns the time used for retention, if it differs from `now`.
        var retentionNow: (@Sendable () -> Int64)?

        /// The time used for retention, in microseconds since 1970.
        var retentionTime: Int64 { (retentionNow ?? now)() }
        var makeID: @Sendable (ObjectKind) -> ObjectID
        /// The table by which other processes notice changed assets; nil if there are none.
        var lastChanges: LastChangeFile?
    }

    /// The outcomes of requests in the order of the requests, and the library's head after them.
    typealias Committed = (outcomes: [Result<PerformedWrite, any Error>], head: LibraryHead)

    /// Performs requests and commits them together.
    ///
    /// - Parameter isOfTheDisk: returns true for an error of the database or its disk, which fails the whole batch
    /// - Throws: the error that made the whole batch fail; after a lost connection or a failure of the disk it may
    ///   have been committed
    func commit(_ requests: [WriteRequest], isOfTheDisk: (any Error) -> Bool) throws -> Committed {
        do {
            return try commit(requests, inSavepoints: false, isOfTheDisk)
        } catch is PartialWriteError {
            return try commit(requests, inSavepoints: true, isOfTheDisk)
        }
    }

    /// A request failed after it had begun to write. Requests that the rules refuse never get that far.
    private struct PartialWriteError: Error {}

    /// - Parameter inSavepoints: runs each request in its own savepoint. This is expensive, and needed only if a
    ///   request fails while it writes.
    private func commit(
        _ requests: [WriteRequest],
        inSavepoints: Bool,
        _ isOfTheDisk: (any Error) -> Bool
    ) throws -> Committed {
        var outcomes: [Result<PerformedWrite, any Error>] = []
        var head = LibraryHead(library: "", sequence: 0, oldest: 0)
        try database.inImmediateTransaction {
            let history = HistoryStore(database: database)
            guard let start = try history.head() else { throw DamagedRow("the database has no library row") }
            head = start
            var counters = CounterChanges()
            var changed: [(id: String, sequence: Int64)] = []
            for request in requests {
                var work = Work()
                do {
                    if inSavepoints {
                        try database.inSavepoint { try apply(request, head, &work) }
                    } else {
                        try apply(request, head, &work)
                    }
                } catch  where !isOfTheDisk(error) {
                    guard inSavepoints || !(work.isWriting || database.mustRollBack) else { throw PartialWriteError() }
                    // Nothing of the request was written, so its sequence number is used by the next one.
                    outcomes.append(.failure(error))
                    continue
                }
                counters.add(work.counters)
                outcomes.append(.success(work.performed))
                if let record = work.performed.record { head.sequence = record.sequence }
                changed += work.changed.map { ($0.text, head.sequence) }
            }
            try counters.save(database)
            if head.sequence != start.sequence {
                // Before the commit: no client reads the new state while another process serves the old one.
                try context.lastChanges?.record(changed, head: head.sequence)
            }
        }
        return (outcomes, head)
    }

    /// The state of one request while it is applied.
    private struct Work {
        var performed = PerformedWrite()
        /// True once the request may have changed the database.
        var isWriting = false
        var counters = CounterChanges()
        /// The assets that the request changes.
        var changed: [ObjectID] = []
    }

    /// Deletes a few of the oldest records and finished edits.
    ///
    /// - Returns: true if there is more to delete
    func trim(_ retention: RetentionPolicy, now: Int64) throws -> Bool {
        var isMore = false
        try database.inImmediateTransaction {
            let isMoreHistory = try HistoryStore(database: database).trim(
                before: now - retention.age,
                bytes: retention.bytes,
                records: retention.stepRecords,
                recordBytes: retention.stepBytes
            )
            let isMoreEdits = try EditStore(database: database).trim(
                before: now - retention.age,
                keep: context.finishedEdits,
                count: retention.stepRecords
            )
            isMore = isMoreHistory || isMoreEdits
        }
        return isMore
    }

    /// Returns the change of a grant; nil if there is none.
    private func grantChange(_ change: GrantChange) throws -> EntityChange<Grant>? {
        let stored = try GrantStore(database: database).grant(change.identity)
        guard var after = try change.apply(stored) else { return nil }
        let isOtherKey = stored.map { $0.key != after.key } ?? false
        // Another key of the same name does not take over the list.
        let list = change.list ?? (isOtherKey ? GrantListChange(.add, []) : nil)
        try list?.apply(to: &after, stored, LibraryReader(database: database))
        return EntityChange(before: stored, after: after)
    }

    /// Returns the change that puts the new assets of a client on the list of its limited grant; nil if there are none.
    private func joining(_ assets: [EntityChange<Asset>], _ grant: Grant) throws -> GrantChange? {
        let new = assets.compactMap { $0.isInsertion ? $0.after?.id : nil }
        guard !new.isEmpty else { return nil }
        let list = GrantListChange(.add, new, areNew: true)
        return GrantChange(identity: grant.identity, list: list, wasLimited: true) { stored in
            stored.flatMap { $0.key == grant.key ? $0 : nil } ?? grant
        }
    }

    /// Records the assets that a client without access to the library has added, and registers their bytes for upload
    /// like new ones.
    private func noteAdded(_ changes: [EntityChange<Asset>], _ request: WriteRequest) throws {
        guard request.addOnly != nil || request.uploadsAgain else { return }
        let assets = changes.compactMap { $0.isInsertion ? $0.after : nil }
        if let client = request.addOnly {
            for asset in assets { try AddedResourceStore(database: database).add(asset, by: client) }
        }
        guard request.uploadsAgain else { return }
        let digests = Set(assets.flatMap(\.resources).map(\.digest)).sorted().compactMap { ResourceDigest($0) }
        try RemoteObjectStore(database: database).uploadAgain(digests)
    }

    /// Applies one request: its outcome is repeated if it is known, else its changes and their record are written.
    private func apply(_ request: WriteRequest, _ head: LibraryHead, _ work: inout Work) throws {
        let history = HistoryStore(database: database)
        if let key = request.key, let known = try history.outcome(key) {
            work.performed = PerformedWrite(reply: try known.reply(for: request.digest, key), isRepeat: true)
            return
        }
        try request.checkAccess?()
        let library = StoredLibraryState(database)
        // Read before `now`, so that it is the later one only while the clock is behind.
        let retentionTime = context.retentionTime
        let now = context.now()
        var transaction = ChangeTransaction(
            state: library,
            sequence: head.sequence + 1,
            now: now,
            retentionTime: retentionTime,
            limit: context.maxEntities,
            recentSpan: context.recentSpan,
            publisher: request.origin.onBehalfOf,
            makeID: context.makeID
        )
        var performed = PerformedWrite()
        transaction.reportsSameImage = request.reportsSameImage
        transaction.joinsBursts = request.reportsSameImage
        transaction.maxTextBytes = context.maxRecordBytes
        if let limited = request.limited {
            let grants = GrantStore(database: database)
            let isOwnList = try grants.list(of: limited.identity)?.key == limited.key
            transaction.mayName = { try isOwnList && grants.isListed($0, of: limited.identity) }
        }
        try transaction.apply(request.changes)
        if request.expiresAssets {
            performed.hasMore = try transaction.expireAssets(
                at: min(now, retentionTime),
                trashSpan: context.trashSpan,
                max: request.maxExpired
            )
        }
        for mark in request.marks { try transaction.mark(mark) }
        for found in request.reread { try transaction.add(found) }
        let changes = try transaction.finish()
        performed.isIdle = request.expiresAssets && changes.isEmpty
        let wanted = try request.grant ?? request.limited.flatMap { try joining(changes.assets, $0) }
        let grant = try wanted.flatMap(grantChange)
        performed.grant = grant?.after
        performed.grant?.added = []
        performed.grant?.removed = []
        let isChanged = !changes.isEmpty || grant != nil || request.question != nil
        var token = head.token
        if isChanged {
            var record = ChangeRecord(
                sequence: head.sequence + 1,
                library: head.library,
                date: now,
                origin: request.origin
            )
            record.assets = changes.assets
            record.collections = changes.collections
            record.lists = changes.lists
            record.edits = changes.edits
            record.grants = grant.map { [$0] } ?? []
            record.questions = request.question.map { [$0] } ?? []
            let isSingle = request.key == nil && request.changes.isEmpty && changes.assets.count == 1
            let limit = isSingle ? context.maxSingleRecordBytes : context.maxRecordBytes
            let bytes = record.bytes(limit: limit)
            guard bytes.count <= limit else { throw CatalogError.recordTooLarge(bytes: bytes.count, limit: limit) }
            work.isWriting = true
            try library.save(changes, sequence: head.sequence + 1, &work.counters)
            if let grant { try GrantStore(database: database).save(grant, wanted, sequence: record.sequence) }
            try noteAdded(changes.assets, request)
            try history.append(record, bytes: bytes, &work.counters)
            performed.record = CommittedRecord(
                sequence: record.sequence,
                bytes: bytes,
                bringsAssets: changes.assets.indices.contains { changes.assets[$0].isInsertion }
            )
            token = record.token
            work.changed = changes.assets.indices.map { changes.assets[$0].id }
        }
        if !isChanged, !changes.imageDigests.isEmpty {
            work.isWriting = true
            try library.imageDigests.save(changes.imageDigests)
        }
        performed.reply = transaction.result(token: token, isChanged: isChanged).bytes
        if let key = request.key {
            let outcome = StoredOutcome(digest: request.digest, reply: performed.reply)
            work.isWriting = true
            try history.remember(outcome, for: key, record: isChanged ? token.sequence : 0, date: now)
        }
        if request.expiresAssets {
            work.isWriting = true
            try CounterChanges.set(max(0, retentionTime), as: RetentionClock.counter, database)
        }
        work.performed = performed
    }
}
