import Hosting
import Logging

/// The `--check` flag: reports problems without serving.
extension EditorConfiguration {
    /// Checks the settings and starts a worker. Returns the effective settings as text.
    ///
    /// - Throws: the first problem found
    func check(_ logger: Logger) async throws -> String {
        try validate()
        let confinement = try await WorkerPool.check(executable: executable, limits: workerLimits, logger: logger)
        return """
            requests at  \(endpoints[.editor])
            catalog at   \(endpoints[.catalog])
            library      \(library)
            workers      \(workers), and a worker starts
            confined by  \(confinement)
            queue        \(queue), of one asset \(queuePerAsset)
            traffic      \(traffic)
            The settings are valid.
            """
    }
}
