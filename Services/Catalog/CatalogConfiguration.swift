import Basics
import Glibc
import Hosting
import JSONValue
import Logging
import Messaging
import Storage

/// The settings of the catalog, including its limits.
struct CatalogConfiguration: Sendable {
    /// The path of the library's folder, with database, head file, lock and resources.
    var library: String
    /// The address of the library's database on PostgreSQL; nil for a file in the folder.
    var server: String?
    /// The address of a replica of that database for reads; nil to read at `server`.
    var replica: String?
    /// The libraries that were opened before, by path; nil if none are recorded.
    var knownLibraries: KnownLibraries?
    var address: EndpointAddress
    /// The security of the socket at `address`.
    var localSecurity = SocketSecurity.none
    var traffic = TrafficLimits()
    /// The network listener for clients on other machines; nil accepts clients of this machine only.
    var listener: NetworkListener?
    /// The number of worker processes that read metadata.
    var workers = 2
    /// The resource limits of each worker. Reading metadata takes less time than starting a process for it.
    var workerLimits: WorkerLimits = {
        var limits = WorkerLimits()
        limits.jobsPerWorker = 5000
        return limits
    }()
    /// The executable that workers are started from.
    var workerExecutable = WorkerPool.ownExecutable
    /// The folders that paths in requests may refer to. If it is empty, only the service's own user may name paths, of
    /// all files that this user can read.
    var importRoots: [String] = []
    /// The maximum size of an imported file, in bytes.
    var maxFileBytes: Int64 = 8 << 30
    /// The maximum number of entities that one transaction may touch.
    var maxEntities = 1000
    /// The maximum size of one change record in bytes.
    var maxRecordBytes = 8 << 20
    /// The maximum number of transactions that wait to be committed.
    var writeQueue = 1024
    /// The maximum number of file operations that run or wait, counted separately for short and long ones.
    var fileQueue = BlockingIOExecutor.defaultLimit
    /// The size of the cache of fetch results in bytes.
    var resultCacheBytes = 64 << 20
    /// The memory for the cached pages of all database connections together, in bytes.
    var pageCacheBytes = 64 << 20
    /// The number of days for which change records are kept.
    var historyDays = 30
    /// The maximum size of all change records in bytes.
    var historyBytes = 2 << 30
    /// The number of days for which an asset counts as recently added.
    var recentDays = 30
    /// The number of days for which an asset stays in the trash.
    var trashDays = 30
    /// Microseconds between checks for changes that depend only on the time.
    var clockInterval: Int64 = 3_600_000_000
    /// The number of reading database connections.
    var readers = 4
    /// The maximum duration of the database check at the start, in seconds; 0 skips the check.
    var checkSeconds = 2.0
    var uploads = UploadRegistry.Limits()
    /// The maximum number of files per second that are read again after an upgrade.
    var rereadRate = 50
    /// The number of seconds for which stored bytes must be unreferenced before they are deleted.
    var collectAfterSeconds = 3600
    /// The object store with copies of all files; nil if they are on this machine only.
    var remoteStorage: RemoteStorageOptions?
    /// Microseconds between deletions of old records if few are due.
    var trimInterval: Int64 = 60_000_000

    /// The file without which the folder of a library that was opened before counts as missing.
    var libraryFile: String { library + (server == nil ? "/library.sqlite" : "/head") }

    init(library: String, address: EndpointAddress) {
        self.library = library
        self.address = address
    }

    /// The settings for `--check`.
    var settings: ServiceSettings {
        let limits: JSONObject = [
            "importRoots": JSON(importRoots), "maxFileBytes": .int(maxFileBytes), "maxEntities": JSON(maxEntities),
            "maxRecordBytes": JSON(maxRecordBytes), "writeQueue": JSON(writeQueue),
            "fileQueue": JSON(fileQueue), "historyDays": JSON(historyDays),
            "historyBytes": JSON(historyBytes), "recentDays": JSON(recentDays), "trashDays": JSON(trashDays),
            "collectAfterSeconds": JSON(collectAfterSeconds), "readers": JSON(readers),
            "checkSeconds": .double(checkSeconds), "rereadRate": JSON(rereadRate),
            "uploadLeaseSeconds": .int(uploads.lease / 1_000_000), "uploadsPerIdentity": JSON(uploads.perIdentity),
            "store": .string(server.map(PostgreSQLLibraryDatabase.withoutPassword) ?? "sqlite"),
            "storeReplica": replica.map { .string(PostgreSQLLibraryDatabase.withoutPassword($0)) } ?? .null,
            "uploadBytes": .int(uploads.bytes), "uploadBytesPerIdentity": .int(uploads.bytesPerIdentity),
        ]
        return ServiceSettings(
            .catalog,
            endpoints: [(.catalog, address)],
            library: library,
            workers: .init(count: workers, limits: workerLimits, executable: workerExecutable),
            limits: limits,
            memory: ["resultCacheBytes": JSON(resultCacheBytes), "pageCacheBytes": JSON(pageCacheBytes)],
            traffic: traffic,
            listener: listener
        )
    }

    /// Checks the ranges of the settings.
    ///
    /// - Throws: ``HostingError`` for the first setting out of range
    func validate() throws(HostingError) {
        try HostingError.require(library.hasPrefix("/"), "--library", "\(library) is not an absolute path")
        try HostingError.require(
            replica == nil || server != nil,
            "--store-replica",
            "needs --store with the address of the primary server"
        )
        try HostingError.require((1...64).contains(workers), "--workers", "1 to 64 workers")
        try HostingError.require((1...100_000).contains(writeQueue), "--write-queue", "1 to 100000 transactions")
        try HostingError.require((1...100_000).contains(fileQueue), "--file-queue", "1 to 100000 operations")
        try HostingError.require((1...36_500).contains(historyDays), "--history-days", "1 to 36500 days")
        try HostingError.require((0...36_500).contains(recentDays), "--recent-days", "0 to 36500 days")
        try HostingError.require((0...36_500).contains(trashDays), "--trash-days", "0 to 36500 days")
        try HostingError.require(historyBytes >= 1 << 20, "--history-bytes", "at least 1048576 bytes")
        try HostingError.require(maxFileBytes > 0, "--max-file-bytes", "at least one byte")
        try HostingError.require((0...(1 << 40)).contains(resultCacheBytes), "--result-cache-bytes", "0 to 1 TiB")
        try HostingError.require(
            (1 << 20...1 << 40).contains(pageCacheBytes),
            "--page-cache-bytes",
            "1 MiB to 1 TiB"
        )
        try HostingError.require((1...64).contains(readers), "--readers", "1 to 64 connections")
        try HostingError.require(
            checkSeconds.isFinite && (0...86_400).contains(checkSeconds),
            "--check-seconds",
            "0 to 86400 seconds"
        )
        try HostingError.require(
            (1...31_536_000).contains(collectAfterSeconds),
            "--collect-after-seconds",
            "1 to 31536000 seconds"
        )
        try HostingError.require((1...10_000).contains(rereadRate), "--reread-rate", "1 to 10000 files per second")
        for root in importRoots {
            try HostingError.require(root.hasPrefix("/"), "--import-root", "\(root) is not an absolute path")
        }
    }
}

/// The clocks and the name generator, which tests replace.
struct CatalogEnvironment: Sendable {
    /// Returns the wall time in microseconds since 1970.
    var now: @Sendable () -> Int64 = { WallClock.nowMicroseconds() }
    var clock = MonotonicClock.system
    /// The clock of retention, which includes the time for which the machine was suspended.
    var elapsed = MonotonicClock.elapsed
    /// Returns 128 random bits in hexadecimal.
    var makeName: @Sendable () -> String = {
        var random = SystemRandomNumberGenerator()
        return random.nextHexadecimal()
    }
}

extension CatalogConfiguration {
    /// Binds the catalog's addresses: the local one, and that of the network listener if there is one.
    func bindRequestServers(
        on thread: PollThread,
        clock: MonotonicClock,
        logger: Logger,
        handler: any RequestHandler
    ) throws(MessagingError) -> RequestServers {
        try RequestServers(
            .catalog,
            address: address,
            listener: listener,
            thread: thread,
            security: localSecurity,
            traffic: traffic,
            clock: clock,
            logger: logger,
            handler: handler
        )
    }
}
