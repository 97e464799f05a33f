import Hosting
import Logging

/// `--check`: what would keep the service from its work, without serving.
extension EditorConfiguration {
    /// The settings as they took effect, for people.
    ///
    /// - Throws: the first thing that is wrong.
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
            The settings are good.
            """
    }
}
