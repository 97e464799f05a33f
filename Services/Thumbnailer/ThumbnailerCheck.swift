import Hosting
import Logging

/// `--check`: what would keep the service from its work, without serving.
struct ThumbnailerCheck {
    private let configuration: ThumbnailerConfiguration
    private let logger: Logger

    init(_ configuration: ThumbnailerConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// The settings as they took effect, for people.
    ///
    /// - Throws: the first thing that is wrong.
    func run() async throws -> String {
        try configuration.validate()
        let pool = WorkerPool(
            executable: configuration.executable ?? WorkerPool.ownExecutable,
            count: 1,
            limits: configuration.workerLimits,
            logger: logger
        )
        try await pool.start()
        await pool.stop(graceSeconds: 1)
        return """
            requests at  \(configuration.address)
            catalog at   \(configuration.endpoints[.catalog])
            library      \(configuration.library)
            cache        \(configuration.cache), at most \(configuration.cacheBytes >> 20) MiB
            memory       at most \(configuration.memoryBytes >> 20) MiB
            workers      \(configuration.workers), and a worker starts
            queue        \(configuration.queue)
            The settings are good.
            """
    }

    /// What stands in the cache, for people.
    ///
    /// - Throws: where a service uses the cache, and where anything in it is wrong
    func verifyCache() throws -> String {
        let lock = try ThumbnailerService.lock(cache: configuration.cache)
        defer { withExtendedLifetime(lock) {} }
        let audit = CacheAudit(root: configuration.cache, mayHoldPartial: true)
        guard audit.problems.isEmpty else {
            throw CacheError(description: audit.problems.prefix(100).joined(separator: "\n"))
        }
        return "\(audit.entries) pictures, \(audit.bytes >> 10) KiB; every one is what its name says."
    }
}
