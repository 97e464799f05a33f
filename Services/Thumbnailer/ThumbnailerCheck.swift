import Hosting
import Logging

/// `--check` and `--verify-cache`: what would keep the service from its work, without serving.
extension ThumbnailerConfiguration {
    /// The settings as they took effect, for people.
    ///
    /// - Throws: the first thing that is wrong.
    func check(_ logger: Logger) async throws -> String {
        try validate()
        let confinement = try await WorkerPool.check(executable: executable, limits: workerLimits, logger: logger)
        return """
            requests at  \(endpoints[.thumbnailer])
            catalog at   \(endpoints[.catalog])
            library      \(library)
            cache        \(cache), at most \(cacheBytes >> 20) MiB
            memory       at most \(memoryBytes >> 20) MiB
            workers      \(workers), and a worker starts
            confined by  \(confinement)
            queue        \(queue)
            traffic      \(traffic)
            The settings are good.
            """
    }

    /// What stands in the cache, for people.
    ///
    /// - Throws: where a service uses the cache, and where anything in it is wrong
    func verifyCache() throws -> String {
        let lock = try ThumbnailerService.lock(cache: cache)
        defer { withExtendedLifetime(lock) {} }
        let audit = CacheAudit(root: cache, mayHoldPartial: true)
        guard audit.problems.isEmpty else {
            throw CacheError(description: audit.problems.prefix(100).joined(separator: "\n"))
        }
        return "\(audit.entries) pictures, \(audit.bytes >> 10) KiB; every one is what its name says."
    }
}
