import ArgumentParser
import Hosting
import JSONValue

/// `thumbnailer about`: starts a worker as the service does, and prints the libraries that decode images. It is used by
/// `safelight doctor`.
struct AboutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "about",
        abstract: "Starts a worker and prints its libraries and their permissions as one line of JSON."
    )

    @OptionGroup var service: ServiceOptions
    @OptionGroup var worker: WorkerOptions

    @Option(help: "A file that the worker tries to read and must not be able to. May be repeated.")
    var attempt: [String] = []

    func run() async throws {
        let limits = try worker.resolve(ThumbnailerConfiguration.defaultWorkerLimits)
        let pool = WorkerPool(count: 1, limits: limits, logger: try service.logger("thumbnailer"))
        try await pool.start()
        let result = try await pool.run(WorkerJob(method: ThumbnailWorker.aboutMethod))
        let attempts = try await pool.run(
            WorkerJob(method: Confinement.attemptsMethod, params: ["paths": JSON(attempt)])
        )
        await pool.stop(graceSeconds: 1)
        var about = result.result.objectValue ?? [:]
        about["confinement"] = pool.confinement.map {
            ["inForce": .string("\($0)"), "isComplete": .bool($0.isComplete)]
        }
        about["attempts"] = attempts.result["attempts"]
        print(JSON.object(about).text)
    }
}
