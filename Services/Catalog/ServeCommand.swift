import ArgumentParser
import Hosting
import Logging
import Storage

/// The subcommand `catalog serve`, which runs the service.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serves the library until SIGTERM or SIGINT."
    )

    @OptionGroup var endpoints: EndpointOptions
    @OptionGroup var listening: ListenOptions
    @OptionGroup var libraryOptions: LibraryOptions
    @OptionGroup var store: StoreOptions
    @OptionGroup var replica: StoreReplicaOptions
    @OptionGroup var newLibrary: NewLibraryOptions
    @OptionGroup var service: ServiceOptions
    @OptionGroup var worker: WorkerOptions
    @OptionGroup var traffic: TrafficOptions

    @Option(help: "The number of worker processes that read metadata. (SAFELIGHT_CATALOG_WORKERS, else 2)")
    var workers: Int?

    @Option(
        help: ArgumentHelp(
            "A folder that paths in requests may refer to; can be given several times.",
            discussion: "SAFELIGHT_IMPORT_ROOTS, separated by colons. Default: everything that this user can read."
        )
    )
    var importRoot: [String] = []

    @Option(help: "The maximum size of an imported file, in bytes. (SAFELIGHT_MAX_FILE_BYTES, else 8 GiB)")
    var maxFileBytes: Int64?

    @Option(help: "The maximum number of waiting transactions. (SAFELIGHT_WRITE_QUEUE, else 1024)")
    var writeQueue: Int?

    @Option(help: "The maximum number of file operations that run or wait. (SAFELIGHT_FILE_QUEUE, else 4096)")
    var fileQueue: Int?

    @Option(help: "The size of the fetch result cache in bytes. (SAFELIGHT_RESULT_CACHE_BYTES, else 64 MiB)")
    var resultCacheBytes: Int?

    @Option(help: "The memory for cached pages of the database in bytes. (SAFELIGHT_PAGE_CACHE_BYTES, else 64 MiB)")
    var pageCacheBytes: Int?

    @Option(help: "The number of days for which change records are kept. (SAFELIGHT_HISTORY_DAYS, else 30)")
    var historyDays: Int?

    @Option(help: "The maximum size of all change records in bytes. (SAFELIGHT_HISTORY_BYTES, else 2 GiB)")
    var historyBytes: Int?

    @Option(help: "The number of days for which an asset is recently added. (SAFELIGHT_RECENT_DAYS, else 30)")
    var recentDays: Int?

    @Option(help: "The number of days for which an asset stays in the trash. (SAFELIGHT_TRASH_DAYS, else 30)")
    var trashDays: Int?

    @Option(
        help: "The seconds after which unreferenced files are deleted. (SAFELIGHT_COLLECT_AFTER_SECONDS, else 3600)"
    )
    var collectAfterSeconds: Int?

    @Option(help: "The maximum files per second that are read again after an upgrade. (SAFELIGHT_REREAD_RATE, else 50)")
    var rereadRate: Int?

    @Option(help: "The number of reading database connections. (SAFELIGHT_READERS, else 4)")
    var readers: Int?

    @Option(
        help: "The seconds for checking the database after the start; 0: no check. (SAFELIGHT_CHECK_SECONDS, else 2)"
    )
    var checkSeconds: Double?

    @OptionGroup(title: "Object store") var objectStore: ObjectStoreFlags

    @OptionGroup var check: CheckOptions

    func run() async throws {
        let logger = try service.logger(ServiceName.catalog.rawValue)
        var configuration = try settings()
        configuration.listener = try listening.resolve(logger: logger)
        if check.isRequested {
            _ = try newLibrary.folder()
            print(try await configuration.settings.check(logger))
            return try CatalogService.checkDatabase(configuration)
        }
        configuration.knownLibraries = try newLibrary.resolve(library: configuration.library)
        try configuration.settings.warnAboutMemory(logger)
        configuration.traffic.enforce()
        let locks = try endpoints.resolve().claim(for: .catalog)
        var ready = service.ready
        while let error = await OfflineCatalog.connectionError(configuration) {
            logger.error("the database server does not answer; waiting", metadata: ["error": "\(error.message)"])
            let waiting = try OfflineCatalog(configuration, logger: logger)
            guard try await waiting.runUntilComponentEnds(ready: ready) else { return }
            ready = ReadySignal(descriptor: nil)
        }
        let catalog = try await CatalogService(configuration, logger: logger)
        try await catalog.run(ready: ready)
        withExtendedLifetime(locks) {}
    }

    /// Resolves each setting from its flag, else from its environment variable, else from the default.
    ///
    /// - Throws: ``HostingError`` if a value is not valid
    func settings(environment: (String) -> String? = { Hosting.Environment[$0] }) throws -> CatalogConfiguration {
        func set<Value: LosslessStringConvertible>(
            _ value: inout Value,
            _ flag: Value?,
            _ variable: String,
            _ kind: String = "whole number"
        ) throws(HostingError) {
            try Hosting.Environment.set(&value, flag, variable, kind: kind, environment: environment)
        }
        var settings = CatalogConfiguration(
            library: try libraryOptions.resolve(environment: environment),
            address: try endpoints.resolve(environment: environment)[.catalog]
        )
        settings.server = try store.resolve(environment: environment)
        settings.replica = try replica.resolve(environment: environment)
        settings.localSecurity = try endpoints.resolve(environment: environment).localSecurity
        settings.traffic = try traffic.resolve(environment: environment)
        try set(&settings.workers, workers, "SAFELIGHT_CATALOG_WORKERS")
        settings.workerLimits = try worker.resolve(settings.workerLimits, environment: environment)
        try set(&settings.maxFileBytes, maxFileBytes, "SAFELIGHT_MAX_FILE_BYTES")
        try set(&settings.writeQueue, writeQueue, "SAFELIGHT_WRITE_QUEUE")
        try set(&settings.fileQueue, fileQueue, "SAFELIGHT_FILE_QUEUE")
        try set(&settings.resultCacheBytes, resultCacheBytes, "SAFELIGHT_RESULT_CACHE_BYTES")
        try set(&settings.pageCacheBytes, pageCacheBytes, "SAFELIGHT_PAGE_CACHE_BYTES")
        try set(&settings.historyDays, historyDays, "SAFELIGHT_HISTORY_DAYS")
        try set(&settings.historyBytes, historyBytes, "SAFELIGHT_HISTORY_BYTES")
        try set(&settings.recentDays, recentDays, "SAFELIGHT_RECENT_DAYS")
        try set(&settings.trashDays, trashDays, "SAFELIGHT_TRASH_DAYS")
        try set(&settings.collectAfterSeconds, collectAfterSeconds, "SAFELIGHT_COLLECT_AFTER_SECONDS")
        try set(&settings.rereadRate, rereadRate, "SAFELIGHT_REREAD_RATE")
        try set(&settings.readers, readers, "SAFELIGHT_READERS")
        try set(&settings.checkSeconds, checkSeconds, "SAFELIGHT_CHECK_SECONDS", "number")
        settings.remoteStorage = try objectStore.resolve(environment: environment)
        settings.importRoots =
            importRoot.isEmpty
            ? environment("SAFELIGHT_IMPORT_ROOTS").map { $0.split(separator: ":").map(String.init) } ?? []
            : importRoot
        try settings.validate()
        return settings
    }
}
