import Basics
public import Contracts
public import JSONValue
public import Messaging
import Synchronization

/// The results of a service's `rpc.discover`, `health` and `figures`.
public struct ServiceState: Sendable {
    /// The reasons why the service is unhealthy, empty if it is healthy, and the newest sequence it has seen.
    public typealias Condition = (problems: [String], sequence: Int64)

    /// The OpenRPC document; created when it is first requested.
    public var document: JSON { documentation.document }
    private let documentation: Documentation
    private let name: ServiceName
    private let metrics: Metrics
    private let condition: @Sendable () async -> Condition
    /// Returns the condition without waiting; nil if it has to be requested from another service.
    private let conditionNow: (@Sendable () -> Condition)?
    /// The role of a catalog; nil for another service.
    private let role: (@Sendable () -> (CatalogRole, epoch: Int64?))?
    private let healthyReply = HealthyReply()

    /// - Parameters:
    ///   - methods: descriptions of the service's methods
    ///   - metrics: the service's counters and gauges
    ///   - condition: called for each `health` request
    public init(
        _ name: ServiceName,
        methods: [MethodDescription],
        metrics: Metrics,
        condition: @escaping @Sendable () async -> Condition
    ) {
        self.name = name
        self.metrics = metrics
        self.condition = condition
        conditionNow = nil
        role = nil
        documentation = Documentation(name, methods)
    }

    /// Makes the state of a service whose condition is known without waiting.
    ///
    /// - Parameters:
    ///   - role: returns the role of a catalog; nil for another service
    ///   - conditionNow: called for each `health` request, on the poll thread; it must not block
    public init(
        _ name: ServiceName,
        methods: [MethodDescription],
        metrics: Metrics,
        role: (@Sendable () -> (CatalogRole, epoch: Int64?))? = nil,
        conditionNow: @escaping @Sendable () -> Condition
    ) {
        self.name = name
        self.metrics = metrics
        self.condition = conditionNow
        self.conditionNow = conditionNow
        self.role = role
        documentation = Documentation(name, methods)
    }

    /// Returns the health of the service: it is healthy if it has no problems.
    public func health() async -> Health.Result { health(await condition()) }

    /// Returns the reply to a `health` request that needs no waiting; nil for all others.
    public func replyAtOnce(to request: IncomingRequest) -> Reply? {
        guard request.method == Health.method, request.params.objectValue?.isEmpty == true,
            let conditionNow
        else { return nil }
        let condition = conditionNow()
        guard condition.problems.isEmpty else { return Reply(health(condition).json) }
        let health = health(condition)
        return Reply(encoded: healthyReply.bytes(of: health))
    }

    private func health(_ condition: Condition) -> Health.Result {
        var health = Health.Result(
            service: name.rawValue,
            version: ServiceVersion.current,
            isHealthy: condition.problems.isEmpty,
            problems: condition.problems,
            sequence: condition.sequence
        )
        if let (role, epoch) = role?() { (health.role, health.epoch) = (role, epoch) }
        return health
    }

    /// Returns all counters and gauges.
    public func counts() async -> JSON { .object(await metrics.json()) }
}

/// The OpenRPC document of a service.
private final class Documentation: Sendable {
    private let name: ServiceName
    private let methods: [MethodDescription]
    private let cached = Mutex<JSON?>(nil)

    init(_ name: ServiceName, _ methods: [MethodDescription]) {
        self.name = name
        self.methods = methods
    }

    var document: JSON {
        cached.withLock { cached in
            if let cached { return cached }
            let document = openRPCDocument(
                service: name.rawValue,
                version: ServiceVersion.current,
                methods: methods
            )
            cached = document
            return document
        }
    }
}

/// The encoded health of a service without problems. It changes only with the sequence, and at takeovers.
private final class HealthyReply: Sendable {
    private let cached = Mutex<(health: Health.Result, bytes: Bytes)?>(nil)

    func bytes(of health: Health.Result) -> Bytes {
        cached.withLock { cached in
            if let (known, bytes) = cached, known.sequence == health.sequence, known.role == health.role,
                known.epoch == health.epoch
            {
                return bytes
            }
            let bytes = health.json.bytes
            cached = (health, bytes)
            return bytes
        }
    }
}

extension ServiceState {
    /// Creates the state of a service that decodes images of the library. It is healthy if the catalog is healthy, the
    /// resource folder is accessible and workers can be started.
    ///
    /// - Parameter catalog: requests the catalog's health
    public init(
        _ name: ServiceName,
        methods: [MethodDescription],
        metrics: Metrics,
        resources: ResourceFolder,
        workers: WorkerPool,
        catalog: @escaping @Sendable () async throws(RPCError) -> Health.Result
    ) {
        self.init(name, methods: methods, metrics: metrics) {
            var problems: [String] = []
            var sequence: Int64 = 0
            do throws(RPCError) {
                let health = try await catalog()
                sequence = health.sequence
                if !health.isHealthy { problems.append("the catalog is not healthy: see its health") }
            } catch {
                problems.append("the catalog does not respond: \(error.message)")
            }
            do throws(RPCError) { try resources.check() } catch { problems.append(error.message) }
            let slots = workers.metrics()
            if slots["workers"] == slots["backingOff"] { problems.append("no worker can be started; see the log") }
            return (problems, sequence)
        }
    }
}
