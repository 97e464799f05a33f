import Hosting
import Logging

/// `--check`: what would keep the service from its work, without serving.
struct EditorCheck {
    private let configuration: EditorConfiguration
    private let logger: Logger

    init(_ configuration: EditorConfiguration, logger: Logger) {
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
            workers      \(configuration.workers), and a worker starts
            queue        \(configuration.queue), of one asset \(configuration.queuePerAsset)
            The settings are good.
            """
    }
}
