import Contracts
import Hosting
import JSONValue
import Messaging
import ObjectStorage
import PhotoModel
import Storage

/// Implements `resource.download` and the methods `storage.*`.
struct StorageService: Sendable {
    let store: LibraryStore
    let resources: ResourceStore
    let fetches: FetchService
    let originals: Originals

    /// The number of objects whose state is read together.
    private static let page = 100

    // MARK: Downloads

    func download(
        _ request: DownloadResource,
        _ context: RequestContext,
        view: LimitedView?
    ) async throws -> DownloadResource.Result {
        let asset = try await store.read { reader in
            try view?.contains(request.asset, reader) == false ? nil : reader.assets.asset(request.asset)
        }
        guard let asset else { throw ResourceError.noAsset(request.asset) }
        let requestedDigest = request.digest?.lowercased()
        let named = requestedDigest.map { digest in asset.resources.first { $0.digest == digest } }
        guard let resource = named ?? asset.resource(request.type), let digest = ResourceDigest(resource.digest) else {
            if requestedDigest != nil { throw ResourceError.unknownDigest(asset.id) }
            throw ResourceError.noResource(asset.id, request.type, available: asset.resources.map(\.type))
        }
        let opened = try await originals.opener.open(
            digest,
            isNetworkAccessAllowed: request.isNetworkAccessAllowed,
            context
        )
        return DownloadResource.Result(resource: resource, isDownloaded: opened.isDownloaded)
    }

    // MARK: Status

    func status(_ request: StorageStatus) async throws -> StorageStatus.Result {
        var status = StorageStatus.Result()
        let resources = resources
        let files = try await originals.opener.blockingIO.run(.long) {
            var (count, bytes) = (0, Int64(0))
            try resources.forEachFile { file in
                count += 1
                bytes += file.size
            }
            return (count, bytes)
        }
        (status.localCount, status.localBytes) = files
        guard let remote = originals.remote else { return status }
        let (counts, jobs) = try await store.read { (try $0.uploadStates.counts(), try $0.uploadJobs.openCounts()) }
        (status.waitingJobCount, status.runningJobCount) = jobs
        (status.remoteCount, status.remoteBytes) = (counts.remote, counts.remoteBytes)
        status.waitingCount = counts.waiting
        status.failedCount = counts.failed
        status.keptCount = counts.kept
        status.deletingCount = counts.deleting
        remote.describe(&status)
        if status.problem == nil, counts.failed > 0,
            let failure = try await store.read({ try $0.uploadStates.latestFailure() })
        {
            (status.problem, status.message, status.since) = (failure.problem, failure.message, failure.date)
        }
        return status
    }

    func retry(_ request: RetryStorage) async throws -> RetryStorage.Result {
        let remote = try requireRemoteStorage()
        let count = try await store.changeUploadStates { try $0.retryFailed() }
        remote.wake()
        return RetryStorage.Result(count: count)
    }

    private func requireRemoteStorage() throws -> RemoteStorage {
        guard let remote = originals.remote else { throw ResourceError.noRemoteStorage }
        return remote
    }

    // MARK: Verification

    func verify(_ request: VerifyStorage, _ notifier: Notifier) async throws -> VerifyStorage.Result {
        let remote = try requireRemoteStorage()
        let all = try await store.read { try $0.uploadStates.counts().remote }
        let total = min(all, request.count ?? all)
        var result = VerifyStorage.Result()
        var last: ResourceDigest?
        var position = 0
        while result.checked < total {
            let page = try await store.read { [last] in try $0.uploadStates.remote(after: last, limit: Self.page) }
            guard let end = page.last else { break }
            last = end.digest
            for (digest, size) in page {
                defer { position += 1 }
                // The objects that are checked are spread evenly over all.
                guard result.checked < total, position * total / max(1, all) >= result.checked else { continue }
                try Task.checkCancellation()
                try await verify(digest, size, request, remote, &result)
                result.checked += 1
                let progress: JSONObject = ["done": JSON(result.checked), "total": JSON(total)]
                try await notifier.notify(BackupLibrary.notification, progress)
            }
        }
        if result.repaired > 0 { remote.wake() }
        return result
    }

    private func verify(
        _ digest: ResourceDigest,
        _ size: Int64,
        _ request: VerifyStorage,
        _ remote: RemoteStorage,
        _ result: inout VerifyStorage.Result
    ) async throws {
        do {
            let isIntact = try await remote.isStored(digest, size: size, readsBytes: request.readsBytes)
            guard isIntact != true else { return }
            if isIntact == nil {
                if result.missing.count < VerifyStorage.Result.maxDigests { result.missing.append(digest.text) }
            } else if result.damaged.count < VerifyStorage.Result.maxDigests {
                result.damaged.append(digest.text)
            }
        } catch let error as ObjectStoreError {
            remote.note(error)
            throw ResourceError.notDownloaded(digest, error)
        }
        guard resources.contains(digest) else { return }
        try await store.changeUploadStates { try $0.registerLost(digest) }
        result.repaired += 1
    }

    // MARK: Keeping and releasing

    /// The number of assets whose files are downloaded at the same time. Several keep the connections busy while one
    /// waits for the object store or for a sync of the disk. More would delay the downloads of interactive requests.
    private static let concurrentDownloads = 4

    func keep(_ request: KeepInStorage, _ context: RequestContext) async throws -> KeepInStorage.Result {
        let remote = try requireRemoteStorage()
        var result = KeepInStorage.Result()
        var page = FetchAssets(fetch: request.fetch, count: FetchAssets.maxPage)
        while true {
            let found = try await fetches.assets(page, onlyResources: true)
            page.token = found.token
            page.from += found.assets.count
            let digests = Set(found.assets.flatMap(\.resources).compactMap { ResourceDigest($0.digest) })
            let isKept = request.isKept
            try await store.changeUploadStates { try $0.setKept(isKept, Array(digests)) }
            let transfer = { @Sendable (digest: ResourceDigest) in
                if isKept { return try await downloadIfRemote(digest, context) }
                originals.downloads?.endLease(of: digest)
                return try await remote.release(digest)
            }
            let concurrency = isKept ? Self.concurrentDownloads : 1
            try await withThrowingTaskGroup(of: (count: Int, bytes: Int64).self) { group in
                var rest = found.assets[...]
                func begin() {
                    guard let asset = rest.popFirst() else { return }
                    group.addTask { try await Self.transferFiles(of: asset, transfer) }
                }
                for _ in 0..<concurrency { begin() }
                while let (count, bytes) = try await group.next() {
                    begin()
                    result.count += count
                    result.bytes += bytes
                    result.assets += 1
                    let progress: JSONObject = ["done": JSON(result.assets), "total": JSON(found.count)]
                    try await context.notifier.notify(BackupLibrary.notification, progress)
                }
            }
            if found.assets.isEmpty || page.from >= found.count { return result }
        }
    }

    /// Downloads or removes the local files of an asset.
    ///
    /// - Parameter transfer: returns the bytes that it has downloaded or removed; nil if there was nothing to do
    private static func transferFiles(
        of asset: Asset,
        _ transfer: @Sendable (ResourceDigest) async throws -> Int64?
    ) async throws -> (count: Int, bytes: Int64) {
        var (count, total) = (0, Int64(0))
        for digest in Set(asset.resources.compactMap { ResourceDigest($0.digest) }) {
            try Task.checkCancellation()
            guard let bytes = try await transfer(digest) else { continue }
            count += 1
            total += bytes
        }
        return (count, total)
    }

    /// Downloads bytes that are not on this machine.
    ///
    /// - Returns: their number; nil if they were already local or are not in remote storage
    private func downloadIfRemote(_ digest: ResourceDigest, _ context: RequestContext) async throws -> Int64? {
        guard let downloads = originals.downloads, !resources.contains(digest),
            let size = try await downloads.remoteSize(of: digest)
        else {
            return nil
        }
        _ = try await downloads.download(digest, size: size, for: WorkSource(of: context)) { _ in }
        return size
    }
}
