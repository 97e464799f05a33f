import Basics
import Contracts
import Dispatch
import Hosting
import JSONValue
import Logging
import Messaging
import PostgreSQL
import ServiceLifecycle
import Storage

/// Answers at the catalog's addresses while its database server cannot be reached at the start: the library is offline.
/// It ends when the server, or the replica, answers.
struct OfflineCatalog: RunnableService {
    static let name = ServiceName.catalog

    let logger: Logger
    private let addressesOfDatabase: [String]
    private let servers: RequestServers
    private let thread: PollThread
    private let lock: LibraryLock

    var addresses: [String] { servers.addresses }

    init(
        _ configuration: CatalogConfiguration,
        environment: CatalogEnvironment = CatalogEnvironment(),
        logger: Logger
    ) throws {
        self.logger = logger
        addressesOfDatabase = [configuration.server, configuration.replica].compactMap { $0 }
        let folder = configuration.library
        try configuration.knownLibraries?.requireLibrary(at: folder, database: configuration.libraryFile)
        try LibraryFolder.make(folder)
        lock = try LibraryLock(folder)
        thread = try PollThread(name: "catalog")
        servers = try configuration.requestServers(
            on: thread,
            clock: environment.clock,
            logger: logger,
            handler: OfflineHandler(since: environment.now())
        )
    }

    /// Returns the error of a catalog that starts now; nil if its database, or a replica of it, can be reached.
    ///
    /// The catalog does not wait for a server that refuses the connection for a lasting reason, such as a wrong
    /// password.
    static func reason(_ configuration: CatalogConfiguration) async -> StorageError? {
        guard let server = configuration.server else { return nil }
        let replica = configuration.replica
        return await withCheckedContinuation { continuation in
            DispatchQueue(label: "postgresql start").async {
                do throws(PostgreSQLError) {
                    _ = try PostgreSQLConnection(server)
                    continuation.resume(returning: nil)
                } catch {
                    let isServed = replica.map { (try? PostgreSQLConnection($0)) != nil } ?? false
                    let isAway = error.kind == .disconnected && isPassing(error.message)
                    continuation.resume(
                        returning: isServed || !isAway ? nil : PostgreSQLLibraryDatabase.offline(error, at: server)
                    )
                }
            }
        }
    }

    /// Returns true unless the server has answered that it will not accept the connection at all.
    private static func isPassing(_ message: String) -> Bool {
        let passing = ["starting up", "shutting down", "not yet accepting", "too many", "reserved for", "recovery"]
        return !message.contains("FATAL:") || passing.contains { message.contains($0) }
    }

    var components: [any Service] {
        let (thread, lock, databases) = (thread, lock, addressesOfDatabase)
        return [
            ClosingComponent("lock") { lock.release() },
            ClosingComponent("poll thread") { await thread.shutdown() },
            LoopComponent("database server") { try await Self.untilReachable(databases) },
        ] + servers.components
    }

    /// The time between two attempts to connect, and the longest time for one.
    private static let (interval, attempt): (Duration, Int64) = (.milliseconds(500), 2000)

    private static func untilReachable(_ addresses: [String]) async throws {
        let queue = DispatchQueue(label: "postgresql start")
        for await _ in TaskDelay.ticks(every: interval) {
            let isReachable = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                queue.async {
                    var limits = PostgreSQLConnection.Limits()
                    limits.connectMilliseconds = attempt
                    continuation.resume(
                        returning: addresses.contains { (try? PostgreSQLConnection($0, limits: limits)) != nil }
                    )
                }
            }
            if isReachable { return }
        }
    }
}

/// Answers the requests that need no library, and refuses all others as `library_offline`.
///
/// It gives no other information, because the permissions of identities are in the database.
private struct OfflineHandler: RequestHandler {
    private let problem: LibraryStatus.Problem
    private let since: Int64
    private let state: ServiceState

    init(since: Int64) {
        let problem = LibraryStatus.Problem.databaseServer
        self.problem = problem
        self.since = max(0, since)
        state = ServiceState(
            .catalog,
            methods: CatalogRequest.methods,
            metrics: Hosting.Metrics(),
            role: { (.standby, nil) },
            conditionNow: { ([problem.message], 0) }
        )
    }

    func limits(of method: String) -> MethodLimits { CatalogRequest.limits(of: method) }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        let parsed: CatalogRequest
        do {
            parsed = try CatalogRequest(method: request.method, params: request.params)
        } catch {
            throw CatalogErrorMapping.rpcError(error)
        }
        switch parsed {
        case .discover: return Reply(state.document)
        case .health: return Reply(await state.health().json)
        case .libraryStatus:
            var status = LibraryStatus.Result(since: since, problems: [problem])
            status.role = .standby
            return Reply(status.json)
        default: throw problem.rpcError
        }
    }
}
