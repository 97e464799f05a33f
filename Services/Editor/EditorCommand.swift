import ArgumentParser
import Foundation
import Hosting

/// `editor`: applies adjustments and commits them.
struct EditorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: ServiceName.editor.rawValue,
        abstract: "Applies adjustments to pictures and commits them through the catalog.",
        discussion: "It reads the library's resources, renders, and keeps nothing of its own.",
        version: ServiceVersion.current
    )

    @OptionGroup var library: LibraryOptions
    @OptionGroup var endpoints: EndpointOptions
    @OptionGroup var listening: ListenOptions
    @OptionGroup var service: ServiceOptions
    @OptionGroup var worker: WorkerOptions
    @OptionGroup var traffic: TrafficOptions

    @Option(help: "Processes that render. (one for each processor)")
    var workers: Int?

    @Option(help: "Edits that may be under way or wait; further requests are answered `busy`.")
    var queue = 256

    @Option(name: .customLong("queue-per-asset"), help: "The same, of one asset.")
    var queuePerAsset = 64

    @Option(help: "Published edits taken on at a time; while there are as many, publishers wait.")
    var published = 4096

    @Option(help: ArgumentHelp("How long a published edit waits for its unseen predecessor.", valueName: "seconds"))
    var patience = 30

    @Flag(help: "Checks the settings, starts a worker, and says what is wrong; serves nothing.")
    var check = false

    func run() async throws {
        let logger = try service.logger(ServiceName.editor.rawValue)
        let endpoints = try endpoints.resolve()
        var configuration = EditorConfiguration(
            endpoints: endpoints,
            library: try library.resolve(),
            workers: workers ?? max(1, ProcessInfo.processInfo.activeProcessorCount),
            queue: queue,
            queuePerAsset: queuePerAsset,
            published: published,
            patience: patience
        )
        configuration.workerLimits = try worker.resolve(configuration.workerLimits)
        configuration.traffic = try traffic.resolve()
        if check {
            print(try await configuration.check(logger))
            return
        }
        configuration.traffic.begin()
        configuration.door = try listening.resolve(logger: logger)
        try await EditorService(configuration, logger: logger).run(ready: service.ready)
    }
}
