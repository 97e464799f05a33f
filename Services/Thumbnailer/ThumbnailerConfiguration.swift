import Hosting

/// What a thumbnailer is started with, checked.
struct ThumbnailerConfiguration: Sendable {
    /// For clients on other machines; none: only this one's.
    var door: PublicDoor?
    var traffic = TrafficLimits()
    /// Where all services are.
    var endpoints: Endpoints
    /// The library's folder, absolute.
    var library: String
    /// The folder of the disk cache, absolute.
    var cache: String
    /// Bytes of the disk cache.
    var cacheBytes: Int64 = 2 << 30
    /// Bytes of the memory cache.
    var memoryBytes: Int64 = 128 << 20
    /// Worker processes.
    var workers: Int
    /// Pictures that may be made or wait for it.
    var queue: Int = 256
    /// The workers' program.
    var executable = WorkerPool.ownExecutable
    var workerLimits = ThumbnailerConfiguration.usualWorkerLimits

    /// A full-size picture of 100 megapixels must fit; a small file must be written, with ImageMagick's policy.
    static var usualWorkerLimits: WorkerLimits {
        var limits = WorkerLimits()
        limits.memoryBytes = 3 << 30
        limits.fileSizeBytes = 64 << 10
        return limits
    }

    /// - Throws: ``HostingError/badSetting(source:reason:)`` naming the flag.
    func validate() throws(HostingError) {
        try HostingError.require(cache.hasPrefix("/"), "--cache", "\(cache) is no absolute path")
        try HostingError.require(cacheBytes >= 0, "--cache-mib", "it is 0 or more")
        try HostingError.require(memoryBytes >= 0, "--memory-mib", "it is 0 or more")
        try HostingError.require((1...64).contains(workers), "--workers", "it is 1 to 64")
        try HostingError.require((1...100_000).contains(queue), "--queue", "it is 1 to 100000")
    }
}
