import Contracts
import JSONValue
import PhotoModel
import Storage

/// Commits several transactions of the library in one transaction of the database; each is applied completely or not at
/// all and has its own sequence.
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
        /// The table by which the thumbnailer notices that an asset in its memory is out of date; nil if there is none.
        var lastChanges: LastChangeFile?
    }

    /// The results of transactions in their order, and the library's head after them.
    typealias Committed = (results: [Result<PerformedWrite, any Error>], head: LibraryHead)

    /// Performs transactions and commits them together. With SQLite they are durable when it returns: `COMMIT` has
    /// written the log and synced it. With PostgreSQL the settings of the server decide (``PostgreSQLDurability``).
    ///
    /// - Parameter isDatabaseFailure: returns true for an error of the database or its disk, which fails the whole
    ///   batch
    /// - Throws: the error that made the whole batch fail; after a lost connection or a failure of the disk it may
    ///   have been committed
    func commit(_ writes: [WriteRequest], isDatabaseFailure: (any Error) -> Bool) throws -> Committed {
        do {
            return try commit(writes, inSavepoints: false, isDatabaseFailure)
        } catch is PartialWriteError {
            return try commit(writes, inSavepoints: true, isDatabaseFailure)
        }
    }

    /// A transaction failed after it had begun to write. A transaction that the rules refuse fails before it writes.
    private struct PartialWriteError: Error {}

    /// - Parameter inSavepoints: applies each transaction in its own savepoint. This is expensive, and needed only if
    ///   one fails while it writes.
    private func commit(
        _ writes: [WriteRequest],
        inSavepoints: Bool,
        _ isDatabaseFailure: (any Error) -> Bool
    ) throws -> Committed {
        var results: [Result<PerformedWrite, any Error>] = []
        var head = LibraryHead(library: "", sequence: 0, oldest: 0)
        try database.inImmediateTransaction {
            let history = HistoryStore(database: database)
            guard let start = try history.head() else { throw DamagedRow("the database has no library row") }
            head = start
            var counters = CounterChanges()
            var changed: [(id: String, sequence: Int64)] = []
            for write in writes {
                var work = Work()
                do {
                    if inSavepoints {
                        try database.inSavepoint { try apply(write, head, &work) }
                    } else {
                        try apply(write, head, &work)
                    }
                } catch  where !isDatabaseFailure(error) {
                    guard inSavepoints || !(work.isWriting || database.mustRollBack) else { throw PartialWriteError() }
                    // The failed transaction has changed no row, so the next one uses its sequence number.
                    results.append(.failure(error))
                    continue
                }
                counters.add(work.counters)
                results.append(.success(work.performed))
                if let record = work.performed.record { head.sequence = record.sequence }
                changed += work.changed.map { ($0.text, head.sequence) }
            }
            try counters.save(database)
            if head.sequence != start.sequence {
                // Recorded before the commit, so that no client reads the new state while the thumbnailer serves the
                // old one.
                try context.lastChanges?.record(changed, head: head.sequence)
            }
        }
        return (results, head)
    }

    /// The state of one transaction while it is applied.
    private struct Work {
        var performed = PerformedWrite()
        /// True once the transaction may have changed the database.
        var isWriting = false
        var counters = CounterChanges()
        /// The assets that the transaction changes.
        var changed: [ObjectID] = []
    }

    /// Deletes a few of the oldest records and finished edits.
    ///
    /// - Returns: true if there is more to delete
    func trim(_ retention: RetentionPolicy, now: Int64) throws -> Bool {
        var hasMore = false
        try database.inImmediateTransaction {
            let hasMoreHistory = try HistoryStore(database: database).trim(
                before: now - retention.age,
                bytes: retention.bytes,
                records: retention.stepRecords,
                recordBytes: retention.stepBytes
            )
            let hasMoreEdits = try EditStore(database: database).trim(
                before: now - retention.age,
                keep: context.finishedEdits,
                count: retention.stepRecords
            )
            hasMore = hasMoreHistory || hasMoreEdits
        }
        return hasMore
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

    /// Returns the change that adds the new assets of a client to the list of its limited grant; nil if there are none.
    private func listChange(adding assets: [EntityChange<Asset>], to grant: Grant) throws -> GrantChange? {
        let new = assets.compactMap { $0.isInsertion ? $0.after?.id : nil }
        guard !new.isEmpty else { return nil }
        let list = GrantListChange(.add, new, areNew: true)
        return GrantChange(identity: grant.identity, list: list, wasLimited: true) { stored in
            stored.flatMap { $0.key == grant.key ? $0 : nil } ?? grant
        }
    }

    /// Records the assets that a client without access to the library has added, and registers their bytes for upload
    /// like new ones.
    private func recordAdded(_ changes: [EntityChange<Asset>], _ write: WriteRequest) throws {
        let assets = changes.compactMap { $0.isInsertion ? $0.after : nil }
        if let client = write.addOnly {
            for asset in assets { try AddedResourceStore(database: database).add(asset, by: client) }
        }
        guard write.uploadsAgain else { return }
        let digests = Set(assets.flatMap(\.resources).map(\.digest)).sorted().compactMap { ResourceDigest($0) }
        try UploadStateStore(database: database).uploadAgain(digests)
    }

    /// Applies one transaction: its outcome is repeated if it is known, else its changes and their record are written.
    private func apply(_ write: WriteRequest, _ head: LibraryHead, _ work: inout Work) throws {
        let history = HistoryStore(database: database)
        if let key = write.key, let known = try history.outcome(key) {
            work.performed = PerformedWrite(reply: try known.reply(for: write.digest, key), isRepeat: true)
            return
        }
        try write.checkAccess?()
        let library = StoredLibraryState(database)
        // Read before `now`, so that it is later than `now` only while the wall clock is behind.
        let retentionTime = context.retentionTime
        let now = context.now()
        var transaction = ChangeTransaction(
            state: library,
            sequence: head.sequence + 1,
            now: now,
            retentionTime: retentionTime,
            limit: context.maxEntities,
            recentSpan: context.recentSpan,
            publisher: write.origin.onBehalfOf,
            makeID: context.makeID
        )
        var performed = PerformedWrite()
        transaction.reportsSameImage = write.reportsSameImage
        transaction.joinsBursts = write.reportsSameImage
        transaction.maxTextBytes = context.maxRecordBytes
        if let limited = write.limited {
            let grants = GrantStore(database: database)
            let isOwnList = try grants.list(of: limited.identity)?.key == limited.key
            transaction.mayName = { try isOwnList && grants.isListed($0, of: limited.identity) }
        }
        try transaction.apply(write.prepared)
        if write.expiresAssets {
            performed.hasMore = try transaction.expireAssets(
                at: min(now, retentionTime),
                trashSpan: context.trashSpan,
                max: write.maxExpired
            )
        }
        for mark in write.marks { try transaction.mark(mark) }
        for found in write.reread { try transaction.add(found) }
        let result = try transaction.finish()
        performed.isIdle = write.expiresAssets && result.isEmpty
        let requested = try write.grant ?? write.limited.flatMap { try listChange(adding: result.assets, to: $0) }
        let grant = try requested.flatMap(grantChange)
        performed.grant = grant?.after
        performed.grant?.added = []
        performed.grant?.removed = []
        let isChanged = !result.isEmpty || grant != nil || write.question != nil
        var token = head.token
        if isChanged {
            var record = ChangeRecord(
                sequence: head.sequence + 1,
                library: head.library,
                date: now,
                origin: write.origin
            )
            record.assets = result.assets
            record.collections = result.collections
            record.lists = result.lists
            record.edits = result.edits
            record.grants = grant.map { [$0] } ?? []
            record.questions = write.question.map { [$0] } ?? []
            let isSingle = write.key == nil && write.prepared.isEmpty && result.assets.count == 1
            let limit = isSingle ? context.maxSingleRecordBytes : context.maxRecordBytes
            let bytes = record.bytes(limit: limit)
            guard bytes.count <= limit else { throw CatalogError.recordTooLarge(bytes: bytes.count, limit: limit) }
            work.isWriting = true
            try library.save(result, sequence: head.sequence + 1, &work.counters)
            if let grant { try GrantStore(database: database).save(grant, requested, sequence: record.sequence) }
            if write.addOnly != nil || write.uploadsAgain { try recordAdded(result.assets, write) }
            try history.append(record, bytes: bytes, &work.counters)
            performed.record = CommittedRecord(
                sequence: record.sequence,
                bytes: bytes,
                insertsAssets: result.assets.indices.contains { result.assets[$0].isInsertion }
            )
            token = record.token
            work.changed = result.assets.indices.map { result.assets[$0].id }
        }
        if !isChanged, !result.imageDigests.isEmpty {
            work.isWriting = true
            try library.imageDigests.save(result.imageDigests)
        }
        performed.reply = transaction.reply(token: token, isChanged: isChanged).bytes
        if let key = write.key {
            let outcome = StoredOutcome(digest: write.digest, reply: performed.reply)
            work.isWriting = true
            try history.remember(outcome, for: key, record: isChanged ? token.sequence : 0, date: now)
        }
        if write.expiresAssets {
            work.isWriting = true
            try CounterChanges.set(max(0, retentionTime), as: RetentionClock.counter, database)
        }
        work.performed = performed
    }
}
