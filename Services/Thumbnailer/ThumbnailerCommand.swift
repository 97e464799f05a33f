import ArgumentParser
import Foundation
import Hosting

/// `thumbnailer`: serves images at any size. Each is rendered once and cached.
struct ThumbnailerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: ServiceName.thumbnailer.rawValue,
        abstract: "Serves images of a library's assets at the requested size.",
        discussion: "Reads the library's resources, looks assets up in the catalog, and caches renditions.",
        version: ServiceVersion.current,
        subcommands: [AboutCommand.self]
    )

    @OptionGroup var library: LibraryOptions
    @OptionGroup var remoteResources: RemoteResourceOptions
    @OptionGroup var endpoints: EndpointOptions
    @OptionGroup var listening: ListenOptions
    @OptionGroup var service: ServiceOptions
    @OptionGroup var worker: WorkerOptions
    @OptionGroup var traffic: TrafficOptions

    @Option(
        help: ArgumentHelp(
            "The folder of the disk cache.",
            discussion: "Default: SAFELIGHT_CACHE, else $XDG_CACHE_HOME/safelight, else ~/.cache/safelight."
        )
    )
    var cache: String?

    @Option(name: .customLong("cache-mib"), help: "The size limit of the disk cache, in MiB.")
    var cacheMiB: Int64 = 2048

    @Option(name: .customLong("memory-mib"), help: "The size limit of the memory cache, in MiB.")
    var memoryMiB: Int64 = 128

    @Option(name: .customLong("exports-mib"), help: "The total size limit of exported videos, in MiB.")
    var exportsMiB: Int64 = 4096

    @Option(
        help: ArgumentHelp(
            "Sizes at which images of new and edited assets are prepared in advance, or none.",
            discussion:
                "Default: SAFELIGHT_PREPARE, else 256 if SAFELIGHT_OBJECT_STORE_POLICY is optimize, else none. Interactive "
                + "requests have priority.",
            valueName: "N,N…"
        )
    )
    var prepare: String?

    @Option(help: "The number of worker processes. (default: one for each processor, at most 64)")
    var workers: Int?

    @Option(help: "The maximum number of renditions queued or being rendered; further requests fail with `busy`.")
    var queue = 4096

    @OptionGroup var check: CheckOptions

    @Flag(
        name: .customLong("verify-cache"),
        help: "Checks every file of the disk cache, reports problems, and exits."
    )
    var verifyCache = false

    func run() async throws {
        let logger = try service.logger(ServiceName.thumbnailer.rawValue)
        var configuration = try resolved()
        if verifyCache { return print(try CacheAudit.verify(cache: configuration.cache)) }
        configuration.listener = try listening.resolve(logger: logger)
        if check.isRequested { return print(try await configuration.settings.check(logger)) }
        try configuration.settings.warnAboutMemory(logger)
        configuration.traffic.enforce()
        try await ThumbnailerService(configuration, logger: logger).run(ready: service.ready)
    }

    private func resolved() throws -> ThumbnailerConfiguration {
        let endpoints = try endpoints.resolve()
        var configuration = ThumbnailerConfiguration(
            endpoints: endpoints,
            library: try library.resolve(),
            cache: try CacheFolder.resolve(cache),
            cacheBytes: Self.bytes(cacheMiB),
            memoryBytes: Self.bytes(memoryMiB),
            exportBytes: Self.bytes(exportsMiB),
            workers: workers ?? min(WorkerPool.maxCount, max(1, ProcessInfo.processInfo.activeProcessorCount)),
            queue: queue
        )
        configuration.spoolBytes = try remoteResources.resolve()
        configuration.preparedSides = try ThumbnailerConfiguration.preparedSides(
            prepare ?? Environment["SAFELIGHT_PREPARE"],
            releasesOriginals: Environment["SAFELIGHT_OBJECT_STORE_POLICY"] == "optimize"
        )
        configuration.workerLimits = try worker.resolve(configuration.workerLimits)
        configuration.traffic = try traffic.resolve()
        try configuration.validate()
        return configuration
    }

    private static func bytes(_ mib: Int64) -> Int64 {
        let (bytes, overflow) = mib.multipliedReportingOverflow(by: 1 << 20)
        return overflow ? .max : bytes
    }
}
