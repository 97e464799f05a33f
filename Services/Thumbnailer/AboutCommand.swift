import ArgumentParser
import Hosting
import JSONValue

/// `thumbnailer about`: what `safelight doctor` asks about the libraries that open pictures, in a worker as it would be.
struct AboutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "about",
        abstract: "Starts a worker and writes, as a JSON line, which libraries it has and what they may do."
    )

    @OptionGroup var service: ServiceOptions
    @OptionGroup var worker: WorkerOptions

    func run() async throws {
        let limits = try worker.resolve(ThumbnailerConfiguration.usualWorkerLimits)
        let pool = WorkerPool(count: 1, limits: limits, logger: try service.logger("thumbnailer"))
        try await pool.start()
        let result = try await pool.run(WorkerJob(method: ThumbnailWork.aboutMethod))
        await pool.stop(graceSeconds: 1)
        print(result.result.text)
    }
}
