import GRDB
import JSONValue
import Messaging
import PhotoModel

/// A transaction to be made.
struct WriteRequest: Sendable {
    var changes: [PreparedChange]
    var origin: ChangeOrigin
    /// Nil: the write is not idempotent.
    var key: OutcomeKey?
    /// SHA-256 of what was asked for.
    var digest: [UInt8]
    /// Whom it is made for.
    var source = WriteSource()
    /// Besides: what the passing of time changes.
    var passesTime = false
    /// Besides: what was found out about stored bytes.
    var marks: [DamageMark] = []

    init(changes: [PreparedChange], origin: ChangeOrigin, key: OutcomeKey?, digest: [UInt8]) {
        self.changes = changes
        self.origin = origin
        self.key = key
        self.digest = digest
    }

    /// The transaction of the clock.
    static var clock: WriteRequest {
        var request = WriteRequest(changes: [], origin: ChangeOrigin(identity: "clock"), key: nil, digest: [])
        request.passesTime = true
        return request
    }

    /// The transaction that marks damaged pictures.
    static func marking(_ marks: [DamageMark]) -> WriteRequest {
        var request = WriteRequest(changes: [], origin: ChangeOrigin(identity: "examiner"), key: nil, digest: [])
        request.marks = marks
        return request
    }
}

/// The record of a transaction that was made, in the form in which it is stored and sent: it is encoded once.
struct CommittedRecord: Sendable {
    let sequence: Int64
    let bytes: [UInt8]
    /// Whether there are assets in it that were not there before.
    let bringsAssets: Bool
}

/// A transaction that was made, or whose outcome was known already.
struct PerformedWrite: Sendable {
    /// The result as it goes over the wire.
    var result: JSON
    /// Nil where nothing changed or the outcome was known.
    var record: CommittedRecord?
    var isRepeat = false
    /// Time has changed more than fits one transaction.
    var hasMore = false
    /// It was the clock's, and time had changed nothing.
    var isIdle = false
}

/// Why a request of a batch was not carried out; the others are.
enum WriteFailure: Error, Sendable {
    case refused(RPCError)
    /// Facts of some bytes are needed after all: ask again with them.
    case factsNeeded
}

/// One commit: several requests, each whole or not at all and with its own sequence.
struct BatchStore {
    let database: Database
    let rules: WriteRules

    /// What a commit needs besides the database.
    struct WriteRules: Sendable {
        /// The most entities one transaction may touch.
        var maxEntities = ChangeRecord.maxEntities
        /// The most bytes of one record.
        var maxRecordBytes = 8 << 20
        /// Microseconds for which an asset counts as recently added, and for which the trash keeps it.
        var recentSpan: Int64 = 30 * 86_400_000_000
        var trashSpan: Int64 = 30 * 86_400_000_000
        /// Finished published edits that are kept.
        var finishedEdits = EditLimits.finished
        /// Microseconds since 1970.
        var now: @Sendable () -> Int64
        /// The moment by which things are forgotten, where it is another one.
        var retentionNow: (@Sendable () -> Int64)?

        /// The moment by which things are forgotten.
        var moment: Int64 { (retentionNow ?? now)() }
        var makeID: @Sendable (ObjectKind) -> ObjectID
    }

    /// The outcomes of requests in their order, and where the library stands after them.
    typealias Committed = (outcomes: [Result<PerformedWrite, any Error>], head: LibraryHead)

    /// Carries out requests and commits them together.
    ///
    /// - Throws: what makes the whole batch fail: nothing of it is committed then
    func commit(_ requests: [WriteRequest], isOfTheDisk: (any Error) -> Bool) throws -> Committed {
        do {
            return try commit(requests, inSavepoints: false, isOfTheDisk)
        } catch is HalfWritten {
            return try commit(requests, inSavepoints: true, isOfTheDisk)
        }
    }

    /// A request failed after it had begun to write, which none does whose rules refuse it.
    private struct HalfWritten: Error {}

    /// - Parameter inSavepoints: each in its own, which costs much, and is needed only where one fails while it writes
    private func commit(
        _ requests: [WriteRequest],
        inSavepoints: Bool,
        _ isOfTheDisk: (any Error) -> Bool
    ) throws -> Committed {
        var outcomes: [Result<PerformedWrite, any Error>] = []
        var head = LibraryHead(library: "", sequence: 0, oldest: 0)
        try database.inTransaction(.immediate) {
            let history = HistoryStore(database: database)
            guard let start = try history.head() else { throw DamagedRow("the database has no library row") }
            head = start
            var counters = CounterChanges()
            for request in requests {
                var work = Work()
                do {
                    if inSavepoints {
                        try inSavepoint { try perform(request, head, &work) }
                    } else {
                        try perform(request, head, &work)
                    }
                } catch  where !isOfTheDisk(error) {
                    guard inSavepoints || !work.isWriting else { throw HalfWritten() }
                    // Nothing of it was written: its number is used again.
                    outcomes.append(.failure(error))
                    continue
                }
                counters.add(work.counters)
                outcomes.append(.success(work.performed))
                if let record = work.performed.record { head.sequence = record.sequence }
            }
            try counters.save(database)
            if head.sequence != start.sequence { try history.setHead(head.sequence) }
            return .commit
        }
        return (outcomes, head)
    }

    /// A request on its way.
    private struct Work {
        var performed = PerformedWrite(result: .null)
        /// Whether the database is not as it was before.
        var isWriting = false
        var counters = CounterChanges()
    }

    /// Takes back what failed, by statements that are prepared once.
    private func inSavepoint(_ work: () throws -> Void) throws {
        func run(_ sql: String) throws { try database.cachedStatement(sql: sql).execute() }
        try run("SAVEPOINT request")
        do {
            try work()
            try run("RELEASE request")
        } catch {
            // A full or failing disk may have taken back the whole transaction already.
            if database.isInsideTransaction {
                try run("ROLLBACK TO request")
                try run("RELEASE request")
            }
            throw error
        }
    }

    /// Forgets a few of the oldest records; returns whether there are more to forget.
    func trim(_ retention: Retention, now: Int64) throws -> Bool {
        var isMore = false
        try database.inTransaction(.immediate) {
            let isMoreHistory = try HistoryStore(database: database).trim(
                before: now - retention.age,
                bytes: retention.bytes,
                records: retention.stepRecords,
                recordBytes: retention.stepBytes
            )
            let isMoreEdits = try EditStore(database: database).trim(
                before: now - retention.age,
                keep: rules.finishedEdits,
                count: retention.stepRecords
            )
            isMore = isMoreHistory || isMoreEdits
            return .commit
        }
        return isMore
    }

    private func perform(_ request: WriteRequest, _ head: LibraryHead, _ work: inout Work) throws {
        let history = HistoryStore(database: database)
        if let key = request.key, let known = try history.outcome(key) {
            work.performed = PerformedWrite(result: try known.result(for: request.digest, key), isRepeat: true)
            return
        }
        let library = DatabaseLibrary(database)
        let now = rules.now()
        var transaction = ChangeTransaction(
            state: library,
            sequence: head.sequence + 1,
            now: now,
            limit: rules.maxEntities,
            recentSpan: rules.recentSpan,
            publisher: request.origin.onBehalfOf,
            makeID: rules.makeID
        )
        var performed = PerformedWrite(result: .null)
        try transaction.apply(request.changes)
        let moment = request.passesTime ? rules.moment : now
        if request.passesTime { performed.hasMore = try transaction.passTime(moment, trashSpan: rules.trashSpan) }
        for mark in request.marks { try transaction.mark(mark) }
        let changes = try transaction.finish()
        performed.isIdle = request.passesTime && changes.isEmpty
        var token = head.token
        if !changes.isEmpty {
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
            let bytes = record.json.bytes
            guard bytes.count <= rules.maxRecordBytes else { throw tooLarge(bytes.count) }
            work.isWriting = true
            try library.save(changes, sequence: head.sequence + 1, &work.counters)
            try history.append(record, bytes: bytes, &work.counters)
            performed.record = CommittedRecord(
                sequence: record.sequence,
                bytes: bytes,
                bringsAssets: changes.assets.contains { $0.before == nil }
            )
            token = record.token
        }
        performed.result = transaction.result(token: token, isChanged: !changes.isEmpty)
        if let key = request.key {
            let outcome = StoredOutcome(digest: request.digest, reply: performed.result.bytes)
            work.isWriting = true
            try history.remember(outcome, for: key, sequence: token.sequence, date: now)
        }
        if request.passesTime {
            work.isWriting = true
            try CounterChanges.set(max(0, moment), as: RetentionTime.counter, database)
        }
        work.performed = performed
    }
}
