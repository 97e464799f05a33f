import Hosting
import Messaging

/// What an editor is started with, checked.
struct EditorConfiguration: Sendable {
    /// Where it answers requests.
    var address: EndpointAddress
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
    /// Bytes of a render that travels with its transaction; a larger one is uploaded before it.
    var largestAttachment: Int = 7 << 20
    /// The workers' program; nil for this one.
    var executable: String?
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
        guard (1...64).contains(workers) else { throw .badSetting(source: "--workers", reason: "it is 1 to 64") }
        guard (1...100_000).contains(queue) else { throw .badSetting(source: "--queue", reason: "it is 1 to 100000") }
        guard queuePerAsset >= 1 else {
            throw .badSetting(source: "--queue-per-asset", reason: "it is 1 or more")
        }
    }
}
