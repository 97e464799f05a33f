import PhotoModel

extension ObservedFetches {
    /// The message published for one fetch.
    struct Message {
        let topic: String
        let previous: Int64
        let details: ChangeDetails
        /// True if the record deletes the object of the fetch.
        var objectWasDeleted = false
    }

    /// The effects of one transaction.
    struct Outcome {
        var messages: [Message] = []
        /// The fetches whose results the transaction does not fit; they were removed.
        var broken: [String] = []
        /// Fetches that were removed because all results together are too large.
        var tooLarge: [String] = []
    }

    /// An evaluation of a fetch that may take long, because its predicate has many tests of texts and the record is
    /// large. It does not run on the feed's actor, which serves other clients.
    struct LongEvaluation: Sendable {
        let number: Int
        let entity: RecordEntity
        let fetch: Fetch
        /// The fetch after the record, if its scope is another.
        let after: Fetch?

        /// The effect of the record on the entity in the result.
        var change: NetChange? { fetch.netChange(entity, after: after) }
    }

    /// The update of the fetches with a record, done in steps so that other work does not wait for all of it.
    struct Work {
        let record: ChangeRecord
        let recordBytes: Int
        /// The next entity to look up, in the order assets, collections, lists.
        var entity = 0
        /// The entity that was looked up last, with the fetches that have yet to be evaluated.
        var open: (entity: RecordEntity, candidates: [Int], textSizes: [PredicateKey: TextSize])?
        /// The net changes of each result, by its number.
        var changes: [Int: [NetChange]] = [:]
        var effects: [Int: ObservedResult.Effects] = [:]
        /// The fetches with another scope after the record.
        var after: [Int: Fetch] = [:]
        var reloaded: [Int: LoadedKeys] = [:]
        /// The results that have yet to be updated, the next one last; nil until all entities have been looked up.
        var remaining: [Int]?
        /// The remaining messages.
        var messages: [(observed: ObservedFetch, previous: Int64, builder: ChangeDetailsBuilder?)] = []

        init(record: ChangeRecord, recordBytes: Int) {
            self.record = record
            self.recordBytes = recordBytes
        }

        var isDone: Bool { remaining?.isEmpty == true && messages.isEmpty }

        /// Adds the net change of an entity in a result, if there is one.
        mutating func add(_ change: NetChange?, of entity: ObjectID, to result: ObservedResult) {
            add(change ?? result.changeOutsideResult(of: entity), to: result.number)
        }

        /// Adds a net change of a result, if there is one.
        mutating func add(_ change: NetChange?, to number: Int) {
            if let change { changes[number, default: []].append(change) }
        }
    }
}

// MARK: - Long evaluations

extension ObservedFetches {
    /// Returns true if the next step is an evaluation that may take long, which ``longEvaluation(_:)`` returns.
    func isNextLong(_ work: Work) -> Bool { nextLong(work) != nil }

    private func nextLong(_ work: Work) -> ObservedResult? {
        guard work.messages.isEmpty, work.remaining == nil, let number = work.open?.candidates.last,
            let result = results[number], result.sequence < work.record.sequence, work.reloaded[number] == nil,
            result.fetch.evaluatesLong(work.open?.textSizes ?? [:])
        else { return nil }
        return result
    }

    /// Removes the next step from the work and returns it, if it is an evaluation that may take long; nil if
    /// ``step(_:hasSubscriber:)`` may do it.
    mutating func longEvaluation(_ work: inout Work) -> LongEvaluation? {
        guard let result = nextLong(work), let entity = work.open?.entity else { return nil }
        work.open?.candidates.removeLast()
        counts.long += 1
        let after = work.after[result.number]
        return LongEvaluation(number: result.number, entity: entity, fetch: result.fetch, after: after)
    }

    /// Adds the net change that an evaluation has found, and counts its time for the observers of the result.
    ///
    /// - Returns: as ``checkTime(of:now:)``
    mutating func finish(
        _ evaluation: LongEvaluation,
        _ change: NetChange?,
        took time: Duration,
        _ work: inout Work,
        now: ContinuousClock.Instant = .now
    ) -> Bool {
        // The result may have been removed meanwhile.
        guard let result = results[evaluation.number] else { return true }
        counts.predicates += 1
        work.add(change, of: evaluation.entity.id, to: result)
        allowance.count(time, of: observerIdentities(of: result), now: now)
        return checkTime(of: evaluation, now: now)
    }

    /// Returns false if the recent evaluations for each observer of the result have taken too long. The result must
    /// then be removed without this evaluation: otherwise an observer of many such fetches would delay other clients.
    mutating func checkTime(of evaluation: LongEvaluation, now: ContinuousClock.Instant = .now) -> Bool {
        guard let result = results[evaluation.number],
            !allowance.isWithin(observerIdentities(of: result), now: now)
        else { return true }
        counts.tooLong += 1
        return false
    }

    private func observerIdentities(of result: ObservedResult) -> Set<String> {
        Set(result.windows.compactMap { fetches[$0] }.flatMap(\.identities))
    }
}

extension Fetch {
    /// The number of steps above which an evaluation is long: they take about a millisecond.
    private static let longSteps = 1 << 20

    /// Returns the approximate maximum number of steps of an evaluation.
    ///
    /// - Parameter sizes: the texts of the entity
    func steps(for sizes: [PredicateKey: TextSize]) -> Int { predicate?.steps(for: sizes) ?? 0 }

    /// Returns the approximate maximum number of steps of an evaluation with a whole record.
    func steps(for record: ChangeRecord) -> Int {
        guard predicate?.testsTexts == true else { return 0 }
        return (0..<record.entityCount).reduce(0) { $0 + steps(for: record.entity(at: $1).textSizes) }
    }

    /// Returns true if an evaluation may take long.
    func evaluatesLong(_ sizes: [PredicateKey: TextSize]) -> Bool { steps(for: sizes) > Self.longSteps }
}

/// The time that the long evaluations of each identity may take: a counter for each identity that decreases with time.
///
/// A limit for each record would end a fetch after a single large record, and would not end one that takes almost as
/// long with each of many records.
struct EvaluationAllowance {
    /// The divisor of the elapsed time that gives the decrease of the counter.
    private static let decayDivisor = 10

    /// The maximum time that may be used at once.
    let limit: Duration
    /// The used time of each identity, and when it was counted.
    private var used: [String: (time: Duration, at: ContinuousClock.Instant)] = [:]

    init(limit: Duration) { self.limit = limit }

    /// Counts the time of an evaluation.
    mutating func count(_ time: Duration, of identities: Set<String>, now: ContinuousClock.Instant) {
        used = used.filter { Self.remaining($0.value, now) > .zero }
        for identity in identities { used[identity] = (usedTime(of: identity, now) + time, now) }
    }

    /// Returns false if each of the identities has used more than it may.
    func isWithin(_ identities: Set<String>, now: ContinuousClock.Instant) -> Bool {
        identities.isEmpty || identities.contains { usedTime(of: $0, now) <= limit }
    }

    private func usedTime(of identity: String, _ now: ContinuousClock.Instant) -> Duration {
        used[identity].map { Self.remaining($0, now) } ?? .zero
    }

    /// Returns the used time that still counts.
    private static func remaining(
        _ counted: (time: Duration, at: ContinuousClock.Instant),
        _ now: ContinuousClock.Instant
    ) -> Duration {
        max(.zero, counted.time - (now - counted.at) / decayDivisor)
    }
}

/// The fetches whose observations were ended because their evaluation takes too long.
struct SlowFetches {
    /// The time for which such a fetch cannot be observed again.
    static let time = Duration.seconds(60)
    /// The maximum number of fetches; beyond it the oldest are removed.
    static let limit = 1000

    /// The times by a hash of the whole fetch, so that a long predicate takes no memory.
    private var times: [Int: ContinuousClock.Instant] = [:]

    mutating func insert(_ fetch: Fetch, now: ContinuousClock.Instant) {
        times = times.filter { now - $0.value < Self.time }
        while times.count >= Self.limit, let first = times.min(by: { $0.value < $1.value }) { times[first.key] = nil }
        times[Self.hash(fetch)] = now
    }

    func contains(_ fetch: Fetch, now: ContinuousClock.Instant) -> Bool {
        !times.isEmpty && times[Self.hash(fetch)].map { now - $0 < Self.time } ?? false
    }

    /// Returns the hash of a fetch, which does not depend on offset and limit.
    private static func hash(_ fetch: Fetch) -> Int { fetch.whole.unscoped.hashValue }
}
