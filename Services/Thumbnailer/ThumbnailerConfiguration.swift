import Hosting
import Messaging

/// What a thumbnailer is started with, checked.
struct ThumbnailerConfiguration: Sendable {
    /// Where it answers requests.
    var address: EndpointAddress
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
    /// The workers' program; nil for this one.
    var executable: String?
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
        guard cache.hasPrefix("/") else {
            throw .badSetting(source: "--cache", reason: "\(cache) is no absolute path")
        }
        guard cacheBytes >= 0 else { throw .badSetting(source: "--cache-mib", reason: "it is 0 or more") }
        guard memoryBytes >= 0 else { throw .badSetting(source: "--memory-mib", reason: "it is 0 or more") }
        guard (1...64).contains(workers) else { throw .badSetting(source: "--workers", reason: "it is 1 to 64") }
        guard (1...100_000).contains(queue) else { throw .badSetting(source: "--queue", reason: "it is 1 to 100000") }
    }
}
