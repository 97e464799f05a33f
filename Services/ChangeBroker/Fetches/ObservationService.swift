import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// Implements `fetch.observe`, `fetch.unobserve` and `fetch.details`. The state is in ``RecordFeed``.
struct ObservationService: Sendable {
    let history: ChangeHistory
    let configuration: ChangeBrokerConfiguration
    let decoder: RecordDecoder
    /// Limits how many requests read earlier records for details at the same time.
    let detailWork: FairSemaphore<WorkSource>
    let clock: MonotonicClock

    private var feed: RecordFeed { history.feed }

    /// The maximum number of records that are read again for one response; beyond it the client fetches again.
    private static let maxRecords: Int64 = 10_000
    /// The maximum size of these records in bytes.
    private static let maxRecordBytes = 16 << 20
    /// The maximum time of their evaluation.
    private static let maxEvaluationTime = Duration.seconds(2)
    /// The maximum number of entries in the details of one response; beyond it the objects after the change replace
    /// them.
    private static let maxEntries = 100_000

    // MARK: Requests

    func observe(_ request: FetchObserve, _ context: RequestContext) async throws(RPCError) -> FetchObserve.Result {
        let view = try await history.view(of: context)
        var fetch = try Self.observableFetch(request.fetch)
        if let view { fetch = fetch.limited(to: view.emptyList) }
        // The observation may end before its result is read; then it is loaded again.
        for _ in 0..<5 {
            guard let library = await feed.token?.library else { throw RPCError.brokerNotReady }
            let observation = Self.observation(of: fetch, library)
            if let token = request.token { try await catchUp(with: token, observation, fetch, context) }
            try await catchUpWithCatalog(observation, fetch, context)
            let observer = context.observer
            if try await feed.addObserver(observation, fetch, by: observer, at: clock.nowMicroseconds()) == false {
                try await load(fetch, since: request.token, library)
                guard try await feed.addObserver(observation, fetch, by: observer, at: clock.nowMicroseconds()) else {
                    continue
                }
            }
            let details = try await result(
                observation,
                since: request.token,
                request.isIncremental,
                request.form,
                for: WorkSource(of: context)
            )
            guard let details else { continue }
            return FetchObserve.Result(
                details: details,
                topic: FeedTopic.fetch(observation),
                instance: await feed.instance
            )
        }
        throw RPCError.libraryChangesTooFast
    }

    func unobserve(_ request: FetchUnobserve, _ context: RequestContext) async throws(RPCError) -> EmptyResult {
        guard await feed.removeObserver(request.observation, by: context.observer) else {
            throw .notObserved(request.observation)
        }
        return EmptyResult()
    }

    func details(_ request: FetchDetails, _ context: RequestContext) async throws(RPCError) -> FetchDetailsResult {
        if let view = try await history.view(of: context) {
            // Observations of other clients are reported as missing.
            let granted = await feed.fetch(of: request.observation)?.granted
            guard let granted, view == LimitedClient(granted) else {
                throw RPCError.unknownObservation(request.observation)
            }
        }
        try await catchUp(with: request.token, request.observation, nil, context)
        try await catchUpWithCatalog(request.observation, nil, context)
        for _ in 0..<5 {
            let time = clock.nowMicroseconds()
            guard try await feed.addObserver(request.observation, by: context.observer, at: time) else {
                guard let fetch = await feed.fetch(of: request.observation), let library = await feed.token?.library
                else { break }
                try await load(fetch, since: request.token, library)
                continue
            }
            let result = try await result(
                request.observation,
                since: request.token,
                request.isIncremental,
                request.form,
                for: WorkSource(of: context)
            )
            if let result { return result }
        }
        throw RPCError.unknownObservation(request.observation)
    }

    // MARK: Helpers

    /// Parses a fetch, and checks that it can be observed.
    private static func observableFetch(_ description: FetchDescription) throws(RPCError) -> Fetch {
        let fetch: Fetch
        do throws(PredicateError) { fetch = try Fetch(description) } catch { throw error.rpcError }
        if let reason = fetch.notObservableReason { throw .notObservable(reason) }
        return fetch
    }

    /// Returns the identifier of a fetch in a history: the same for all clients that see the whole library, and after a
    /// restart. Each limited view has its own.
    static func observation(of fetch: Fetch, _ library: String) -> String {
        var hash = SHA256()
        hash.update(data: Array(library.utf8))
        hash.update(data: fetch.canonical)
        if let granted = fetch.granted {
            hash.update(data: Array("\u{0}\(granted.identity)\u{0}\(granted.key ?? "")".utf8))
        }
        return hash.finalize().prefix(16).hexadecimal
    }

    /// Waits until the feed has reached a token that the client has received from the catalog.
    private func catchUp(
        with token: ChangeToken,
        _ observation: String,
        _ fetch: Fetch?,
        _ context: RequestContext
    ) async throws(RPCError) {
        let now = clock.nowMicroseconds()
        let end = now + min(context.microsecondsToAnswer(at: now), 20_000_000)
        guard try await feed.isBehind(token, observation, fetch) else { return }
        let (id, signal) = try await feed.addFollower(context.identity)
        var isReached = false
        do throws(RPCError) {
            for await _ in signal {
                isReached = try await !feed.isBehind(token, observation, fetch)
                if isReached || clock.nowMicroseconds() >= end { break }
            }
        } catch {
            await feed.removeFollower(id)
            throw error
        }
        await feed.removeFollower(id)
        guard !isReached else { return }
        throw .feedBehind(token, head: await feed.token ?? token)
    }

    /// Waits until the feed has reached the current head of the catalog. The result, which is read from memory, then
    /// has every change whose reply the client has received.
    ///
    /// While the catalog is not running, no transaction is committed, and this function does not wait.
    ///
    /// - Throws: `unavailable` if the catalog is running and does not answer in time
    private func catchUpWithCatalog(
        _ observation: String,
        _ fetch: Fetch?,
        _ context: RequestContext
    ) async throws(RPCError) {
        guard await feed.problems.isEmpty else { return }
        let head: ChangeToken
        do throws(RPCError) {
            head = try await history.catalogForStatus.ask(CurrentToken(), deadline: .seconds(2)).result.token
        } catch {
            // A catalog that is slow may have committed a transaction.
            let isSlow = error.errorCode == .busy || error.errorCode == .deadlineExceeded
            guard isSlow, history.catalogForStatus.isConnected, await feed.problems.isEmpty else { return }
            throw .catalogUnreachable(has: "newest changes")
        }
        guard await feed.token?.library == head.library else { throw RPCError.brokerNotReady }
        try await catchUp(with: head, observation, fetch, context)
    }

    // MARK: Loading

    /// Loads the result of a fetch, once for all fetches that differ only in offset and limit.
    ///
    /// - Parameter token: the client's token: if the object of the fetch has been deleted since, the result is empty
    private func load(_ fetch: Fetch, since token: ChangeToken?, _ library: String) async throws(RPCError) {
        let whole = fetch.whole
        let name = Self.observation(of: whole, library)
        do throws(RPCError) {
            try await load(name, whole, since: nil)
        } catch {
            guard error.errorCode == .identifierNotFound, let token else { throw error }
            try await load("\(name) \(token)", whole, since: token)
        }
    }

    private func load(_ name: String, _ fetch: Fetch, since token: ChangeToken?) async throws(RPCError) {
        let isResumed = await feed.isSuspended(fetch)
        let capacity = try await feed.fetchCapacity(ofView: fetch.granted?.identity, isResumed: isResumed)
        do {
            try await feed.load(name) { [self] in
                for _ in 0..<5 {
                    if try await loadOnce(fetch, capacity, since: token) { return }
                }
                throw RPCError.libraryChangesTooFast
            }
        } catch let error as RPCError {
            throw error
        } catch {
            throw .observationEnded
        }
    }

    private func loadOnce(
        _ fetch: Fetch,
        _ capacity: (rows: Int, bytes: Int),
        since token: ChangeToken?
    ) async throws(RPCError) -> Bool {
        // Another client may have loaded it in the meantime.
        if await feed.isCurrent(fetch) { return true }
        guard let number = await feed.beginLoading(fetch) else { throw RPCError.brokerNotReady }
        let isLoaded: Bool
        do throws(RPCError) {
            let loader = KeyLoader(history: history, configuration: configuration)
            var loaded = try await loader.keys(of: fetch, capacity, since: token)
            // All results of a limited view have the same list, which is in memory once.
            if let granted = fetch.granted, let known = await feed.list(of: LimitedClient(granted)),
                known == loaded.scope
            {
                loaded.scope = known
            }
            isLoaded = try await feed.install(number, loaded.keys.tree(), loaded)
        } catch {
            await feed.cancelLoading(number)
            throw error
        }
        await feed.cancelLoading(number)
        return isLoaded
    }

    // MARK: Details

    private func result(
        _ observation: String,
        since token: ChangeToken?,
        _ isIncremental: Bool,
        _ form: DetailsForm,
        for source: WorkSource
    ) async throws(RPCError) -> FetchDetailsResult? {
        var earlier = token.map(EarlierChanges.init)
        var hasDetails = true
        var state: ObservationState?
        if let token { state = try await detailsFromCatalog(observation, since: token, isIncremental, for: source) }
        // While earlier records are read, more of the oldest changes may be removed from the log.
        for _ in 0..<4 where hasDetails && state == nil {
            guard let range = await feed.detailsRange(of: observation) else { return nil }
            if let token, token.sequence < min(range.oldestComplete, range.lastChange), var changes = earlier {
                hasDetails = try await read(&changes, through: range.oldestComplete, of: observation, for: source)
                earlier = changes
            }
            guard hasDetails else { break }
            state = await feed.state(
                of: observation,
                after: token?.sequence,
                earlier: earlier,
                maxIDs: isIncremental ? 0 : FetchDetailsResult.maxIDs
            )
        }
        if state == nil {
            hasDetails = false
            state = await feed.state(of: observation, after: nil, maxIDs: FetchDetailsResult.maxIDs)
        }
        guard let state else { return nil }
        var result = FetchDetailsResult(observation: observation, token: state.token, count: state.count)
        result.from = token
        result.objectWasDeleted = state.isDeleted
        guard token != nil else { return result }
        guard hasDetails else {
            // It is unknown whether anything changed; reporting a change is safe.
            result.details = Self.withoutLists(ChangeDetails(countBefore: 0, countAfter: state.count))
            result.ids = state.ids
            return result
        }
        guard let details = state.details else { return result }
        let entries = details.removed.count + details.inserted.count + details.moved.count + details.changed.count
        guard isIncremental, entries <= Self.maxEntries, details.hasIncrementalChanges else {
            result.details = Self.withoutLists(details)
            result.ids = state.ids
            return result
        }
        result.details = details
        if form == .rice {
            do throws(ChangeDetailsMismatch) {
                result.rice = try details.rice()
            } catch {
                throw .detailsTooLarge(error)
            }
        }
        return result
    }

    /// Asks the catalog for the details of a fetch with a scope since a token that precedes the log, because only the
    /// catalog has the earlier scope.
    ///
    /// - Returns: nil if the log, or the records before it, suffice
    private func detailsFromCatalog(
        _ observation: String,
        since token: ChangeToken,
        _ isIncremental: Bool,
        for source: WorkSource
    ) async throws(RPCError) -> ObservationState? {
        guard let fetch = await feed.fetch(of: observation), fetch.needsScope,
            let range = await feed.detailsRange(of: observation),
            token.sequence < min(range.oldestComplete, range.lastChange)
        else { return nil }
        let maxIDs = isIncremental ? 0 : FetchDetailsResult.maxIDs
        guard var state = await feed.state(of: observation, after: nil, maxIDs: maxIDs),
            state.token.sequence > token.sequence
        else { return nil }
        let request = ChangesDetails(
            from: token,
            to: state.token,
            fetch: fetch.wireForm,
            onBehalfOf: fetch.granted?.identity
        )
        do throws(RPCError) {
            let details = try await detailWork.withPermit(for: source) { () async throws(RPCError) in
                try await history.catalog.ask(request).result.details
            }
            guard let details else { throw RPCError.detailsCancelled }
            state.details = details
        } catch  where error.isTransient && error.errorCode != .deadlineExceeded {
            throw .catalogUnreachable(has: "older history")
        }
        if state.details?.hasIncrementalChanges == false, state.ids == nil {
            // There are too many entries: the current list replaces them, if it is still at the same token.
            let current = await feed.state(of: observation, after: nil, maxIDs: FetchDetailsResult.maxIDs)
            if current?.token == state.token { state.ids = current?.ids }
        }
        return state
    }

    /// Returns details without lists: the response has the objects after the change instead (S-69).
    private static func withoutLists(_ details: ChangeDetails) -> ChangeDetails {
        var counts = ChangeDetails(countBefore: details.countBefore, countAfter: details.countAfter)
        counts.hasIncrementalChanges = false
        return counts
    }

    /// Reads the effect of the records on a result up to a sequence.
    ///
    /// - Returns: false if there are too many records to be read for one response
    private func read(
        _ earlier: inout EarlierChanges,
        through end: Int64,
        of observation: String,
        for source: WorkSource
    ) async throws(RPCError) -> Bool {
        // Records before the log do not contain the scope of a fetch at that time.
        guard let fetch = await feed.fetch(of: observation), !fetch.needsScope else { return false }
        if let bytes = await feed.recordBytes(after: earlier.token), bytes > Self.maxRecordBytes { return false }
        while earlier.token.sequence < end {
            guard end - earlier.token.sequence <= Self.maxRecords, earlier.bytes <= Self.maxRecordBytes else {
                return false
            }
            let start = earlier
            // Each client reads one page at a time, and clients take turns, because a page needs memory and is slow to
            // decode.
            let result = await detailWork.withPermit(for: source) { () async -> Result<EarlierChanges?, RPCError> in
                do throws(RPCError) { return .success(try await page(after: start, through: end, of: fetch)) } catch {
                    return .failure(error)
                }
            }
            guard let result else { throw RPCError.detailsCancelled }
            guard let next = try result.get(), next.token.sequence > earlier.token.sequence else { return false }
            earlier = next
        }
        return true
    }

    /// Adds the effect of the next page of records.
    ///
    /// - Returns: nil if the evaluation of the fetch takes too long
    private func page(
        after start: EarlierChanges,
        through end: Int64,
        of fetch: Fetch
    ) async throws(RPCError) -> EarlierChanges? {
        var earlier = start
        let page = try await history.page(
            after: start.token,
            limit: 100,
            filter: .everything,
            maxBytes: 1 << 20,
            deadline: .seconds(20)
        )
        for bytes in page.records {
            // A page may extend beyond the beginning of the log.
            let remaining = Self.maxEvaluationTime - earlier.evaluationTime
            let changes = await decoder.decode(bytes) { record in
                (record.sequence, record.sequence <= end ? fetch.netChanges(of: record, within: remaining) : nil)
            }
            do throws(JSONProblem) {
                let (sequence, evaluated) = try changes.get()
                guard let evaluated else { return earlier }
                guard let found = evaluated.changes else { return nil }
                earlier.add(found, at: sequence, bytes.count, took: evaluated.time)
            } catch {
                throw .unreadableRecord(error)
            }
        }
        // The rest of the page has no records.
        earlier.advance(to: min(page.token.sequence, end))
        return earlier
    }
}

extension Fetch {
    /// The reason why a result cannot be updated with change records, as text; nil if it can.
    var notObservableReason: String? {
        if dependsOnLocalFiles { return Self.localFilesReason }
        return kind.isFollowable
            ? nil
            : "change records do not contain changes of transient collections; compare two results by details.diff"
    }
}

extension RequestContext {
    /// The client as an observer of fetches.
    fileprivate var observer: ObservedFetch.Observer { .init(identity: identity, connection: connection) }
}
