public import JSONValue
public import Logging
public import Messaging

/// The settings in force as `--check` prints them, in the same form for every service.
///
/// The form has the members `service`, `endpoints`, `library`, `limits`, `memory` and `confinement`, in this order.
/// A member that a service does not have is null.
public struct ServiceSettings: Sendable {
    /// The worker processes of a service.
    public struct Workers: Sendable {
        /// Number of workers.
        public var count: Int
        /// Limits of each worker.
        public var limits: WorkerLimits
        /// Path of the workers' program.
        public var executable: String

        /// Describes the workers of a service.
        public init(count: Int, limits: WorkerLimits, executable: String) {
            self.count = count
            self.limits = limits
            self.executable = executable
        }
    }

    private let service: ServiceName
    private let endpoints: [(name: EndpointName, address: EndpointAddress)]
    private let library: String?
    private let workers: Workers?
    private let limits: JSONObject
    private let memory: JSONObject
    private let traffic: TrafficLimits

    /// - Parameters:
    ///   - service: the service
    ///   - endpoints: the addresses that it binds, then those that it connects to
    ///   - library: the path of the library's folder; nil if the service does not read it
    ///   - workers: the worker processes; nil if there are none
    ///   - limits: the service's own limits, by the names of their flags
    ///   - memory: the service's own limits of memory, in bytes
    ///   - traffic: the limits of connections and pending requests
    public init(
        _ service: ServiceName,
        endpoints: [(name: EndpointName, address: EndpointAddress)],
        library: String? = nil,
        workers: Workers? = nil,
        limits: JSONObject,
        memory: JSONObject = [:],
        traffic: TrafficLimits
    ) {
        self.service = service
        self.endpoints = endpoints
        self.library = library
        self.workers = workers
        self.limits = limits
        self.memory = memory
        self.traffic = traffic
    }

    /// Starts a worker, if the service has any, and returns the settings as text.
    ///
    /// - Throws: the reason why no worker can be started, or ``HostingError``
    public func check(_ logger: Logger) async throws -> String {
        var confinement: String?
        if let workers {
            confinement = try await WorkerPool.check(
                executable: workers.executable,
                limits: workers.limits,
                logger: logger
            )
        }
        return json(
            confinement: confinement,
            serviceBytes: try MemoryGuard.limit { Environment[$0] }
        ).prettyText
    }

    func json(confinement: String?, serviceBytes: Int64) -> JSON {
        var addresses = JSONObject()
        for (name, address) in endpoints { addresses[name.rawValue] = .string(address.description) }
        var limits = JSONObject()
        limits["maxConnections"] = JSON(traffic.connections)
        if let workers {
            limits["workers"] = JSON(workers.count)
            limits["jobSeconds"] = JSON(workers.limits.wallSeconds)
        }
        for (name, value) in self.limits.members { limits[name] = value }
        var memory: JSONObject = [
            "serviceBytes": .int(serviceBytes), "requestBytes": JSON(traffic.requestMebibytes << 20),
        ]
        if let workers { memory["workerBytes"] = JSON(workers.limits.memoryBytes) }
        for (name, value) in self.memory.members { memory[name] = value }
        return [
            "service": .string(service.rawValue), "endpoints": .object(addresses),
            "library": library.map { .string($0) } ?? .null, "limits": .object(limits), "memory": .object(memory),
            "confinement": confinement.map { .string($0) } ?? .null,
        ]
    }
}
