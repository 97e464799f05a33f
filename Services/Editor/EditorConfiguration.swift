import Foundation
import Hosting
import JSONValue
import PhotoModel

/// The settings of an editor, checked by ``validate()``.
struct EditorConfiguration: Sendable {
    /// The TCP listener for clients on other machines; nil to serve this machine only.
    var listener: NetworkListener?
    var traffic = TrafficLimits()
    /// The endpoints of all services.
    var endpoints: Endpoints
    /// The library's folder, as an absolute path.
    var library: String
    /// The maximum number of bytes of copies of originals, if the catalog is on another machine; nil to read the
    /// library's folder.
    var spoolBytes: Int64?
    /// The folder of these copies.
    var spoolFolder = ""
    /// The number of worker processes, 1...64.
    var workers: Int
    /// The maximum number of edits of all assets running or waiting, 1...100,000.
    var queue: Int = 4096
    /// The maximum number of edits of one asset running or waiting, 1 or more.
    var queuePerAsset: Int = 1024
    /// The maximum number of published edits queued, 16...100,000. At this number the editor stops reading.
    var published: Int = 4096
    /// The time that a published edit waits for a predecessor that has not been published, in seconds, 0...86,400.
    var predecessorTimeout: Int = 30
    /// The engine of edits that name none.
    var engine = RenderEngine.fused
    /// The largest render sent with its transaction, in bytes; a larger one is uploaded before it.
    var largestAttachment: Int = 7 << 20
    /// The program of the worker processes.
    var executable = WorkerPool.ownExecutable
    var workerLimits = EditorConfiguration.defaultWorkerLimits
    /// The folder of videos that are being rendered; they have no names in it.
    var videoFolder = NSTemporaryDirectory()
    /// The maximum number of bytes of a rendered video.
    var videoBytes: Int64 = 4 << 30
    /// The time limit of rendering a video, in seconds.
    var videoSeconds = 3600

    /// The limits of the worker that renders videos.
    var videoLimits: WorkerLimits {
        var limits = workerLimits
        limits.wallSeconds = max(videoSeconds, limits.wallSeconds)
        limits.cpuSeconds = 4 * limits.wallSeconds
        limits.jobsPerWorker = 50
        return limits
    }

    /// The default limits: an image of 100 megapixels and its resampled copy must fit in memory, and a worker must be
    /// able to write one small file, ImageMagick's policy.
    static var defaultWorkerLimits: WorkerLimits {
        var limits = WorkerLimits()
        limits.memoryBytes = 4 << 30
        limits.fileSizeBytes = 64 << 10
        return limits
    }

    /// The maximum number of open requests of one connection; further ones wait without a deadline of their own.
    ///
    /// Few, so that each ends well before the default deadline, although a render of a large image takes seconds.
    var requestsPerConnection: Int { 8 + 8 * workers }

    /// The settings for `--check`.
    var settings: ServiceSettings {
        ServiceSettings(
            .editor,
            endpoints: endpoints.named([.editor, .edits, .catalog, .broker, .feed]),
            library: spoolBytes == nil ? library : nil,
            workers: .init(count: workers, limits: workerLimits, executable: executable),
            limits: [
                "queue": JSON(queue), "queuePerAsset": JSON(queuePerAsset), "published": JSON(published),
                "patienceSeconds": JSON(predecessorTimeout), "filmBytes": .int(videoBytes),
                "engine": .string(engine.rawValue), "spoolBytes": spoolBytes.map { .int($0) } ?? .null,
            ],
            traffic: traffic,
            listener: listener
        )
    }

    /// Checks the ranges of all settings.
    ///
    /// - Throws: ``HostingError/badSetting(source:reason:)`` naming the flag
    func validate() throws(HostingError) {
        try HostingError.require((1...64).contains(workers), "--workers", "must be 1 to 64")
        try HostingError.require((1...100_000).contains(queue), "--queue", "must be 1 to 100000")
        try HostingError.require(videoBytes > 0, "--films-mib", "must be 1 or more")
        try HostingError.require(queuePerAsset >= 1, "--queue-per-asset", "must be 1 or more")
        try HostingError.require((16...100_000).contains(published), "--published", "must be 16 to 100000")
        try HostingError.require((0...86_400).contains(predecessorTimeout), "--patience", "must be 0 to 86400 seconds")
    }
}
