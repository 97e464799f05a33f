import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import Synchronization

/// Implements `session.open` and `grants.*`: the access requests of clients, and the decisions of the owner.
final class GrantService: Sendable {
    /// The limits of identities without a decision.
    struct Limits: Sendable {
        /// The maximum number of requests that wait for a decision, for one identity and in total.
        var waitingPerIdentity = 32
        var waiting = 1000
        /// The maximum number of different access requests of one identity within the lifetime of an access request.
        var accessRequestsPerIdentity = 32
        /// The time for which an access request waits, in microseconds.
        var lifetime: Int64 = 3_600_000_000
    }

    private struct Waiter {
        let identity: String
        let promise: Promise<Void>
    }

    private struct State {
        var waiters: [UInt64: Waiter] = [:]
        var lastWaiter: UInt64 = 0
        /// The times of the recorded access requests of each identity, in microseconds of the monotonic clock.
        var requestTimes: [String: [Int64]] = [:]
        var log = LogThrottle()
    }

    let registry: GrantRegistry
    let table: AccessTable
    let consent: ConsentService
    private let store: LibraryStore
    private let writer: TransactionWriter
    private let limits: Limits
    private let clock: MonotonicClock
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private let lists = GrantedAssetLists()
    private let state = Mutex(State())

    init(
        registry: GrantRegistry,
        table: AccessTable,
        store: LibraryStore,
        writer: TransactionWriter,
        limits: Limits = Limits(),
        clock: MonotonicClock = .system,
        now: @escaping @Sendable () -> Int64,
        logger: Logger
    ) {
        self.registry = registry
        self.table = table
        self.store = store
        self.writer = writer
        self.limits = limits
        self.clock = clock
        self.now = now
        self.logger = logger
        consent = ConsentService(writer: writer, clock: clock, now: now)
    }

    // MARK: Access requests

    /// Answers at once if the identity's access is decided; else records the access request and waits.
    ///
    /// - Throws: `missing_purpose`, `limit_exceeded`, `busy`
    func open(_ request: OpenSession, _ context: RequestContext) async throws -> OpenSession.Result {
        let identity = context.identity
        let purpose = request.purpose.trimmingBlanks
        guard !purpose.isEmpty else {
            throw GrantError.noPurpose
        }
        if let count = state.withLock({ $0.log.count(at: clock.nowMicroseconds()) }) {
            logger.info(
                "session opened",
                metadata: [
                    "identity": "\(identity)", "client": "\(request.client)", "purpose": "\(purpose)",
                    "access": "\(request.access.rawValue)", "sessions": "\(count)",
                ]
            )
        }
        guard registry.permission(of: identity).role == .undecided else { return session(identity) }
        let (number, promise) = try addWaiter(for: identity)
        defer { state.withLock { $0.waiters[number] = nil } }
        try await record(request, of: identity, purpose)
        // The owner may have decided while the access request was recorded.
        guard registry.permission(of: identity).role == .undecided else { return session(identity) }
        await TaskDelay.withTimeout(.microseconds(context.microsecondsToAnswer(at: clock.nowMicroseconds()))) {
            await promise.value(ifCancelled: ())
        }
        return session(identity)
    }

    private func addWaiter(for identity: String) throws(GrantError) -> (UInt64, Promise<Void>) {
        let promise = Promise<Void>()
        let number = try state.withLock { (state) throws(GrantError) -> UInt64 in
            guard state.waiters.values.count(where: { $0.identity == identity }) < limits.waitingPerIdentity else {
                throw .tooManyRequests(of: identity, limit: limits.waitingPerIdentity)
            }
            guard state.waiters.count < limits.waiting else { throw .questionsFull(limit: limits.waiting) }
            state.lastWaiter += 1
            state.waiters[state.lastWaiter] = Waiter(identity: identity, promise: promise)
            return state.lastWaiter
        }
        return (number, promise)
    }

    /// Records an access request, unless it waits already.
    private func record(_ request: OpenSession, of identity: String, _ purpose: String) async throws {
        let time = now()
        let recently = limits.lifetime / 2
        let isSame = { @Sendable (known: Grant) in
            known.status == .notDetermined && known.purpose == purpose && known.access == request.access
                && known.client == request.client && time - known.date < recently
        }
        guard !isSame(registry.grant(of: identity)) else { return }
        let now = clock.nowMicroseconds()
        let (lifetime, maximum) = (limits.lifetime, limits.accessRequestsPerIdentity)
        guard registry.count < GrantRegistry.limit else { throw GrantError.tooManyGrants(limit: GrantRegistry.limit) }
        try state.withLock { (state) throws(GrantError) in
            var times = (state.requestTimes[identity] ?? []).filter { now - $0 < lifetime }
            guard times.count < maximum else { throw .tooManyRequests(of: identity, limit: maximum) }
            guard state.requestTimes.count < limits.waiting || state.requestTimes[identity] != nil else {
                throw .questionsFull(limit: limits.waiting)
            }
            times.append(now)
            state.requestTimes[identity] = times
        }
        // The file of a key may state the consent policy that applies after the decision.
        let (key, consent) = (registry.publicKey(of: identity), registry.grant(of: identity).consent)
        let change = GrantChange(identity: identity) { stored in
            if let stored, stored.key == key {
                // The owner has decided meanwhile, or another request has recorded the same.
                guard stored.status == .notDetermined, !isSame(stored) else { return nil }
            }
            return Grant(
                identity: identity,
                access: request.access,
                consent: consent,
                purpose: purpose,
                client: request.client,
                key: key,
                date: time
            )
        }
        _ = try await commit(.grant(change, by: identity, client: request.client.isEmpty ? nil : request.client))
    }

    private func session(_ identity: String) -> OpenSession.Result {
        let permission = registry.permission(of: identity)
        var grant = registry.grant(of: identity)
        let isOwner = permission.role == .owner || permission.role == .host
        switch permission.role {
        case .service, .owner, .host: (grant.status, grant.access) = (.authorized, .readWrite)
        case .readWrite where grant.status == .notDetermined: (grant.status, grant.access) = (.authorized, .readWrite)
        case .denied where grant.status == .notDetermined: grant.status = .denied
        default: break
        }
        return OpenSession.Result(grant, isOwner: isOwner)
    }

    // MARK: The owner's decisions

    func list(_ request: ListGrants) -> ListGrants.Result {
        let all = registry.all
        return ListGrants.Result(count: all.count, grants: Array(all.dropFirst(request.from).prefix(request.count)))
    }

    func pending() -> PendingGrants.Result {
        PendingGrants.Result(
            grants: Array(registry.pending(since: now() - limits.lifetime).prefix(limits.waiting)),
            questions: consent.pending
        )
    }

    func approve(_ request: ApproveGrant, by owner: String) async throws -> DecidedGrant {
        if let question = try Self.question(request.question, or: request.identity) {
            guard request.access == nil, request.consent == nil, request.purpose == nil, request.scope == nil else {
                throw GrantError.questionWithOptions
            }
            return DecidedGrant(question: try await consent.decide(question, isApproved: true, by: owner))
        }
        return try await decide(request.identity ?? "", by: owner) { grant in
            grant.scope = request.scope ?? grant.scope
            grant.status = grant.scope == .limited ? .limited : .authorized
            grant.access = request.access ?? grant.access
            grant.consent = request.consent ?? grant.consent
            grant.purpose = request.purpose?.trimmingBlanks ?? grant.purpose
        }
    }

    func deny(_ request: DenyGrant, by owner: String) async throws -> DecidedGrant {
        if let question = try Self.question(request.question, or: request.identity) {
            return DecidedGrant(question: try await consent.decide(question, isApproved: false, by: owner))
        }
        return try await decide(request.identity ?? "", by: owner) { $0.status = .denied }
    }

    /// - Throws: `identifier_not_found` if the identity has no access
    func revoke(_ request: RevokeGrant, by owner: String) async throws -> DecidedGrant {
        guard registry.permission(of: request.identity).allows(.add) else {
            throw GrantError.noAccess(request.identity)
        }
        return try await decide(request.identity, by: owner) { $0.status = .denied }
    }

    /// Gives access to a list of assets, or changes the list.
    ///
    /// - Throws: `identifier_not_found` for an asset that does not exist, and if there is no list to change,
    ///   `limit_exceeded`
    func limit(_ request: LimitGrant, by owner: String) async throws -> DecidedGrant {
        if request.action != .set {
            guard registry.permission(of: request.identity).role == .limited else {
                throw GrantError.notLimited(request.identity)
            }
        }
        let list = GrantListChange(request.action, request.assets)
        return try await decide(request.identity, by: owner, list: list) { grant in
            (grant.status, grant.scope, grant.access) = (.limited, .limited, .readWrite)
        }
    }

    /// Returns, for services, the permission of an identity, and those of the given assets that it may not see.
    func status(_ request: GrantStatus) async throws -> GrantStatus.Result {
        let permission = registry.permission(of: request.identity)
        var result = GrantStatus.Result(permission)
        result.key = registry.publicKey(of: request.identity)
        guard !request.assets.isEmpty || request.wantsList, !permission.seesEverything else { return result }
        let view = view(of: request.identity)
        (result.hidden, result.list, result.token) = try await store.read { reader in
            let hidden = try request.assets.filter { try !view.contains($0, reader) }
            guard request.wantsList else { return (hidden, nil, nil) }
            let head = try reader.head()
            return (hidden, Array(try view.assets(reader, at: head.sequence, head).ids), head.token)
        }
        return result
    }

    // MARK: Views

    /// Returns what the client of a request sees; nil if that is the whole library.
    func view(of context: RequestContext) -> LimitedView? {
        // Only requests from connections have a cached permission.
        guard let cached = context.cachedPermission, !Permission(byte: cached.value).seesEverything else { return nil }
        return view(of: context.identity)
    }

    /// Returns the view of the client on whose behalf a service sends a request.
    ///
    /// - Throws: `access_denied` if its access is no longer limited
    func view(onBehalfOf client: String) throws(GrantError) -> LimitedView {
        guard registry.permission(of: client).role == .limited else { throw GrantError.viewChanged(client) }
        return view(of: client)
    }

    private func view(of identity: String) -> LimitedView {
        LimitedView(identity: identity, key: registry.publicKey(of: identity), lists: lists)
    }

    /// Returns the client of a request if it may add assets but read nothing, else nil.
    func addOnlyClient(of context: RequestContext) -> AddOnlyClient? {
        guard let cached = context.cachedPermission, Permission(byte: cached.value).role == .addOnly else { return nil }
        return addOnlyClient(context.identity)
    }

    /// Returns an identity with the key that it has now, as an add-only client.
    func addOnlyClient(_ identity: String) -> AddOnlyClient {
        AddOnlyClient(identity: identity, key: registry.publicKey(of: identity))
    }

    /// The maximum number of records that are read for one request about the history.
    private static let maxHistoryRecords = 10_000

    func history(_ request: GrantHistory) async throws -> GrantHistory.Result {
        let filter = FeedTopicFilter([FeedTopic.grants])
        return try await store.read { reader in
            let head = try reader.head()
            let page = try reader.history.records(
                after: head.oldest,
                through: head.sequence,
                topics: [FeedTopic.grants],
                count: Self.maxHistoryRecords,
                bytes: 8 << 20
            )
            var records: [ChangeRecord] = []
            for stored in page.records.reversed() {
                var record = try ChangeRecord(json: JSON(parsing: stored.bytes))
                guard filter.includes(record.topics) else { continue }
                if let identity = request.identity {
                    record.grants.removeAll { ($0.after ?? $0.before)?.identity != identity }
                    record.questions.removeAll { $0.identity != identity }
                    if record.grants.isEmpty, record.questions.isEmpty { continue }
                }
                records.append(record)
                if records.count == request.count { break }
            }
            return GrantHistory.Result(records: records)
        }
    }

    private static func question(_ question: String?, or identity: String?) throws(GrantError) -> String? {
        guard (question == nil) != (identity == nil), identity != "" else {
            throw GrantError.noSubject
        }
        return question
    }

    /// Returns true for `uid:N`, the identity of a connection over ipc.
    private static func isUser(_ identity: String) -> Bool {
        guard identity.hasPrefix("uid:"), let number = UInt32(identity.dropFirst(4)) else { return false }
        return identity == "uid:\(number)"
    }

    private func decide(
        _ identity: String,
        by owner: String,
        list: GrantListChange? = nil,
        _ change: @escaping @Sendable (inout Grant) -> Void
    ) async throws -> DecidedGrant {
        guard AccessTable.local(identity) == nil else {
            throw GrantError.decidedByConnection(identity)
        }
        guard identity.hasPrefix("key:") || Self.isUser(identity) || registry.isKnown(identity) else {
            throw GrantError.noIdentity(identity)
        }
        guard !identity.hasPrefix("key:") || registry.publicKey(of: identity) != nil else {
            throw GrantError.noKey(identity)
        }
        guard registry.count < GrantRegistry.limit else {
            throw GrantError.tooManyGrants(limit: GrantRegistry.limit)
        }
        let (key, before, time) = (registry.publicKey(of: identity), registry.grant(of: identity), now())
        let wasLimited = before.status == .limited
        let write = GrantChange(identity: identity, list: list, wasLimited: wasLimited) { stored in
            var grant = stored.flatMap { $0.key == key ? $0 : nil } ?? before
            change(&grant)
            grant.key = key
            grant.date = time
            grant.decidedBy = owner
            return grant
        }
        let grant = try await commit(.grant(write, by: owner)) ?? before
        logger.notice(
            "access decided",
            metadata: [
                "identity": "\(identity)", "status": "\(grant.status.rawValue)", "access": "\(grant.access.rawValue)",
                "by": "\(owner)",
            ]
        )
        if grant.status == .denied { await consent.declineAll(of: identity, by: owner) }
        return DecidedGrant(grant: grant)
    }

    /// Commits a change of a grant and resumes the requests that wait for it.
    private func commit(_ write: WriteRequest) async throws -> Grant? {
        let performed: PerformedWrite
        do throws(WriteFailure) {
            performed = try await writer.perform(write)
        } catch {
            throw error.clientError
        }
        return review(performed)
    }

    /// Reviews the running requests of the identity whose grant a transaction changed, and resumes those that wait for
    /// the decision.
    @discardableResult
    func review(_ performed: PerformedWrite) -> Grant? {
        guard performed.record != nil, let grant = performed.grant else { return nil }
        refresh(grant.identity)
        return grant
    }

    private func refresh(_ identity: String) {
        let permission = registry.permission(of: identity)
        table.setPermission(of: identity, to: permission)
        guard permission.role != .undecided else { return }
        let waiters = state.withLock { state in
            state.requestTimes[identity] = nil
            return state.waiters.values.filter { $0.identity == identity }
        }
        for waiter in waiters { waiter.promise.fulfill(()) }
    }

    // MARK: Time

    /// Compares, once a second, the access of connections with the key lists, and ends requests that have waited too
    /// long.
    func watch() async {
        for await _ in TaskDelay.ticks(every: .seconds(1)) {
            table.refresh()
            for identity in Set(state.withLock { $0.waiters.values.map(\.identity) }) { refresh(identity) }
            let now = clock.nowMicroseconds()
            state.withLock { [limits] state in
                state.requestTimes = state.requestTimes.compactMapValues { times in
                    let recent = times.filter { now - $0 < limits.lifetime }
                    return recent.isEmpty ? nil : recent
                }
            }
            await consent.expire()
        }
    }

    var metrics: JSONObject {
        [
            "grants": JSON(registry.count), "waiting": JSON(state.withLock { $0.waiters.count }),
            "questions": JSON(consent.count),
        ]
    }
}

extension String {
    /// The text without leading and trailing white space.
    var trimmingBlanks: String {
        let isBlank = { (character: Character) in character.isWhitespace }
        return String(drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }
}
