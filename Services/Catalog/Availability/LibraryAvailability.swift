import Basics
import Contracts
import JSONValue
import Logging
import Messaging
import Storage
import Synchronization

/// The state of the library: if it can be read and written (T-42).
///
/// The library's folder and the connection to a database server are checked once a second, and whenever a request fails
/// because of the disk, so that such a request has the error of the cause. A full disk, a locked database and a folder
/// that cannot be written are detected by a request that fails; their end is detected by a small write once a second.
final class LibraryAvailability: Sendable {
    /// The access to the library that a request needs.
    enum Need {
        case nothing
        case reading
        case writing
    }

    /// Another library is in the folder: the catalog has to open it.
    struct LibraryReplaced: Error, CustomStringConvertible {
        let description =
            "another library is in the folder, or its disk was mounted again as another device; the catalog ends, to "
            + "open it when it is started again"
    }

    private struct State {
        var status: LibraryStatus.Result
        var role: (CatalogRole, epoch: Int64?)
        /// The problem of the folder.
        var folder: LibraryStatus.Problem?
        /// The problem of the database server.
        var server: LibraryStatus.Problem?
        /// The states that follow from failed requests.
        var failures: Set<AvailabilityState> = []
        /// The problem of the object store.
        var store: LibraryStatus.Problem?
        var isReplaced = false
        var waiters: [UInt64: (identity: String, promise: Promise<Void>)] = [:]
        var lastWaiter: UInt64 = 0
    }

    /// The time between two checks.
    private static let interval = Duration.seconds(1)
    /// The maximum number of requests of one identity that wait for a change.
    private static let maxWaiters = 1000

    private let folder: FolderAvailability
    private let serverProblem: @Sendable () -> LibraryStatus.Problem?
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter store: the library, which has the role of the catalog and the state of the database server
    init(
        _ folder: FolderAvailability,
        of store: LibraryStore,
        now: @escaping @Sendable () -> Int64,
        logger: Logger
    ) {
        self.folder = folder
        serverProblem = { store.database.serverProblem }
        let role = store.role
        self.now = now
        self.logger = logger
        var status = LibraryStatus.Result(since: max(0, now()))
        (status.role, status.epoch) = role
        state = Mutex(State(status: status, role: role))
    }

    // MARK: Requests

    var status: LibraryStatus.Result { state.withLock { $0.status } }

    /// The messages for `health`.
    var problems: [String] { status.problems.map(\.message) }

    /// Refuses a request that the library cannot serve now.
    ///
    /// While the disk is full or the database is locked, no request is refused: some changes still succeed, the others
    /// have the same error. A database server that does not answer is no reason either: it may answer the next request.
    func check(_ need: Need) throws(RPCError) {
        guard need != .nothing else { return }
        let problem = state.withLock { state in
            state.status.problems.first { problem in
                problem != state.server
                    && (!problem.state.isReadable || need == .writing && problem.state == .readOnly)
            }
        }
        if let problem { throw problem.rpcError }
    }

    /// Answers `library.status`.
    ///
    /// - Throws: `limit_exceeded` if too many requests of the identity wait
    func answer(_ request: LibraryStatus, _ context: RequestContext, clock: MonotonicClock) async throws
        -> LibraryStatus.Result
    {
        guard let after = request.after else { return status }
        let promise = Promise<Void>()
        let number = try state.withLock { (state) throws(CatalogError) -> UInt64? in
            guard state.status.since == after else { return nil }
            guard state.waiters.values.count(where: { $0.identity == context.identity }) < Self.maxWaiters else {
                throw .tooManyWaiting(limit: Self.maxWaiters, parameter: "after", topic: "availability")
            }
            state.lastWaiter += 1
            state.waiters[state.lastWaiter] = (identity: context.identity, promise: promise)
            return state.lastWaiter
        }
        guard let number else { return status }
        defer { state.withLock { $0.waiters[number] = nil } }
        await TaskDelay.withTimeout(.microseconds(context.microsecondsToAnswer(at: clock.nowMicroseconds()))) {
            await promise.value(ifCancelled: ())
        }
        return status
    }

    // MARK: Failures

    /// Records a failure of the disk.
    ///
    /// - Parameter isWriting: true if something was to be written
    /// - Returns: the error of its cause; nil if the failure does not concern the library as a whole
    func note(_ error: StorageError, isWriting: Bool = false) -> RPCError? {
        checkNow()
        let cause: AvailabilityState? =
            switch error {
            case .notEnoughSpace: .full
            case .busy: .busy
            case .readOnly: .readOnly
            default: nil
            }
        return change { state in
            if let folder = state.folder {
                let isCause = isWriting && folder.state == .readOnly
                if !folder.state.isReadable || cause == .readOnly || isCause { return folder.rpcError }
            }
            guard let cause else { return nil }
            state.failures.insert(cause)
            return LibraryStatus.Problem.folder(cause).rpcError
        }
    }

    /// Records that a write has succeeded after a failure.
    func forgetFailures() { change { $0.failures = [] } }

    /// Records the catalog's role.
    func note(_ role: (CatalogRole, epoch: Int64?)) { change { $0.role = role } }

    // MARK: Watching

    /// Checks the library until cancelled.
    ///
    /// - Parameters:
    ///   - storeProblem: returns the message of a problem of the object store; nil if there is none
    ///   - probe: reads and writes a little where the library reads and writes
    /// - Throws: ``LibraryReplaced``
    func run(
        storeProblem: @Sendable () -> String?,
        probe: @Sendable () async throws -> Void
    ) async throws {
        for await _ in TaskDelay.ticks(every: Self.interval) {
            let (wasReadable, failures) = state.withLock { ($0.folder?.state.isReadable ?? true, $0.failures) }
            // A folder that was missing counts as available only when it can be used.
            if !wasReadable, folder.check() == nil {
                do { try await probe() } catch {
                    logger.warning("the library's folder exists but cannot be used", metadata: ["error": "\(error)"])
                    continue
                }
            }
            checkNow()
            if state.withLock({ $0.isReplaced }) { throw LibraryReplaced() }
            let message = storeProblem()
            change { $0.store = message.map { LibraryStatus.Problem(.storeOffline, $0) } }
            guard !failures.isEmpty, state.withLock({ $0.folder == nil }) else { continue }
            await recover(probe)
        }
    }

    /// Removes failures that no longer occur.
    private func recover(_ probe: @Sendable () async throws -> Void) async {
        do {
            try await probe()
            forgetFailures()
        } catch StorageError.notEnoughSpace {
            change { $0.failures = [.full] }
        } catch StorageError.busy {
            change { $0.failures = [.busy] }
        } catch StorageError.readOnly {
            change { $0.failures = [.readOnly] }
        } catch {
            if !Task.isCancelled { logger.warning("the library cannot be written", metadata: ["error": "\(error)"]) }
        }
    }

    private func checkNow() {
        let (finding, server) = (folder.check(), serverProblem())
        change { state in
            state.server = server
            switch finding {
            case nil: state.folder = nil
            case .problem(let problem)?: state.folder = problem
            case .replaced?: (state.folder, state.isReplaced) = (.folder(.switching), true)
            }
        }
    }

    /// Changes the state, and resumes the requests that wait for another status if the status has changed.
    @discardableResult
    private func change<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        let (value, status, waiters) = state.withLock { state -> (Value, LibraryStatus.Result?, [Promise<Void>]) in
            let value = body(&state)
            var problems = state.folder.map { [$0] } ?? []
            for cause in AvailabilityState.allCases
            where state.failures.contains(cause) && state.folder?.state != cause {
                problems.append(.folder(cause))
            }
            // The most severe comes first.
            if let server = state.server { problems.insert(server, at: server.state.isReadable ? problems.count : 0) }
            if let store = state.store { problems.append(store) }
            let (role, epoch) = state.role
            guard (problems, role, epoch) != (state.status.problems, state.status.role, state.status.epoch) else {
                return (value, nil, [])
            }
            state.status = LibraryStatus.Result(since: max(now(), state.status.since + 1), problems: problems)
            (state.status.role, state.status.epoch) = (role, epoch)
            defer { state.waiters = [:] }
            return (value, state.status, state.waiters.values.map { $0.promise })
        }
        if let status {
            logger.notice(
                "the availability of the library changed",
                metadata: [
                    "state": "\(status.state.rawValue)",
                    "problems": "\(status.problems.map(\.message).joined(separator: "; "))",
                ]
            )
        }
        for waiter in waiters { waiter.fulfill(()) }
        return value
    }
}

// MARK: - Needs of requests

extension CatalogRequest {
    /// The access to the library that the request needs. Requests about permissions need none: the other services send
    /// them for each of their own requests.
    var need: LibraryAvailability.Need {
        switch self {
        case .discover, .health, .figures, .supports, .libraryStatus, .grantStatus, .releaseTransient, .cancelUpload,
            .pendingGrants, .listGrants:
            .nothing
        case .perform, .beginUpload, .appendUpload, .finishUpload, .downloadResource, .storageKeep, .storageRetry,
            .createJobs, .updateJobs,
            .collect, .rescan, .reportWorkerFault, .liftQuarantine, .approveGrant, .denyGrant, .limitGrant,
            .revokeGrant:
            .writing
        case .fetchAssets, .fetchCollections, .fetchLists, .counts, .find, .objects, .keyAssets, .duplicates, .can,
            .toCloud, .toLocal, .createTransient, .details, .difference, .fetchKeys, .since, .follow, .token,
            .editsStatus, .editsPending, .readResource, .exportResource, .storageStatus, .storageVerify, .listJobs,
            .backup,
            .listQuarantine, .openSession, .grantHistory:
            .reading
        }
    }
}
