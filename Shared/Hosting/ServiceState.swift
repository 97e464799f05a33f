public import Contracts
public import JSONValue
public import Messaging

/// What a service says about itself: the answers to `rpc.discover`, `health` and `figures`.
public struct ServiceState: Sendable {
    /// Why the service cannot do its work, and the last sequence it has seen.
    public typealias Condition = (problems: [String], sequence: Int64)

    /// The OpenRPC document.
    public let document: JSON
    private let name: ServiceName
    private let figures: Figures
    private let condition: @Sendable () async -> Condition

    /// - Parameters:
    ///   - methods: what the service takes
    ///   - condition: asked for each `health`
    public init(
        _ name: ServiceName,
        methods: [MethodDescription],
        figures: Figures,
        condition: @escaping @Sendable () async -> Condition
    ) {
        self.name = name
        self.figures = figures
        self.condition = condition
        document = openRPCDocument(service: name.rawValue, version: ServiceVersion.current, methods: methods)
    }

    /// Healthy is who has no problems.
    public func health() async -> Health.Result {
        let (problems, sequence) = await condition()
        return Health.Result(
            service: name.rawValue,
            version: ServiceVersion.current,
            isHealthy: problems.isEmpty,
            problems: problems,
            sequence: sequence
        )
    }

    /// All counters and gauges.
    public func counts() async -> JSON { .object(await figures.json()) }
}

extension ServiceState {
    /// Of a service that opens the library's pictures: it needs the catalog, the resources and a worker that starts.
    ///
    /// - Parameter catalog: asks the catalog for its health
    public init(
        _ name: ServiceName,
        methods: [MethodDescription],
        figures: Figures,
        resources: ResourceFolder,
        workers: WorkerPool,
        catalog: @escaping @Sendable () async throws(RPCError) -> Health.Result
    ) {
        self.init(name, methods: methods, figures: figures) {
            var problems: [String] = []
            var sequence: Int64 = 0
            do throws(RPCError) {
                let health = try await catalog()
                sequence = health.sequence
                if !health.isHealthy { problems.append("the catalog is not healthy: ask it for its health") }
            } catch {
                problems.append("the catalog does not answer: \(error.message)")
            }
            do throws(RPCError) { try resources.check() } catch { problems.append(error.message) }
            let seats = workers.figures()
            if seats["workers"] == seats["backingOff"] { problems.append("no worker can be started; the log says why") }
            return (problems, sequence)
        }
    }
}
