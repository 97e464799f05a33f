import Contracts
import Messaging
import PhotoModel

/// All observed fetches of one history, which are updated with each record. Part of the state of the actor
/// ``RecordFeed``.
struct ObservedFetches {
    private(set) var results: [Int: ObservedResult] = [:]
    /// Results whose keys have not arrived yet.
    private var loading: [Int: LoadingFetch] = [:]
    /// The numbers of current results by fetches without offset and limit.
    private var shared: [Fetch: Int] = [:]
    /// The results that ``suspend(_:)`` has emptied, by fetches without offset and limit.
    private var suspended: [Fetch: ObservedResult] = [:]
    /// The results, loading or not, whose fetches refer to an object.
    private var byObject: [ObjectID: Set<Int>] = [:]
    /// The results, loading or not, whose fetches need a scope.
    private(set) var scoped: Set<Int> = []
    /// The results, loading or not, of the limited view of each identity.
    private(set) var limited: [String: Set<Int>] = [:]
    /// The results, loading or not, that depend on the moments of a limited view.
    private var viewed: Set<Int> = []
    private(set) var index = FetchIndex()
    private(set) var fetches: [Int: ObservedFetch] = [:]
    private var numbers: [String: Int] = [:]
    private var lastNumber = 0
    /// The sequence of the newest record that the results have been, or are being, updated with.
    private var newest: Int64 = 0
    var observerIndex = ObserverIndex()
    private(set) var rows = 0
    /// The approximate memory of all results, and of all logs, in bytes.
    private(set) var resultBytes = 0
    /// The number of objects in all results of the limited view of each identity, and their memory.
    private(set) var viewUsage: [String: (rows: Int, bytes: Int)] = [:]
    /// The lists of limited views, each of which all results of its identity share.
    private(set) var lists = ListMemory()
    private(set) var logBytes = 0
    let maxBytes: Int
    let maxLogBytes: Int
    /// The time of the long evaluations of each identity.
    var allowance: EvaluationAllowance
    var counts = (
        records: 0, candidates: 0, predicates: 0, messages: 0, dropped: 0, broken: 0, shortened: 0, reloaded: 0,
        long: 0, tooLong: 0, suspended: 0
    )

    /// - Parameters:
    ///   - maxBytes: the memory of all results and logs
    ///   - maxLogBytes: the memory of the logs alone
    ///   - maxEvaluationTime: the maximum time that the long evaluations of one identity may take at once
    init(maxBytes: Int = .max, maxLogBytes: Int = .max, maxEvaluationTime: Duration = .seconds(10)) {
        self.maxBytes = maxBytes
        self.maxLogBytes = maxLogBytes
        allowance = EvaluationAllowance(limit: maxEvaluationTime)
    }

    /// True if there are no fetches that a record could affect.
    var isEmpty: Bool { results.isEmpty && loading.isEmpty }

    subscript(observation: String) -> ObservedFetch? { numbers[observation].flatMap { fetches[$0] } }

    /// Returns the whole result of a fetch; nil if it is not kept current.
    func result(of fetch: Fetch) -> ObservedResult? {
        shared[fetch.whole.unscoped].flatMap { results[$0] }
    }

    // MARK: Loading

    /// Begins to collect the changes of a result whose keys are about to be requested.
    ///
    /// - Parameter head: the newest sequence that the broker has; the keys are at least as new
    /// - Returns: the number of the result, for ``finishLoading(_:_:at:scope:members:isDeleted:)`` or
    ///   ``cancelLoading(_:)``
    mutating func beginLoading(_ fetch: Fetch, after head: Int64) -> Int {
        lastNumber += 1
        // Another history begins with lower sequences.
        newest = min(newest, head)
        let whole = fetch.whole.unscoped
        loading[lastNumber] = LoadingFetch(fetch: whole, oldestComplete: head)
        // Records have the moments and lists of the whole library, which differ from those of a view.
        let isViewed = whole.dependsOnViewMoments
        if isViewed { viewed.insert(lastNumber) }
        if !isViewed || whole.kind.entityClass == .asset { index.insert(whole, number: lastNumber) }
        if !isViewed, let object = whole.kind.object { byObject[object, default: []].insert(lastNumber) }
        if whole.kind.needsScope { scoped.insert(lastNumber) }
        if let identity = whole.granted?.identity { limited[identity, default: []].insert(lastNumber) }
        return lastNumber
    }

    private mutating func removeFromIndexes(_ number: Int, _ fetch: Fetch) {
        index.remove(number: number)
        viewed.remove(number)
        scoped.remove(number)
        if let identity = fetch.granted?.identity {
            limited[identity]?.remove(number)
            if limited[identity]?.isEmpty == true {
                (limited[identity], viewUsage[identity]) = (nil, nil)
                lists.remove(identity)
            }
        }
        if let object = fetch.kind.object {
            byObject[object]?.remove(number)
            if byObject[object]?.isEmpty == true { byObject[object] = nil }
        }
    }

    /// Removes a result that is being loaded; has no effect if its loading has finished.
    mutating func cancelLoading(_ number: Int) {
        guard let pending = loading.removeValue(forKey: number) else { return }
        removeFromIndexes(number, pending.fetch)
        logBytes -= pending.bytes
    }

    /// Adds a loaded result, which is kept current from now on. Call ``applyMemoryLimits()`` after it.
    ///
    /// - Returns: false if the changes since the keys were read are not known, so that the keys have to be loaded again
    /// - Throws: an error if these changes do not fit the keys
    mutating func finishLoading(
        _ number: Int,
        _ tree: KeyTree,
        at sequence: Int64,
        scope: Set<ObjectID>? = nil,
        members: [ObjectID: MomentMember]? = nil,
        isDeleted: Bool = false
    ) throws(ChangeDetailsError) -> Bool {
        guard let pending = loading[number], pending.isComplete(after: sequence, newest: newest),
            shared[pending.fetch] == nil
        else { return false }
        let result = ObservedResult(
            pending.fetch.with(scope, at: sequence),
            number: number,
            tree: tree,
            moments: members.map(ViewMoments.init),
            at: sequence,
            isDeleted: isDeleted
        )
        for entry in pending.log where entry.sequence > sequence {
            var (changes, effects) = (entry.changes, ObservedResult.Effects(isDeleted: entry.isDeleted))
            if let record = entry.record {
                let after: Fetch?
                switch result.fetch.scopeChange(by: record) {
                case .none: after = nil
                case .to(let scope): (after, effects.scope) = (result.fetch.with(scope, at: entry.sequence), scope)
                case .unknown, .ended: return false
                }
                if pending.fetch.kind.entityClass == .asset || !pending.fetch.dependsOnViewMoments {
                    changes = result.fetch.netChanges(of: record, after: after)
                }
                changes += result.momentChanges(by: record, after: after, &effects)
            }
            _ = try result.advance(to: entry.sequence, changes, effects)
        }
        loading[number] = nil
        logBytes -= pending.bytes
        results[number] = result
        shared[pending.fetch] = number
        addUsage(of: result, 1)
        if let empty = suspended.removeValue(forKey: pending.fetch) { moveWindows(of: empty, to: result) }
        return true
    }

    /// Removes the keys of a result. Its observations stay: the first request for one of them loads the result again.
    mutating func suspend(_ number: Int) {
        guard let result = results[number] else { return }
        let fetch = result.fetch.unscoped
        let empty = ObservedResult(fetch, number: number, tree: KeyTree(), at: result.sequence)
        moveWindows(of: result, to: empty)
        remove(result)
        guard !empty.windows.isEmpty else { return }
        suspended[fetch] = empty
        counts.suspended += 1
    }

    /// Returns true if a fetch has observations, but no keys (``suspend(_:)``).
    func isSuspended(_ fetch: Fetch) -> Bool { suspended[fetch.whole.unscoped] != nil }

    /// Returns true if a result that is being loaded is that of observations without keys.
    func isResumed(_ number: Int) -> Bool { loading[number].map { isSuspended($0.fetch) } ?? false }

    private func moveWindows(of result: ObservedResult, to other: ObservedResult) {
        (other.windows, result.windows) = (result.windows, [])
        for number in other.windows { fetches[number]?.move(to: other) }
    }

    // MARK: Observers

    /// Returns the observed fetch of an observation; it is added if there is none and its result is kept current.
    ///
    /// - Parameter sequence: the sequence up to which all results are current
    /// - Returns: nil if the result has to be loaded first
    mutating func add(_ observation: String, _ fetch: Fetch, at sequence: Int64) -> ObservedFetch? {
        if let observed = self[observation] { return observed }
        guard let result = result(of: fetch) else { return nil }
        lastNumber += 1
        let observed = ObservedFetch(observation, fetch, number: lastNumber, of: result, at: sequence)
        result.windows.insert(observed.number)
        fetches[observed.number] = observed
        numbers[observation] = observed.number
        return observed
    }

    /// Ends an observation; the result is removed with its last observation.
    mutating func remove(_ observation: String) {
        guard let number = numbers.removeValue(forKey: observation),
            let observed = fetches.removeValue(forKey: number)
        else { return }
        for observer in observed.observers.keys { observerIndex.remove(observer, number) }
        counts.dropped += 1
        observed.result.windows.remove(number)
        if observed.result.windows.isEmpty { remove(observed.result) }
    }

    /// Removes a result with all observations of it.
    ///
    /// - Returns: the observations
    @discardableResult
    mutating func remove(_ result: ObservedResult) -> [String] {
        let observations = result.windows.compactMap { fetches[$0]?.observation }
        let fetch = result.fetch.unscoped
        if results[result.number] === result {
            (results[result.number], shared[fetch]) = (nil, nil)
            addUsage(of: result, -1)
            removeFromIndexes(result.number, result.fetch)
        } else if suspended[fetch] === result {
            suspended[fetch] = nil
        } else {
            return []
        }
        for observation in observations { remove(observation) }
        return observations
    }

    // MARK: Records

    /// Begins to update the fetches with a record.
    ///
    /// - Parameters:
    ///   - bytes: the encoded size of the record
    ///   - reloaded: the keys at this record of the results in ``ScopeWork/reloads``
    ///   - scopes: the effects of the record on the scopes; nil to find them
    mutating func beginWork(
        on record: ChangeRecord,
        bytes: Int = 0,
        reloaded: [Int: LoadedKeys] = [:],
        _ scopes: ScopeWork? = nil
    ) -> Work {
        counts.records += 1
        newest = record.sequence
        let scopes = scopes ?? findScopes(of: record)
        var work = Work(record: record, recordBytes: bytes)
        (work.after, work.effects) = (scopes.after, scopes.effects)
        for (number, keys) in reloaded {
            guard let result = results[number], result.sequence < record.sequence else { continue }
            work.reloaded[number] = keys
            work.effects[number] = .init(scope: keys.scope, isDeleted: keys.isDeleted)
        }
        return work
    }

    /// Looks up one entity, evaluates one fetch with it, updates one result with the record, or builds one message.
    ///
    /// - Parameter hasSubscriber: returns true if a topic has a subscriber; messages of other topics are not built
    mutating func step(_ work: inout Work, hasSubscriber: (String) -> Bool = { _ in true }) -> Outcome {
        var outcome = Outcome()
        if let next = work.messages.popLast() {
            let details = next.builder?.details(of: next.observed.fetch)
            let count = next.observed.count
            outcome.messages.append(
                Message(
                    topic: next.observed.topic,
                    previous: next.previous,
                    details: details ?? ChangeDetails(countBefore: count, countAfter: count),
                    objectWasDeleted: work.effects[next.observed.result.number]?.isDeleted == true
                )
            )
        } else if let number = work.remaining?.popLast() {
            update(number, &work, hasSubscriber, &outcome)
        } else if work.remaining == nil {
            lookUp(&work)
        }
        return outcome
    }

    private mutating func lookUp(_ work: inout Work) {
        if let entity = work.open?.entity, let number = work.open?.candidates.popLast() {
            return evaluate(number, with: entity, &work)
        }
        guard work.entity < work.record.entityCount else {
            for (number, pending) in loading where pending.fetch.needsScope {
                work.changes[number, default: []] += []
            }
            for number in viewed where results[number] != nil { work.changes[number, default: []] += [] }
            return work.remaining = Set(work.changes.keys).union(work.effects.keys).sorted(by: >)
        }
        let entity = work.record.entity(at: work.entity)
        work.entity += 1
        let candidates: Set<Int>
        switch entity {
        case .asset(let states): candidates = index.candidates(states)
        case .collection(let states): candidates = index.candidates(states)
        case .list(let states): candidates = index.candidates(states)
        }
        counts.candidates += candidates.count
        work.open = (entity, Array(candidates), candidates.isEmpty ? [:] : entity.textSizes)
        if let isDeleted = entity.isDeleted, let numbers = byObject[entity.id] {
            for number in numbers where work.reloaded[number] == nil {
                work.effects[number, default: .init()].isDeleted = isDeleted
            }
        }
    }

    /// Evaluates one fetch with an entity of the record.
    private mutating func evaluate(_ number: Int, with entity: RecordEntity, _ work: inout Work) {
        // Records that the loaded keys contain are not applied again.
        if let result = results[number] {
            guard result.sequence < work.record.sequence, work.reloaded[number] == nil else { return }
            counts.predicates += 1
            work.add(result.fetch.netChange(entity, after: work.after[number]), of: entity.id, to: result)
        } else if let pending = loading[number], pending.oldestComplete < work.record.sequence,
            !pending.fetch.needsScope
        {
            // Without the log, the keys are loaded again, and then contain the record.
            guard !pending.fetch.evaluatesLong(work.open?.textSizes ?? [:]) else {
                logBytes -= loading[number]?.discard() ?? 0
                return
            }
            counts.predicates += 1
            work.add(pending.fetch.netChange(entity), to: number)
        }
    }

    private mutating func update(
        _ number: Int,
        _ work: inout Work,
        _ hasSubscriber: (String) -> Bool,
        _ outcome: inout Outcome
    ) {
        let record = work.record
        // The result may have been removed since its entities were looked up.
        if let result = results[number] {
            guard result.sequence < record.sequence else { return }
            // The memory of the moments of the result changes now; `advance` adds the usage again.
            addUsage(of: result, -1)
            var changes = work.changes[number] ?? []
            if let keys = work.reloaded[number] {
                counts.reloaded += 1
                changes = result.reload(keys, at: record, &work.effects[number, default: .init()])
            } else if viewed.contains(number) {
                let after = work.after[number]
                changes += result.momentChanges(by: record, after: after, &work.effects[number, default: .init()])
            }
            advance(result, changes, work.effects[number] ?? .init(), &work, hasSubscriber, &outcome)
        } else if let pending = loading[number], pending.oldestComplete < record.sequence {
            var entry = LoadingFetch.Entry(sequence: record.sequence)
            entry.changes = work.changes[number] ?? []
            entry.isDeleted = work.effects[number]?.isDeleted
            if pending.fetch.needsScope {
                entry.record = record
                entry.steps = pending.fetch.steps(for: record)
            }
            logBytes += loading[number]?.append(entry, recordBytes: entry.record == nil ? 0 : work.recordBytes) ?? 0
        }
        outcome.tooLarge += applyMemoryLimits()
    }

    private mutating func advance(
        _ result: ObservedResult,
        _ changes: [NetChange],
        _ effects: ObservedResult.Effects,
        _ work: inout Work,
        _ hasSubscriber: (String) -> Bool,
        _ outcome: inout Outcome
    ) {
        do throws(ChangeDetailsError) {
            let wasDeleted = result.isDeleted
            let builder = try result.advance(to: work.record.sequence, changes, effects)
            addUsage(of: result, 1)
            let isNowDeleted = result.isDeleted && !wasDeleted
            guard builder != nil || isNowDeleted else { return }
            for number in result.windows {
                guard let observed = fetches[number],
                    isNowDeleted || builder?.isVisible(in: observed.fetch) == true
                else { continue }
                counts.messages += 1
                if hasSubscriber(observed.topic) { work.messages.append((observed, observed.previous, builder)) }
                observed.previous = work.record.sequence
            }
        } catch {
            addUsage(of: result, 1)
            let observations = remove(result)
            counts.broken += observations.count
            outcome.broken += observations
        }
    }

    // MARK: Memory

    /// Adds the rows and the memory of a result to the totals; subtracts them if the sign is -1.
    private mutating func addUsage(of result: ObservedResult, _ sign: Int) {
        rows += sign * result.rows
        resultBytes += sign * result.resultBytes
        logBytes += sign * result.logBytes
        guard let granted = result.fetch.granted else { return }
        viewUsage[granted.identity, default: (0, 0)].rows += sign * result.rows
        viewUsage[granted.identity, default: (0, 0)].bytes += sign * result.resultBytes
        if sign > 0 { lists.set(granted.identity, assets: granted.ids.count) }
    }

    /// Applies the limits of memory: shortens the longest logs, and if the results alone are too large, removes the
    /// ``largest``.
    ///
    /// - Returns: the observations that were ended
    mutating func applyMemoryLimits() -> [String] {
        var tooLarge: [String] = []
        while resultBytes + lists.bytes > maxBytes, let largest { tooLarge += remove(largest) }
        let capacity = min(maxLogBytes, maxBytes - resultBytes - lists.bytes)
        guard logBytes > capacity else { return tooLarge }
        for number in loading.keys { logBytes -= loading[number]?.discard() ?? 0 }
        shortenLogs(to: capacity / 8 * 7)
        return tooLarge
    }

    /// Shortens the longest logs to the same size, so that all logs together take at most a number of bytes.
    private mutating func shortenLogs(to bytes: Int) {
        counts.shortened += 1
        let sizes = results.values.map(\.logBytes).sorted()
        var (remaining, maxSize) = (bytes, Int.max)
        for (position, size) in sizes.enumerated() {
            let average = remaining / (sizes.count - position)
            if size > average {
                maxSize = average
                break
            }
            remaining -= size
        }
        for result in results.values where result.logBytes > maxSize {
            logBytes -= result.logBytes
            result.shortenLog(to: maxSize)
            logBytes += result.logBytes
        }
    }

    mutating func removeAll() {
        for result in Array(results.values) + Array(suspended.values) { remove(result) }
        for number in Array(loading.keys) { cancelLoading(number) }
    }
}
