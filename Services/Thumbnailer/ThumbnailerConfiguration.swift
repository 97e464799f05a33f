import Hosting
import JSONValue

/// The settings of a thumbnailer, checked by ``validate()``.
struct ThumbnailerConfiguration: Sendable {
    /// The TCP listener for clients on other machines; nil to serve this machine only.
    var listener: NetworkListener?
    var traffic = TrafficLimits()
    /// The endpoints of all services.
    var endpoints: Endpoints
    /// The library's folder, as an absolute path.
    var library: String
    /// The maximum size of the copies of originals, in bytes, if the catalog is on another machine; nil to read the
    /// library's folder.
    var spoolBytes: Int64?
    /// The folder of the disk cache, as an absolute path.
    var cache: String
    /// The size limit of the disk cache, in bytes.
    var cacheBytes: Int64 = 2 << 30
    /// The size limit of the memory cache, in bytes.
    var memoryBytes: Int64 = 128 << 20
    /// The total size limit of exported videos, in bytes.
    var exportBytes: Int64 = 4 << 30
    /// The time limit of one export, in seconds.
    var exportSeconds = 3600
    /// The number of worker processes, 1...64.
    var workers: Int
    /// The maximum number of renditions queued or being rendered, 1...100,000.
    var queue: Int = 4096
    /// The sizes in pixels at which images of new and edited assets are prepared in advance, at most
    /// ``maxPreparedSides``.
    var preparedSides: [Int] = []
    /// The program of the worker processes.
    var executable = WorkerPool.ownExecutable
    var workerLimits = ThumbnailerConfiguration.defaultWorkerLimits

    /// The default limits: an image of 100 megapixels must fit in memory, and a worker must be able to write one
    /// small file, ImageMagick's policy.
    static var defaultWorkerLimits: WorkerLimits {
        var limits = WorkerLimits()
        limits.memoryBytes = 3 << 30
        limits.fileSizeBytes = 64 << 10
        return limits
    }

    static let maxPreparedSides = 8

    /// Returns the sizes of a text such as `256,1024`; none for `none`.
    ///
    /// - Parameter text: nil for the default: 256 if local originals are released, because many images could then not
    ///   be rendered later without a download; else none
    static func preparedSides(_ text: String?, releasesOriginals: Bool) throws(HostingError) -> [Int] {
        guard let text else { return releasesOriginals ? [256] : [] }
        guard text != "none" else { return [] }
        let sides = text.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        let isValid = sides.count <= maxPreparedSides && sides.allSatisfy { (16...8192).contains($0) }
        try HostingError.require(isValid, "--prepare", "must be none, or up to 8 sizes of 16 to 8192, as 256,1024")
        return sides
    }

    /// The settings for `--check`.
    var settings: ServiceSettings {
        ServiceSettings(
            .thumbnailer,
            endpoints: endpoints.named([.thumbnailer, .catalog, .broker, .feed]),
            library: spoolBytes == nil ? library : nil,
            workers: .init(count: workers, limits: workerLimits, executable: executable),
            limits: [
                "queue": JSON(queue), "cache": .string(cache), "cacheBytes": .int(cacheBytes),
                "exportBytes": .int(exportBytes), "prepare": .array(preparedSides.map { JSON($0) }),
                "spoolBytes": spoolBytes.map { .int($0) } ?? .null,
            ],
            memory: ["memoryCacheBytes": .int(memoryBytes)],
            traffic: traffic,
            listener: listener
        )
    }

    /// Checks the ranges of all settings.
    ///
    /// - Throws: ``HostingError/badSetting(source:reason:)`` naming the flag
    func validate() throws(HostingError) {
        try HostingError.require(cache.hasPrefix("/"), "--cache", "\(cache) is not an absolute path")
        try HostingError.require(cacheBytes >= 0, "--cache-mib", "must be 0 or more")
        try HostingError.require(memoryBytes >= 0, "--memory-mib", "must be 0 or more")
        try HostingError.require(exportBytes > 0, "--exports-mib", "must be 1 or more")
        try HostingError.require((1...64).contains(workers), "--workers", "must be 1 to 64")
        try HostingError.require((1...100_000).contains(queue), "--queue", "must be 1 to 100000")
    }
}
