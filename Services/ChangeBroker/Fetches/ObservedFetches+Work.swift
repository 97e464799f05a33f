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

    /// The application of a record to the fetches, done in steps so that other work does not wait for all of it.
    struct Work {
        let record: ChangeRecord
        let recordBytes: Int
        /// The next entity to look up, in the order assets, collections, lists.
        var entity = 0
        /// The entity that was looked up last, with the fetches that have yet to be evaluated.
        var open: (entity: RecordEntity, candidates: [Int], textSizes: [PredicateKey: TextSize])?
        /// The net changes of each result, by its number.
        var changes: [Int: [NetChange]] = [:]
        var circumstances: [Int: ObservedResult.Circumstances] = [:]
        /// The fetches with another scope after the record.
        var after: [Int: Fetch] = [:]
        var reloaded: [Int: LoadedKeys] = [:]
        /// The remaining results, the next one last; nil if not all entities have been looked up.
        var left: [Int]?
        /// The remaining messages.
        var messages: [(observed: ObservedFetch, previous: Int64, builder: ChangeDetailsBuilder?)] = []

        init(record: ChangeRecord, recordBytes: Int) {
            self.record = record
            self.recordBytes = recordBytes
        }

        var isDone: Bool { left?.isEmpty == true && messages.isEmpty }

        /// Adds the net change of an entity in a result, if there is one.
        mutating func add(_ change: NetChange?, of entity: ObjectID, to result: ObservedResult) {
            add(change ?? result.changeWhileAway(of: entity), to: result.number)
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
        guard work.messages.isEmpty, work.left == nil, let number = work.open?.candidates.last,
            let result = results[number], result.sequence < work.record.sequence, work.reloaded[number] == nil,
            result.fetch.evaluatesLong(work.open?.textSizes ?? [:])
        else { return nil }
        return result
    }

    /// Removes the next step from the work and returns it, if it is an evaluation that may take long; nil if
    /// ``step(_:isHeard:)`` may do it.
    mutating func longEvaluation(_ work: inout Work) -> LongEvaluation? {
        guard let result = nextLong(work), let entity = work.open?.entity else { return nil }
        work.open?.candidates.removeLast()
        counts.long += 1
        let after = work.after[result.number]
        return LongEvaluation(number: result.number, entity: entity, fetch: result.fetch, after: after)
    }

    /// Adds the net change that an evaluation has found, and counts its time for the observers of the result.
    ///
    /// - Returns: as ``isInTime(_:now:)``
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
        allowance.count(time, of: observers(of: result), now: now)
        return isInTime(evaluation, now: now)
    }

    /// Returns false if the recent evaluations of each observer of the result have taken too long. The result is then
    /// to be removed without this evaluation: an observer of many such fetches would delay all others by the sum.
    mutating func isInTime(_ evaluation: LongEvaluation, now: ContinuousClock.Instant = .now) -> Bool {
        guard let result = results[evaluation.number], !allowance.isWithin(observers(of: result), now: now) else {
            return true
        }
        counts.tooLong += 1
        return false
    }

    private func observers(of result: ObservedResult) -> Set<String> {
        Set(result.windows.compactMap { fetches[$0] }.flatMap(\.identities))
    }
}

extension Fetch {
    /// The steps above which an evaluation takes longer than others can wait: about a millisecond.
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
