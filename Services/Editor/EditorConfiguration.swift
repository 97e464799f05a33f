import Hosting

/// What an editor is started with, checked.
struct EditorConfiguration: Sendable {
    /// For clients on other machines; none: only this one's.
    var door: PublicDoor?
    var traffic = TrafficLimits()
    /// Where all services are.
    var endpoints: Endpoints
    /// The library's folder, absolute.
    var library: String
    /// Worker processes.
    var workers: Int
    /// Edits that may be under way or wait, of all assets together.
    var queue: Int = 256
    /// Edits that may be under way or wait, of one asset.
    var queuePerAsset: Int = 64
    /// Published edits that are taken on at a time; while there are as many, no further one is read.
    var published: Int = 4096
    /// How long a published edit waits for one that it comes after and that nobody has seen, in seconds.
    var patience: Int = 30
    /// Bytes of a render that travels with its transaction; a larger one is uploaded before it.
    var largestAttachment: Int = 7 << 20
    /// The workers' program.
    var executable = WorkerPool.ownExecutable
    var workerLimits = EditorConfiguration.usualWorkerLimits

    /// A picture of 100 megapixels and its resampled copy must fit; a small file must be written, with ImageMagick's
    /// policy.
    static var usualWorkerLimits: WorkerLimits {
        var limits = WorkerLimits()
        limits.memoryBytes = 4 << 30
        limits.fileSizeBytes = 64 << 10
        return limits
    }

    /// - Throws: ``HostingError/badSetting(source:reason:)`` naming the flag.
    func validate() throws(HostingError) {
        try HostingError.require((1...64).contains(workers), "--workers", "it is 1 to 64")
        try HostingError.require((1...100_000).contains(queue), "--queue", "it is 1 to 100000")
        try HostingError.require(queuePerAsset >= 1, "--queue-per-asset", "it is 1 or more")
        try HostingError.require((16...100_000).contains(published), "--published", "it is 16 to 100000")
        try HostingError.require((0...86_400).contains(patience), "--patience", "it is 0 to 86400 seconds")
    }
}
