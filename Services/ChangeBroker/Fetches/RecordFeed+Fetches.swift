import Basics
import Contracts
import JSONValue
import Logging
import Messaging
import PhotoModel

/// The state of one observed result at one sequence.
struct ObservationState: Sendable {
    let token: ChangeToken
    let count: Int
    /// Nil if the lists are the same.
    var details: ChangeDetails?
    /// True if the object of the fetch is deleted.
    var isDeleted = false
    /// All objects after the change, if that was requested and is short enough.
    var ids: [ObjectID]?
}

/// The result of ``RecordFeed/updateFetches(with:_:_:on:)``.
enum UpdateProgress: Sendable {
    case done
    /// The record is no longer the next one.
    case stopped
    /// These results have to be read again at the sequence of the record; no result has been updated.
    case reload([(number: Int, fetch: Fetch)])
}

extension RecordFeed {
    // MARK: From the catalog

    /// Returns the token after which the observed results have yet to be updated; nil if they are current.
    func nextUpdateToken() -> ChangeToken? {
        guard let ring, updatedThrough < ring.head else { return nil }
        guard !fetches.isEmpty else {
            updatedThrough = ring.head
            return nil
        }
        return ChangeToken(library: ring.library, sequence: updatedThrough)
    }

    /// The maximum time for which the work for observed results delays all other work.
    private static let updateTime = Duration.milliseconds(2)

    /// Updates the observed results with the next record and publishes their changes, before the head that names the
    /// record. It is suspended in between, so that other callers of the feed run.
    ///
    /// - Parameters:
    ///   - reloaded: the keys of the results that an earlier call has requested
    ///   - decoder: runs the evaluations that may take long
    func updateFetches(
        with change: ChangeRecord,
        _ bytes: Bytes,
        _ reloaded: [Int: LoadedKeys] = [:],
        on decoder: RecordDecoder
    ) async -> UpdateProgress {
        guard change.library == ring?.library else { return .stopped }
        guard change.sequence > updatedThrough else { return .done }
        let generation = fetchGeneration
        var scopes = fetches.beginScopeWork(on: change)
        while !scopes.isDone {
            let end = ContinuousClock.now + Self.updateTime
            repeat { fetches.step(&scopes) } while !scopes.isDone && ContinuousClock.now < end
            guard !scopes.isDone else { break }
            await Task.yield()
            guard generation == fetchGeneration, !Task.isCancelled else { return .stopped }
        }
        fetches.finish(&scopes)
        let missing = scopes.reloads.filter { reloaded[$0.number] == nil }
        guard missing.isEmpty else { return .reload(missing) }
        var work = fetches.beginWork(on: change, bytes: bytes.count, reloaded: reloaded, scopes)
        var record: BrokerRecord?
        var (broken, tooLarge, tooSlow): ([String], [String], [String]) = ([], [], [])
        while !work.isDone {
            while let evaluation = fetches.longEvaluation(&work) {
                let hasTime = fetches.checkTime(of: evaluation)
                let found = await decoder.run { hasTime ? evaluation.change : nil }
                guard generation == fetchGeneration, !Task.isCancelled else { return .stopped }
                let isInTime = hasTime ? fetches.finish(evaluation, found.value, took: found.time, &work) : false
                if !isInTime { tooSlow += endSlowFetch(evaluation) }
            }
            let end = ContinuousClock.now + Self.updateTime
            repeat {
                let outcome = fetches.step(&work) { subscribedTopics.hasSubscriber($0) }
                broken += outcome.broken
                tooLarge += outcome.tooLarge
                for message in outcome.messages {
                    if record == nil { record = try? BrokerRecord(bytes) }
                    guard let record else { continue }
                    send(message.topic, LiveFrames.fetch(message, of: record, limit: configuration.liveMessageBytes))
                }
            } while !work.isDone && !fetches.isNextLong(work) && ContinuousClock.now < end
            guard !work.isDone else { break }
            await Task.yield()
            await waitForSubscribers()
            guard generation == fetchGeneration, !Task.isCancelled else { return .stopped }
        }
        updatedThrough = max(updatedThrough, change.sequence)
        report(broken, tooLarge, tooSlow, at: change.sequence)
        if updatedThrough == ring?.head || ContinuousClock.now >= nextUpdateWake {
            nextUpdateWake = .now + configuration.headSpacing
            wake()
        }
        return .done
    }

    private func report(_ broken: [String], _ tooLarge: [String], _ tooSlow: [String] = [], at sequence: Int64) {
        if !broken.isEmpty {
            logger.error(
                "observed fetches do not agree with the catalog and are ended",
                metadata: ["observations": "\(broken.prefix(10))", "sequence": "\(sequence)"]
            )
        }
        if !tooLarge.isEmpty {
            logger.warning(
                "observed results have grown beyond --max-fetch-bytes: the largest are ended",
                metadata: ["observations": "\(tooLarge.prefix(10))", "limit": "\(configuration.maxFetchBytes)"]
            )
        }
        if !tooSlow.isEmpty {
            logger.warning(
                "observed fetches take too long to evaluate and are ended",
                metadata: ["observations": "\(tooSlow.prefix(10))", "sequence": "\(sequence)"]
            )
        }
        if !broken.isEmpty || !tooLarge.isEmpty { renewInstance() }
    }

    /// Ends the observations of a result whose evaluation with a record takes too long. For a minute it cannot be
    /// observed again.
    ///
    /// - Returns: the observations
    private func endSlowFetch(_ evaluation: ObservedFetches.LongEvaluation) -> [String] {
        let observations = fetches.removeResult(evaluation.number)
        guard !observations.isEmpty else { return [] }
        slowFetches.insert(evaluation.fetch, now: .now)
        renewInstance()
        return observations
    }

    /// Ends the observations of results that could not be read again.
    func endFetches(ofResults numbers: [Int], _ reason: String) {
        let observations = numbers.flatMap { fetches.removeResult($0) }
        guard !observations.isEmpty else { return }
        logger.error(
            "observed fetches are ended",
            metadata: ["error": "\(reason)", "observations": "\(observations.prefix(10))"]
        )
        renewInstance()
    }

    /// Ends every observation, unless another history has begun since a token.
    func endFetches(_ reason: String, after token: ChangeToken) {
        guard ring?.library == token.library else { return }
        logger.error("observed fetches are ended", metadata: ["error": "\(reason)", "after": "\(token)"])
        endAllFetches()
    }

    /// Ends all observations.
    func endAllFetches() {
        fetchGeneration += 1
        updatedThrough = ring?.head ?? 0
        for task in loading.values { task.cancel() }
        loading = [:]
        guard !fetches.isEmpty || fetches.count > 0 else { return }
        fetches.removeAll()
        renewInstance()
    }

    // MARK: Observing

    /// Adds a client to the observers of a fetch whose result is already kept current.
    ///
    /// - Parameter fetch: begins the observation if there is none; nil if there has to be one
    /// - Returns: false if there is no observation, or if its keys have to be loaded first
    /// - Throws: `limit_exceeded`; `unavailable` if the request has ended, because its client could not end the
    ///   observation
    func addObserver(
        _ observation: String,
        _ fetch: Fetch? = nil,
        by observer: ObservedFetch.Observer,
        at time: Int64
    ) throws(RPCError) -> Bool {
        guard !Task.isCancelled else { throw .observationEnded }
        let known = fetches[observation]
        guard known.map({ !fetches.isSuspended($0) }) ?? (fetch.flatMap(fetches.result) != nil) else {
            if let fetch, slowFetches.contains(fetch, now: .now) { throw .fetchTooSlow }
            return false
        }
        let identity = observer.identity
        if known?.observers[observer] == nil,
            fetches.count(observedBy: identity) >= configuration.maxFetchesPerIdentity,
            known?.observers.keys.contains(where: { $0.identity == identity }) != true
        {
            throw .tooManyFetches(of: identity, limit: configuration.maxFetchesPerIdentity)
        }
        if known == nil { _ = try fetchCapacity() }
        var observed = known
        if observed == nil, let fetch { observed = fetches.add(observation, fetch, at: updatedThrough) }
        guard let observed else { return false }
        fetches.addObserver(observed, observer, at: time)
        return true
    }

    /// Returns the maximum number of keys of another fetch, and of their bytes.
    ///
    /// - Parameters:
    ///   - identity: the identity of a limited view, which has lower limits; nil for the whole library
    ///   - loading: the number of loading results that are not counted
    ///   - isResumed: true for keys of observations that already exist
    /// - Throws: `limit_exceeded` if there is no capacity for another
    func fetchCapacity(
        ofView identity: String? = nil,
        besides loading: Int = 0,
        isResumed: Bool = false
    ) throws(RPCError) -> (rows: Int, bytes: Int) {
        guard isResumed || fetches.count + self.loading.count - loading < configuration.maxFetches else {
            throw .tooManyFetches(limit: configuration.maxFetches)
        }
        var rows = configuration.maxFetchRows - fetches.rows
        var bytes = configuration.maxFetchBytes - fetches.resultBytes - fetches.lists.bytes
        if let identity {
            let used = fetches.usage(ofView: identity)
            rows = min(rows, configuration.maxFetchRows / ObservedFetches.viewDivisor - used.rows)
            bytes = min(bytes, configuration.maxFetchBytes / ObservedFetches.viewDivisor - used.bytes)
        }
        return (max(0, rows), max(0, bytes))
    }

    /// Loads a result once for all clients that wait for it.
    ///
    /// - Parameter result: a name of the result, the same for all these clients
    func load(_ result: String, _ load: @escaping @Sendable () async throws -> Void) async throws {
        let task: Task<Void, any Error>
        if let running = loading[result] {
            task = running
        } else {
            task = Task { try await load() }
            loading[result] = task
        }
        do {
            try await task.value
            if loading[result] == task { loading[result] = nil }
        } catch {
            if loading[result] == task { loading[result] = nil }
            throw error
        }
    }

    /// Begins to collect the changes of a result whose keys are about to be requested.
    ///
    /// - Returns: the number of the result for ``install(_:_:_:)`` or ``cancelLoading(_:)``; nil before the first
    ///   contact with the catalog
    func beginLoading(_ fetch: Fetch) -> Int? {
        ring.map { fetches.beginLoading(fetch, after: $0.head) }
    }

    /// Returns the list that the results of a limited view have; nil if there are none.
    func list(of client: LimitedClient) -> Set<ObjectID>? { fetches.list(of: client) }

    /// Removes a result that is being loaded; has no effect if it was installed.
    func cancelLoading(_ number: Int) { fetches.cancelLoading(number) }

    /// Adds a loaded result, after updating it with the records since its token.
    ///
    /// - Returns: false if the changes since its token are not known, or another history began
    /// - Throws: `limit_exceeded` if other fetches have used the capacity meanwhile
    func install(_ number: Int, _ tree: sending KeyTree, _ loaded: LoadedKeys) throws(RPCError) -> Bool {
        let token = loaded.token
        guard let ring, ring.library == token.library else { return false }
        let view = fetches.view(of: number)
        let capacity = try fetchCapacity(ofView: view, besides: 1, isResumed: fetches.isResumed(number))
        var bytes = tree.bytes + tree.count * 6 + (loaded.members?.count ?? 0) * ViewMoments.memberBytes
        // The first result of a view adds the memory of its list.
        if let view, fetches.lists.bytes(of: view) == 0 { bytes += (loaded.scope?.count ?? 0) * ListMemory.assetBytes }
        guard tree.count <= capacity.rows, bytes <= capacity.bytes else { throw .resultsTooLarge }
        let isInstalled: Bool
        do throws(ChangeDetailsError) {
            isInstalled = try fetches.finishLoading(
                number,
                tree,
                at: token.sequence,
                scope: loaded.scope,
                members: loaded.members,
                isDeleted: loaded.isDeleted
            )
        } catch {
            logger.error(
                "a loaded result does not match the records after it and is loaded again",
                metadata: ["entity": "\(error.entity)", "at": "\(token)"]
            )
            return false
        }
        report([], fetches.applyMemoryLimits(), at: token.sequence)
        // With its moments and the changes since its token, the new result may itself be the largest.
        guard !isInstalled || fetches.results[number] != nil else { throw .resultsTooLarge }
        return isInstalled
    }

    /// Removes a client from the observers. The observation ends with the last of them, and no further messages are
    /// published on its topic.
    ///
    /// A client that has connected again may end the observations of a connection of its identity that has ended.
    ///
    /// - Returns: false if the client does not observe it
    func removeObserver(_ observation: String, by observer: ObservedFetch.Observer) -> Bool {
        guard let observed = fetches[observation] else { return false }
        let detached = ObservedFetch.Observer(identity: observer.identity, connection: nil)
        guard fetches.removeObserver(observed, observer) || fetches.removeObserver(observed, detached) else {
            return false
        }
        if observed.observers.isEmpty { fetches.remove(observation) }
        return true
    }

    /// Ends the observations of an identity that it may no longer see.
    ///
    /// - Parameter isVisible: true if it may still see observations of the whole library, and those of a limited view
    func removeObservers(of identity: String, except isVisible: (whole: Bool, limited: Bool) = (false, false)) {
        for observed in fetches.observedFetches(by: identity) {
            guard !(observed.fetch.granted == nil ? isVisible.whole : isVisible.limited) else { continue }
            for observer in observed.observers.keys where observer.identity == identity {
                _ = fetches.removeObserver(observed, observer)
            }
            if observed.observers.isEmpty { fetches.remove(observed.observation) }
        }
    }

    /// Records the end of a connection: its observations stay with its identity until the lease expires.
    func connectionEnded(_ connection: ConnectionID) { fetches.connectionEnded(connection) }

    /// Ends the observations whose leases have expired and that have no subscription to exactly their topic.
    func expireFetches(now: Int64) {
        let lease = configuration.fetchLease.components
        fetches.expire(before: now - lease.seconds * 1_000_000 - lease.attoseconds / 1_000_000_000_000) {
            subscribedTopics.isSubscribed(exactly: $0)
        }
    }

    // MARK: Details

    /// Returns the token up to which the result is current.
    private func token(of observed: ObservedFetch) -> ChangeToken {
        ChangeToken(library: ring?.library ?? "", sequence: max(observed.result.sequence, updatedThrough))
    }

    /// Returns the sequence after which the observation's log is complete, and the sequence of its last visible change;
    /// nil if there is no such observation, or if its keys have to be loaded first.
    func detailsRange(of observation: String) -> (oldestComplete: Int64, lastChange: Int64)? {
        guard let observed = fetches[observation], !fetches.isSuspended(observed) else { return nil }
        return (observed.result.oldestComplete, observed.previous)
    }

    /// Returns the encoded bytes of the records after a token; nil if the ring does not reach back to it.
    func recordBytes(after token: ChangeToken) -> Int? { ring?.bytes(after: token.sequence) }

    /// The number of observed fetches, and of the objects in all their results.
    var observedFetches: (count: Int, rows: Int) { (fetches.count, fetches.rows) }

    func fetch(of observation: String) -> Fetch? { fetches[observation]?.fetch }

    /// Returns true if a fetch has observations, but no keys.
    func isSuspended(_ fetch: Fetch) -> Bool { fetches.isSuspended(fetch) }

    /// Returns true if the result of a fetch is kept current.
    func isCurrent(_ fetch: Fetch) -> Bool { fetches.result(of: fetch) != nil }

    /// Returns the sequence up to which a result is current; nil if it is not kept current.
    func position(of observation: String, _ fetch: Fetch?) -> Int64? {
        let result = fetches[observation]?.result ?? fetch.flatMap(fetches.result)
        return result.map { max($0.sequence, updatedThrough) }
    }

    /// Returns the state of an observed fetch, with its changes since a sequence.
    ///
    /// - Parameters:
    ///   - sequence: a sequence after which the log is complete, or after which there was no visible change; may be
    ///     lower if `earlier` covers the changes up to the log's beginning
    ///   - earlier: the changes before the log begins
    ///   - maxIDs: the maximum length of a list that is returned whole
    /// - Returns: nil if the observation has ended, if its keys have to be loaded first, or if its log has been
    ///   shortened meanwhile
    func state(
        of observation: String,
        after sequence: Int64?,
        earlier: EarlierChanges? = nil,
        maxIDs: Int = 0
    ) -> ObservationState? {
        guard let observed = fetches[observation], !fetches.isSuspended(observed) else { return nil }
        var result = ObservationState(token: token(of: observed), count: observed.count)
        result.isDeleted = observed.result.isDeleted
        // Without a visible change since the sequence, all later changes were beyond offset and limit.
        if let sequence, sequence < observed.previous {
            let start = earlier?.token.sequence ?? sequence
            guard start >= observed.result.oldestComplete else { return nil }
            var net = earlier?.changes ?? NetChanges()
            net.add(observed.result.changes(after: start).all)
            result.details = observed.details(net)
        }
        if observed.count <= maxIDs { result.ids = observed.ids }
        return result
    }
}
