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
    private let partsOfMemory: JSONObject
    private let traffic: TrafficLimits
    private let listener: NetworkListener?

    /// - Parameters:
    ///   - service: the service
    ///   - endpoints: the addresses that it binds, then those that it connects to
    ///   - library: the path of the library's folder; nil if the service does not read it
    ///   - workers: the worker processes; nil if there are none
    ///   - limits: the service's own limits, by the names of their flags
    ///   - memory: the service's own limits of memory, in bytes
    ///   - partsOfMemory: limits of memory that is counted in those of `memory`, in bytes
    ///   - traffic: the limits of connections and pending requests
    ///   - listener: the listener for clients on other machines; nil if there is none
    public init(
        _ service: ServiceName,
        endpoints: [(name: EndpointName, address: EndpointAddress)],
        library: String? = nil,
        workers: Workers? = nil,
        limits: JSONObject,
        memory: JSONObject = [:],
        partsOfMemory: JSONObject = [:],
        traffic: TrafficLimits,
        listener: NetworkListener? = nil
    ) {
        self.service = service
        self.endpoints = endpoints
        self.library = library
        self.workers = workers
        self.limits = limits
        self.memory = memory
        self.partsOfMemory = partsOfMemory
        self.traffic = traffic
        self.listener = listener
    }

    /// The memory in bytes that the limits allow, without that of the workers.
    var memoryBytes: Int64 {
        memory.members.reduce(Int64(traffic.requestMebibytes << 20 + traffic.replyBytes)) { sum, member in
            let (total, overflow) = sum.addingReportingOverflow(member.value.intValue ?? 0)
            return overflow ? .max : total
        }
    }

    /// Warns if the limits of memory allow more than three quarters of that at which the service ends itself: it would
    /// end before the limits have an effect.
    public func warnAboutMemory(
        _ logger: Logger,
        environment: (String) -> String? = { Environment[$0] }
    ) throws(HostingError) {
        let limit = try MemoryGuard.limit(environment: environment)
        guard memoryBytes > limit / 4 * 3 else { return }
        let names = ["requestBytes", "replyBytes"] + memory.members.map(\.name)
        logger.warning(
            "the service ends before its limits of memory take effect: raise its memory, or lower the limits",
            metadata: [
                "variable": "\(MemoryGuard.variable)", "memory.limit": "\(limit)", "memory.bytes": "\(memoryBytes)",
                "limits": "\(names.joined(separator: ", "))",
            ]
        )
    }

    /// Starts a worker, if the service has any, and returns the settings as text.
    ///
    /// - Throws: the reason why no worker can be started, or ``HostingError``
    public func check(_ logger: Logger) async throws -> String {
        try warnAboutMemory(logger)
        var confinement: String?
        if let workers {
            confinement = try await WorkerPool.check(
                executable: workers.executable,
                limits: workers.limits,
                logger: logger
            )
        }
        return try json(
            confinement: confinement,
            serviceBytes: try MemoryGuard.limit { Environment[$0] }
        ).prettyText
    }

    func json(confinement: String?, serviceBytes: Int64) throws -> JSON {
        var addresses = JSONObject()
        for (name, address) in endpoints { addresses[name.rawValue] = .string(address.description) }
        if let listener {
            for (name, _) in endpoints where name.service == service {
                addresses["\(name.rawValue)TCP"] = .string(try listener.address(of: name).description)
            }
        }
        var limits = JSONObject()
        limits["maxConnections"] = JSON(traffic.connections)
        if let workers {
            limits["workers"] = JSON(workers.count)
            limits["jobSeconds"] = JSON(workers.limits.wallSeconds)
        }
        for (name, value) in self.limits.members { limits[name] = value }
        var memory: JSONObject = [
            "serviceBytes": .int(serviceBytes), "requestBytes": JSON(traffic.requestMebibytes << 20),
            "replyBytes": JSON(traffic.replyBytes),
        ]
        if let workers { memory["workerBytes"] = JSON(workers.limits.memoryBytes) }
        for (name, value) in self.memory.members + partsOfMemory.members { memory[name] = value }
        return [
            "service": .string(service.rawValue), "endpoints": .object(addresses),
            "library": library.map { .string($0) } ?? .null, "limits": .object(limits), "memory": .object(memory),
            "confinement": confinement.map { .string($0) } ?? .null,
        ]
    }
}
