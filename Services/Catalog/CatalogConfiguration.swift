import Basics
import Glibc
import Hosting
import JSONValue
import Logging
import Messaging

/// Everything that can be set, with the bounds of what the catalog holds.
struct CatalogConfiguration: Sendable {
    /// The folder of the library: database, head file, lock and resources.
    var library: String
    var address: EndpointAddress
    /// What protects it.
    var localSecurity = SocketSecurity.none
    var traffic = TrafficLimits()
    /// For clients on other machines; none: only this one's.
    var door: PublicDoor?
    /// Worker processes that read metadata.
    var workers = 2
    /// What each of them may use.
    var workerLimits = WorkerLimits()
    /// How a worker is started.
    var workerExecutable = WorkerPool.ownExecutable
    /// Folders that paths in requests may name; none: whatever the service's own user can read, for that user.
    var importRoots: [String] = []
    /// The largest file that is taken in, in bytes.
    var maxFileBytes: Int64 = 8 << 30
    /// Entities that one transaction may touch.
    var maxEntities = 1000
    /// Bytes of one change record.
    var maxRecordBytes = 8 << 20
    /// Transactions that may wait to be committed.
    var writeQueue = 1024
    /// Reads and writes of files that may be under way or waiting, short and long ones apart.
    var fileQueue = FileCrew.defaultLimit
    /// Memory of results that are paged through, in bytes.
    var resultCacheBytes = 64 << 20
    /// How long change records are kept, in days.
    var historyDays = 30
    /// Bytes of change records that are kept.
    var historyBytes = 2 << 30
    /// How long an asset counts as recently added, and how long the trash keeps one, in days.
    var recentDays = 30
    var trashDays = 30
    /// Microseconds between looks at what the passing of time changes.
    var clockInterval: Int64 = 3_600_000_000
    /// Connections that read the database.
    var readers = 4
    /// How long the database is checked at the start, in seconds; 0: not at all.
    var checkSeconds = 2.0
    var uploads = UploadDesk.Limits()
    /// How long nothing refers to stored bytes before they are removed, in seconds.
    var collectAfterSeconds = 3600
    /// Microseconds between removing old records while there is little to remove.
    var trimInterval: Int64 = 60_000_000

    init(library: String, address: EndpointAddress) {
        self.library = library
        self.address = address
    }

    /// What is set, for `--check`.
    var json: JSON {
        var object: JSONObject = [
            "library": .string(library), "address": .string(address.description), "workers": JSON(workers),
            "jobSeconds": JSON(workerLimits.wallSeconds), "workerMemoryMiB": JSON(workerLimits.memoryBytes >> 20),
            "importRoots": JSON(importRoots), "maxFileBytes": .int(maxFileBytes), "maxEntities": JSON(maxEntities),
            "maxRecordBytes": JSON(maxRecordBytes), "writeQueue": JSON(writeQueue),
            "fileQueue": JSON(fileQueue),
            "resultCacheBytes": JSON(resultCacheBytes), "historyDays": JSON(historyDays),
            "historyBytes": JSON(historyBytes), "recentDays": JSON(recentDays), "trashDays": JSON(trashDays),
            "collectAfterSeconds": JSON(collectAfterSeconds), "readers": JSON(readers),
            "checkSeconds": .double(checkSeconds),
            "uploadLeaseSeconds": .int(uploads.lease / 1_000_000), "uploadsPerIdentity": JSON(uploads.perIdentity),
            "uploadBytes": .int(uploads.bytes), "uploadBytesPerIdentity": .int(uploads.bytesPerIdentity),
        ]
        for (name, value) in traffic.json.members { object[name] = value }
        return .object(object)
    }

    /// Refuses values that cannot be.
    func validate() throws(HostingError) {
        try HostingError.require(library.hasPrefix("/"), "--library", "\(library) is no absolute path")
        try HostingError.require((1...64).contains(workers), "--workers", "1 to 64 workers")
        try HostingError.require((1...100_000).contains(writeQueue), "--write-queue", "1 to 100000 transactions")
        try HostingError.require((1...100_000).contains(fileQueue), "--file-queue", "1 to 100000 reads and writes")
        try HostingError.require((1...36_500).contains(historyDays), "--history-days", "1 to 36500 days")
        try HostingError.require((0...36_500).contains(recentDays), "--recent-days", "0 to 36500 days")
        try HostingError.require((0...36_500).contains(trashDays), "--trash-days", "0 to 36500 days")
        try HostingError.require(historyBytes >= 1 << 20, "--history-bytes", "at least 1048576 bytes")
        try HostingError.require(maxFileBytes > 0, "--max-file-bytes", "at least one byte")
        try HostingError.require((0...(1 << 40)).contains(resultCacheBytes), "--result-cache-bytes", "0 to 1 TiB")
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
        for root in importRoots {
            try HostingError.require(root.hasPrefix("/"), "--import-root", "\(root) is no absolute path")
        }
    }
}

/// Clocks and names, which tests choose.
struct CatalogSurroundings: Sendable {
    /// Microseconds since 1970.
    var now: @Sendable () -> Int64 = {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
    var clock = MonotonicClock.system
    /// 128 random bits in hexadecimal.
    var makeName: @Sendable () -> String = {
        var random = SystemRandomNumberGenerator()
        return random.nextHexadecimal()
    }
}
