import Hosting
import Logging

/// The `--check` and `--verify-cache` flags: report problems without serving.
extension ThumbnailerConfiguration {
    /// Checks the settings and starts a worker. Returns the effective settings as text.
    ///
    /// - Throws: the first problem found
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
            The settings are valid.
            """
    }

    /// Checks every file of the cache. Returns a summary as text.
    ///
    /// - Throws: if a service uses the cache, or if any file is invalid
    func verifyCache() throws -> String {
        let lock = try ThumbnailerService.lock(cache: cache)
        defer { withExtendedLifetime(lock) {} }
        let audit = CacheAudit(root: cache, mayHoldPartial: true)
        guard audit.problems.isEmpty else {
            throw CacheError(description: audit.problems.prefix(100).joined(separator: "\n"))
        }
        return "\(audit.entries) renditions, \(audit.bytes >> 10) KiB; all are valid."
    }
}
