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

/// The service that answers at the catalog's addresses, with an offline library, while the database server cannot be
/// reached at the start. It ends when the server, or the replica, answers.
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
        servers = try configuration.bindRequestServers(
            on: thread,
            clock: environment.clock,
            logger: logger,
            handler: OfflineHandler(since: environment.now())
        )
    }

    /// Returns the error of a connection to the database server; nil if the server, or a replica of it, can be reached.
    ///
    /// The result is also nil if the server refuses the connection for a lasting reason, such as a wrong password: the
    /// catalog does not wait for such a server.
    static func connectionError(_ configuration: CatalogConfiguration) async -> StorageError? {
        guard let server = configuration.server else { return nil }
        let replica = configuration.replica
        return await withCheckedContinuation { continuation in
            DispatchQueue(label: "postgresql start").async {
                do throws(PostgreSQLError) {
                    _ = try PostgreSQLConnection(server)
                    continuation.resume(returning: nil)
                } catch {
                    let hasReplica = replica.map { (try? PostgreSQLConnection($0)) != nil } ?? false
                    let mayReturn = error.kind == .disconnected && isTemporary(error.message)
                    continuation.resume(
                        returning: hasReplica || !mayReturn
                            ? nil : PostgreSQLLibraryDatabase.offline(error, at: server)
                    )
                }
            }
        }
    }

    /// Returns true unless the server has refused the connection for a lasting reason.
    private static func isTemporary(_ message: String) -> Bool {
        let temporary = ["starting up", "shutting down", "not yet accepting", "too many", "reserved for", "recovery"]
        return !message.contains("FATAL:") || temporary.contains { message.contains($0) }
    }

    var components: [any Service] {
        let (thread, lock, databases) = (thread, lock, addressesOfDatabase)
        return [
            ClosingComponent("lock") { lock.release() },
            ClosingComponent("poll thread") { await thread.shutdown() },
            LoopComponent("database server") { try await Self.waitUntilReachable(databases) },
        ] + servers.components
    }

    /// The time between two attempts to connect, and the maximum number of milliseconds for one.
    private static let (interval, attemptMilliseconds): (Duration, Int64) = (.milliseconds(500), 2000)

    private static func waitUntilReachable(_ addresses: [String]) async throws {
        let queue = DispatchQueue(label: "postgresql start")
        for await _ in TaskDelay.ticks(every: interval) {
            let isReachable = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                queue.async {
                    var limits = PostgreSQLConnection.Limits()
                    limits.connectMilliseconds = attemptMilliseconds
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
