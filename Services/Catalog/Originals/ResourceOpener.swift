import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Opens stored bytes, and downloads those that are only in remote storage if the request allows network access (S-47).
struct ResourceOpener: Sendable {
    let resources: ResourceStore
    let blockingIO: BlockingIOExecutor
    /// Nil for a library without remote storage.
    let downloads: ResourceDownloads?

    /// Opened bytes.
    struct Opened: Sendable {
        let file: ResourceFile
        /// True if they were downloaded for this request.
        var isDownloaded = false
    }

    /// Opens bytes, after a download if they are only in remote storage.
    ///
    /// - Throws: ``StorageError/notFound(_:)`` for bytes that are neither local nor in remote storage;
    ///   ``ResourceError`` for bytes in remote storage that may not, or cannot, be downloaded
    func open(
        _ digest: ResourceDigest,
        isNetworkAccessAllowed: Bool,
        _ context: RequestContext
    ) async throws -> Opened {
        let (resources, source) = (resources, WorkSource(of: context))
        do {
            return Opened(file: try await blockingIO.run(for: source) { try resources.open(digest) })
        } catch StorageError.notFound(let message) {
            guard let downloads, let size = try await downloads.remoteSize(of: digest) else {
                throw StorageError.notFound(message)
            }
            guard isNetworkAccessAllowed else { throw ResourceError.networkAccessRequired(digest) }
            let notifier = context.notifier
            let lease = try await downloads.download(digest, size: size, for: source) { progress in
                guard context.acceptsNotifications else { return }
                try await notifier.notify(DownloadResource.notification, ["progress": .double(progress)])
            }
            defer { withExtendedLifetime(lease) {} }
            let file = try await blockingIO.run(for: source) { try resources.open(digest) }
            return Opened(file: file, isDownloaded: true)
        }
    }
}
