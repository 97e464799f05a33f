import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Synchronization

/// Asks the owner for consent to transactions, for identities whose grant requires it: one decision for each
/// transaction (S-13).
///
/// Questions are kept in memory, like the transactions that wait for them; a transaction that is repeated after a
/// restart has a new question. Each question and its answer are recorded in the history, on the topic `grants`.
final class ConsentService: Sendable {
    struct Limits: Sendable {
        /// The maximum number of questions that wait, for one identity and in total.
        var perIdentity = 32
        var all = 1000
        /// The maximum number of questions of one identity within an hour.
        var perHour = 1000
        /// The time after which an unanswered question ends, in microseconds. A transaction with an id can be
        /// repeated until then and joins its question.
        var lifetime: Int64 = 600_000_000
    }

    /// A transaction that waits; a repetition with the same id joins it.
    private struct Entry {
        var question: ConsentQuestion
        /// The idempotency key; nil for a transaction without an id, which cannot be repeated.
        let key: OutcomeKey?
        let digest: [UInt8]
        let askedAt: Int64
        /// The decision; nil if there is none yet.
        var isApproved: Bool?
        /// True while a decision is being recorded.
        var isDeciding = false
        /// True if the access of the identity has ended: no repetition joins the question, which is removed with its
        /// last waiter.
        var isWithdrawn = false
        var waiters: [UInt64: Promise<Void>] = [:]
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var byKey: [OutcomeKey: String] = [:]
        var lastNumber: UInt64 = 0
        /// The times of the questions of each identity, in microseconds of the monotonic clock.
        var questionTimes: [String: [Int64]] = [:]

        mutating func remove(_ id: String) {
            guard let entry = entries.removeValue(forKey: id) else { return }
            if let key = entry.key, byKey[key] == id { byKey[key] = nil }
            for waiter in entry.waiters.values { waiter.fulfill(()) }
        }

        /// Removes a question. If requests wait for it, it is declined at once, and removed with the last of them.
        mutating func withdraw(_ id: String) {
            guard var entry = entries[id], entry.isApproved == nil, !entry.waiters.isEmpty else { return remove(id) }
            if let key = entry.key, byKey[key] == id { byKey[key] = nil }
            (entry.isApproved, entry.isWithdrawn) = (false, true)
            entries[id] = entry
            for waiter in entry.waiters.values { waiter.fulfill(()) }
        }
    }

    private static let hour: Int64 = 3_600_000_000

    private let writer: TransactionWriter
    private let limits: Limits
    private let clock: MonotonicClock
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    init(
        writer: TransactionWriter,
        limits: Limits = Limits(),
        clock: MonotonicClock,
        now: @escaping @Sendable () -> Int64
    ) {
        self.writer = writer
        self.limits = limits
        self.clock = clock
        self.now = now
    }

    var count: Int { state.withLock { $0.entries.count } }

    /// The questions that wait, the oldest first.
    var pending: [ConsentQuestion] {
        state.withLock { $0.entries.values.filter { $0.isApproved == nil } }
            .sorted { ($0.askedAt, $0.question.id) < ($1.askedAt, $1.question.id) }.map(\.question)
    }

    // MARK: The client

    /// Waits until the owner has consented to a transaction.
    ///
    /// - Throws: `user_cancelled` if the owner declines or does not decide before the deadline, `id_reused`,
    ///   `limit_exceeded`, `busy`
    func require(
        _ summary: ConsentSummary,
        of call: PerformChanges,
        _ key: OutcomeKey?,
        _ digest: [UInt8],
        identity: String,
        _ context: RequestContext
    ) async throws {
        let (id, number, promise) = try await ask(summary, of: call, key, digest, identity)
        await TaskDelay.withTimeout(.microseconds(context.microsecondsToAnswer(at: clock.nowMicroseconds()))) {
            await promise.value(ifCancelled: ())
        }
        let (isApproved, expired) = state.withLock { state -> (Bool?, ConsentQuestion?) in
            guard var entry = state.entries[id] else { return (nil, nil) }
            entry.waiters[number] = nil
            state.entries[id] = entry
            if entry.isWithdrawn, entry.waiters.isEmpty { state.remove(id) }
            guard key == nil else { return (entry.isApproved, nil) }
            // A transaction without an id cannot be repeated, so its question ends with the request.
            state.remove(id)
            return (entry.isApproved, entry.isApproved == nil ? entry.question : nil)
        }
        if let expired { await end(expired) }
        switch isApproved {
        case true?: return
        case false?:
            throw GrantError.declined(question: id)
        case nil:
            throw GrantError.undecided(question: id, isWaiting: key != nil)
        }
    }

    private func ask(
        _ summary: ConsentSummary,
        of call: PerformChanges,
        _ key: OutcomeKey?,
        _ digest: [UInt8],
        _ identity: String
    ) async throws -> (id: String, number: UInt64, Promise<Void>) {
        var random = SystemRandomNumberGenerator()
        let question = ConsentQuestion(
            id: "q" + random.nextHexadecimal(byteCount: 8),
            identity: identity,
            client: call.client,
            transaction: call.transaction,
            summary: String(summary.text.prefix(1000)),
            counts: summary.json,
            objects: summary.objects,
            date: now()
        )
        let promise = Promise<Void>()
        let now = clock.nowMicroseconds()
        let (id, number, isNew) = try state.withLock { state -> (String, UInt64, Bool) in
            state.lastNumber += 1
            let number = state.lastNumber
            if let key, let id = state.byKey[key], var entry = state.entries[id] {
                guard entry.digest == digest else {
                    throw CatalogError.transactionReused(key.transaction)
                }
                entry.waiters[number] = promise
                if entry.isApproved != nil { promise.fulfill(()) }
                state.entries[id] = entry
                return (id, number, false)
            }
            let recent = (state.questionTimes[identity] ?? []).filter { now - $0 < Self.hour }
            let own = state.entries.values.count(where: {
                $0.question.identity == identity && $0.isApproved == nil
            })
            guard own < limits.perIdentity else {
                throw GrantError.tooManyQuestions(of: identity, limit: limits.perIdentity)
            }
            guard recent.count < limits.perHour else {
                throw GrantError.tooManyQuestionsPerHour(of: identity, limit: limits.perHour)
            }
            guard state.entries.count < limits.all else { throw GrantError.questionsFull(limit: limits.all) }
            state.questionTimes[identity] = recent + [now]
            var entry = Entry(question: question, key: key, digest: digest, askedAt: now)
            entry.waiters[number] = promise
            state.entries[question.id] = entry
            if let key { state.byKey[key] = question.id }
            return (question.id, number, true)
        }
        if isNew {
            do {
                try await record(question, by: identity)
            } catch {
                state.withLock { $0.remove(id) }
                throw error
            }
        }
        return (id, number, promise)
    }

    // MARK: The owner

    /// Answers a question.
    ///
    /// - Throws: `identifier_not_found` if the question does not wait, or has ended meanwhile
    func decide(_ id: String, isApproved: Bool, by owner: String) async throws -> ConsentQuestion {
        let question = state.withLock { state -> ConsentQuestion? in
            guard var entry = state.entries[id], entry.isApproved == nil, !entry.isDeciding else { return nil }
            entry.isDeciding = true
            state.entries[id] = entry
            entry.question.state = isApproved ? .approved : .declined
            entry.question.decidedBy = owner
            return entry.question
        }
        guard let question else {
            throw GrantError.noQuestion(String(id.prefix(64)))
        }
        // The decision is in the history before it has any effect.
        do {
            try await record(question, by: owner)
        } catch {
            state.withLock { state -> Void in state.entries[id]?.isDeciding = false }
            throw error
        }
        let waiters = state.withLock { state -> [Promise<Void>]? in
            guard var entry = state.entries[id] else { return nil }
            entry.isDeciding = false
            entry.isApproved = isApproved
            entry.question = question
            state.entries[id] = entry
            return Array(entry.waiters.values)
        }
        // The question of a transaction without an id has ended with its request.
        guard let waiters else {
            throw GrantError.noQuestion(String(id.prefix(64)))
        }
        for waiter in waiters { waiter.fulfill(()) }
        return question
    }

    /// Declines the waiting questions of an identity whose access the owner has denied or revoked, and removes unused
    /// approvals.
    func declineAll(of identity: String, by owner: String) async {
        let waiting = state.withLock { state -> [ConsentQuestion] in
            let own = state.entries.values.filter { $0.question.identity == identity && !$0.isDeciding }
            for entry in own { state.withdraw(entry.question.id) }
            return own.filter { $0.isApproved == nil }.map(\.question)
        }
        for var question in waiting {
            question.state = .declined
            question.decidedBy = owner
            // The question has ended even if that cannot be recorded.
            try? await record(question, by: owner)
        }
    }

    /// Ends questions that have waited too long, and removes decisions whose transactions were not repeated.
    func expire() async {
        let now = clock.nowMicroseconds()
        let expired = state.withLock { [limits] state -> [ConsentQuestion] in
            let old = state.entries.values.filter {
                now - $0.askedAt >= limits.lifetime && $0.waiters.isEmpty && !$0.isDeciding
            }
            for entry in old { state.remove(entry.question.id) }
            state.questionTimes = state.questionTimes.compactMapValues { times in
                let recent = times.filter { now - $0 < Self.hour }
                return recent.isEmpty ? nil : recent
            }
            return old.filter { $0.isApproved == nil }.map(\.question)
        }
        for question in expired { await end(question) }
    }

    private func end(_ question: ConsentQuestion) async {
        var question = question
        question.state = .expired
        // The question has ended even if that cannot be recorded.
        try? await record(question, by: "clock")
    }

    private func record(_ question: ConsentQuestion, by identity: String) async throws {
        do throws(WriteFailure) {
            _ = try await writer.perform(.question(question, by: identity))
        } catch {
            throw error.clientError
        }
    }
}
