import ArgumentParser
import Foundation
import Hosting

/// `thumbnailer`: images at a size, made once and kept.
struct ThumbnailerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: ServiceName.thumbnailer.rawValue,
        abstract: "Serves pictures of a library's assets at the size asked for.",
        discussion: "It reads the library's resources, asks the catalog what they are, and keeps finished pictures.",
        version: ServiceVersion.current,
        subcommands: [AboutCommand.self]
    )

    @OptionGroup var library: LibraryOptions
    @OptionGroup var endpoints: EndpointOptions
    @OptionGroup var listening: ListenOptions
    @OptionGroup var service: ServiceOptions
    @OptionGroup var worker: WorkerOptions
    @OptionGroup var traffic: TrafficOptions

    @Option(
        help: ArgumentHelp(
            "The folder of finished pictures.",
            discussion: "SAFELIGHT_CACHE, else $XDG_CACHE_HOME/safelight, else ~/.cache/safelight."
        )
    )
    var cache: String?

    @Option(name: .customLong("cache-mib"), help: "MiB that finished pictures may take on disk.")
    var cacheMiB: Int64 = 2048

    @Option(name: .customLong("memory-mib"), help: "MiB that finished pictures may take in memory.")
    var memoryMiB: Int64 = 128

    @Option(help: "Processes that open pictures. (one for each processor)")
    var workers: Int?

    @Option(help: "Pictures that may be made or wait for it; further requests are answered `busy`.")
    var queue = 256

    @Flag(help: "Checks the settings, starts a worker, and says what is wrong; serves nothing.")
    var check = false

    @Flag(
        name: .customLong("verify-cache"),
        help: "Reads every finished picture and says what is wrong; serves nothing."
    )
    var verifyCache = false

    func run() async throws {
        let logger = try service.logger(ServiceName.thumbnailer.rawValue)
        var configuration = try resolved()
        if check {
            print(try await configuration.check(logger))
            return
        }
        if verifyCache {
            print(try configuration.verifyCache())
            return
        }
        configuration.traffic.begin()
        configuration.door = try listening.resolve(logger: logger)
        try await ThumbnailerService(configuration, logger: logger).run(ready: service.ready)
    }

    private func resolved() throws -> ThumbnailerConfiguration {
        let endpoints = try endpoints.resolve()
        var configuration = ThumbnailerConfiguration(
            endpoints: endpoints,
            library: try library.resolve(),
            cache: try cacheFolder(),
            cacheBytes: Self.bytes(cacheMiB),
            memoryBytes: Self.bytes(memoryMiB),
            workers: workers ?? max(1, ProcessInfo.processInfo.activeProcessorCount),
            queue: queue
        )
        configuration.workerLimits = try worker.resolve(configuration.workerLimits)
        configuration.traffic = try traffic.resolve()
        try configuration.validate()
        return configuration
    }

    private func cacheFolder() throws(HostingError) -> String {
        if let cache = cache ?? Environment["SAFELIGHT_CACHE"] { return cache }
        if let caches = Environment["XDG_CACHE_HOME"] { return caches + "/safelight" }
        guard let home = Environment["HOME"] else {
            throw .badSetting(source: "--cache", reason: "there is no HOME; say where finished pictures go")
        }
        return home + "/.cache/safelight"
    }

    private static func bytes(_ mib: Int64) -> Int64 {
        let (bytes, overflow) = mib.multipliedReportingOverflow(by: 1 << 20)
        return overflow ? .max : bytes
    }
}
