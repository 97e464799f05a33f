import ArgumentParser
import Foundation
import Hosting
import PhotoModel

/// `editor`: applies adjustments and commits the result.
struct EditorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: ServiceName.editor.rawValue,
        abstract: "Applies adjustments to images and commits the renders to the catalog.",
        discussion: "Reads the library's resources and renders; keeps no state of its own.",
        version: ServiceVersion.current
    )

    @OptionGroup var library: LibraryOptions
    @OptionGroup var remoteResources: RemoteResourceOptions
    @OptionGroup var endpoints: EndpointOptions
    @OptionGroup var listening: ListenOptions
    @OptionGroup var service: ServiceOptions
    @OptionGroup var worker: WorkerOptions
    @OptionGroup var traffic: TrafficOptions

    @Option(help: "The number of worker processes. (default: one for each processor, at most 64)")
    var workers: Int?

    @Option(help: "The maximum number of edits running or waiting; further requests fail with `busy`.")
    var queue = 4096

    @Option(name: .customLong("queue-per-asset"), help: "The maximum number of edits of one asset running or waiting.")
    var queuePerAsset = 1024

    @Option(
        help: """
            The maximum number of queued published edits; at this number the editor stops reading, and publishers wait.
            """
    )
    var published = 4096

    @Option(
        name: .customLong("patience"),
        help: ArgumentHelp("The time that a published edit waits for a missing predecessor.", valueName: "seconds")
    )
    var predecessorTimeout = 30

    @Option(help: "The engine that renders edits that name none: fused or imagemagick.")
    var engine = RenderEngine.fused.rawValue

    @Option(name: .customLong("films-mib"), help: "The size limit of a rendered video, in MiB.")
    var videosMiB: Int64 = 4096

    @Option(
        name: .customLong("films"),
        help: ArgumentHelp(
            "The folder of videos while they are rendered. (default: $SAFELIGHT_CACHE, else that of temporary files)",
            valueName: "folder"
        )
    )
    var videoFolder: String?

    @OptionGroup var check: CheckOptions

    func run() async throws {
        let logger = try service.logger(ServiceName.editor.rawValue)
        var configuration = try resolved()
        configuration.listener = try listening.resolve(logger: logger)
        if check.isRequested { return print(try await configuration.settings.check(logger)) }
        try configuration.settings.warnAboutMemory(logger)
        configuration.traffic.enforce()
        try await EditorService(configuration, logger: logger).run(ready: service.ready)
    }

    private func resolved() throws -> EditorConfiguration {
        var configuration = EditorConfiguration(
            endpoints: try endpoints.resolve(),
            library: try library.resolve(),
            workers: workers ?? min(WorkerPool.maxCount, max(1, ProcessInfo.processInfo.activeProcessorCount)),
            queue: queue,
            queuePerAsset: queuePerAsset,
            published: published,
            predecessorTimeout: predecessorTimeout
        )
        guard let engine = RenderEngine(rawValue: engine) else {
            throw HostingError.badSetting(source: "--engine", reason: "must be fused or imagemagick")
        }
        configuration.engine = engine
        configuration.videoBytes = videosMiB.multipliedReportingOverflow(by: 1 << 20).partialValue
        configuration.videoFolder = videoFolder ?? Hosting.Environment["SAFELIGHT_CACHE"] ?? configuration.videoFolder
        configuration.spoolBytes = try remoteResources.resolve()
        if configuration.spoolBytes != nil {
            configuration.spoolFolder = try CacheFolder.resolve() + "/editor-originals"
        }
        configuration.workerLimits = try worker.resolve(configuration.workerLimits)
        configuration.traffic = try traffic.resolve()
        try configuration.validate()
        return configuration
    }
}
