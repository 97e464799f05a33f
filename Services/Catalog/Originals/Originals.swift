import Hosting
import Logging
import Storage

/// The parts that open, download and upload the bytes of the library, which are on this machine, in remote storage, or
/// both.
struct Originals: Sendable {
    let opener: ResourceOpener
    /// Nil without remote storage.
    let remote: RemoteStorage?
    let downloads: ResourceDownloads?
    let uploader: UploadService?

    init(
        _ configuration: CatalogConfiguration,
        _ environment: CatalogEnvironment,
        store: LibraryStore,
        resources: ResourceStore,
        blockingIO: BlockingIOExecutor,
        tail: ChangeLogTail,
        logger: Logger
    ) async throws {
        guard let options = configuration.remoteStorage else {
            (remote, downloads, uploader) = (nil, nil, nil)
            opener = ResourceOpener(resources: resources, blockingIO: blockingIO, downloads: nil)
            if store.election?.refusal == nil { try await store.changeUploadStates { try $0.end() } }
            return
        }
        let remote = RemoteStorage(
            options,
            store: store,
            resources: resources,
            blockingIO: blockingIO,
            now: environment.now,
            logger: logger
        )
        let downloads = ResourceDownloads(remote)
        self.remote = remote
        self.downloads = downloads
        opener = ResourceOpener(resources: resources, blockingIO: blockingIO, downloads: downloads)
        uploader = UploadService(
            remote,
            downloads: downloads,
            tail: tail,
            clock: environment.clock,
            collectAfter: Int64(configuration.collectAfterSeconds) * 1_000_000
        )
    }
}
