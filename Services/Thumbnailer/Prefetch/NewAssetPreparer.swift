import Basics
import Contracts
import Foundation
import Glibc
import Hosting
import JSONValue
import Logging
import PhotoClient
import PhotoModel
import Storage
import Synchronization

/// Prepares images of assets that are added or edited, before they are requested.
///
/// It begins with all assets of the library, and then follows the change feed from the token at which they were read.
/// Its position in the feed is saved in the cache's folder, so that changes that are made while the thumbnailer does
/// not run are processed later. It begins again with all assets if the sizes or the renderer have changed, or the cache
/// was deleted.
///
/// The position moves past a change only when the disk cache has the images of its assets, or when they cannot be
/// rendered. It is saved after a sync of the images, so it is never ahead of the images on the disk.
final class NewAssetPreparer: Sendable {
    private let preparer: ImagePreparer
    private let catalog: ServiceClient
    /// Returns the feed after a token.
    private let feed: @Sendable (ChangeToken?) -> ChangeFeed
    private let images: [CachedImages]
    /// The maximum number of assets that are prepared at a time.
    private let maxTasks: Int
    private let disk: RenditionDiskCache
    private let blockingIO: BlockingIOExecutor
    private let path: String
    /// The renderer and the sizes of the images, as the file has them.
    private let imageSet: String
    private let logger: Logger
    private let state = Mutex(State())

    private struct State {
        var position = FeedPosition()
        /// The content of the file; nil if it does not exist.
        var saved: String?
        /// True from a problem with the file or the images until the file is written again.
        var isProblemLogged = false
        /// True if images before the position were lost: they were deleted with the file, or did not reach the disk.
        var isLost = false
        /// Cancels the current ``follow()``.
        var following = CancellationSource()
        var prepared = 0
        var failed = 0
    }

    /// The interval at which the position is saved. If the process is killed, images that were rendered since the last
    /// save are found in the cache.
    private static let saveInterval = Duration.seconds(1)
    /// The maximum number of images that are written before a sync, even if the position does not change.
    private static let maxUnsynced = 1000
    /// The delays between attempts for an asset: each may download the original until the disk is full.
    private static let firstDelay = Duration.seconds(1)
    private static let maxDelay = Duration.seconds(60)

    /// - Parameter sides: the sizes in pixels that the images fit into
    init(
        _ preparer: ImagePreparer,
        catalog: ServiceClient,
        sides: [Int],
        workers: Int,
        blockingIO: BlockingIOExecutor,
        metrics: ThumbnailerMetrics,
        logger: Logger,
        feed: @escaping @Sendable (ChangeToken?) -> ChangeFeed
    ) {
        self.preparer = preparer
        self.catalog = catalog
        self.feed = feed
        self.logger = logger
        self.blockingIO = blockingIO
        disk = preparer.renditions.disk
        path = disk.root + "/prepared"
        imageSet = Self.imageSet(sides)
        // One asset is looked up while another is rendered.
        maxTasks = workers + 1
        images = sides.map { side in
            var images = CachedImages(assets: [], targetSize: .size(width: side, height: side))
            // The local original may have been removed meanwhile.
            images.isNetworkAccessAllowed = true
            return images
        }
        metrics.all.section("newAssets") { [self] in
            state.withLock {
                [
                    "preparing": JSON($0.position.count), "prepared": JSON($0.prepared), "failed": JSON($0.failed),
                    "sequence": .int($0.position.token?.sequence ?? 0),
                ]
            }
        }
    }

    /// Follows the feed until cancelled. If it ends, subscribes again after a pause.
    func run() async {
        let saved = FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
        if let saved, let token = Self.token(in: saved, of: imageSet) {
            state.withLock {
                $0.position.receive(token)
                $0.saved = saved
            }
        }
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await _ in TaskDelay.ticks(every: Self.saveInterval) { await self.save() }
            }
            while !Task.isCancelled {
                let following = CancellationSource()
                self.state.withLock { state in
                    if state.isLost {
                        // The images before the saved position exist, unless the file was deleted.
                        state.position = FeedPosition()
                        let token = state.saved.flatMap { Self.token(in: $0, of: self.imageSet) }
                        if let token { state.position.receive(token) }
                    }
                    state.isLost = false
                    state.following = following
                }
                let problem = await following.run { () -> RPCError? in
                    do throws(RPCError) {
                        try await self.follow()
                        return nil
                    } catch {
                        return error
                    }
                }
                if let problem, !following.isCancelled {
                    self.logger.warning(
                        "the feed of new assets failed; subscribing again",
                        metadata: ["error": "\(problem.message)"]
                    )
                }
                await TaskDelay.retryDelay(.seconds(1))
            }
            group.cancelAll()
        }
        await save()
    }

    /// Prepares the images of all assets if that was not done before, and then those of each change.
    private func follow() async throws(RPCError) {
        if state.withLock({ $0.position.token }) == nil { try await prepareAll() }
        let result: Result<Void, RPCError> = await withTaskGroup(of: Void.self) { group in
            var running = 0
            do throws(RPCError) {
                for try await event in feed(state.withLock { $0.position.token }) {
                    if case .expired = event {
                        state.withLock { $0.position = FeedPosition() }
                        return .success(())
                    }
                    for asset in Self.assets(of: event) {
                        if running == maxTasks { await group.next() } else { running += 1 }
                        let sequence = event.token.sequence
                        state.withLock { $0.position.begin(sequence) }
                        group.addTask {
                            guard await self.prepare(asset) else { return }
                            self.state.withLock { $0.position.end(sequence) }
                        }
                    }
                    state.withLock { $0.position.receive(event.token) }
                }
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    private func prepareAll() async throws(RPCError) {
        var request = FetchAssets(fetch: FetchDescription(.assets), count: Projection.maxIDs)
        request.projection = Projection(members: ["id"])
        var ids: [ObjectID] = []
        while true {
            let page = try await catalog.identifiers(request, deadline: .seconds(30))
            ids += page.ids
            request.token = page.token
            request.from = ids.count
            if page.ids.isEmpty || ids.count >= page.count { break }
        }
        await withTaskGroup(of: Void.self) { group in
            for (index, id) in ids.enumerated() {
                if index >= maxTasks { await group.next() }
                group.addTask { _ = await self.prepare(id) }
            }
        }
        guard !Task.isCancelled, let token = request.token else { return }
        state.withLock { $0.position.receive(token) }
    }

    /// Returns the assets that have new pixels after a change.
    private static func assets(of event: FeedEvent) -> [ObjectID] {
        guard case .change(let record) = event else { return [] }
        return record.assets.filter { $0.before == nil || $0.isContentChanged }.compactMap { $0.after?.id }
    }

    /// Prepares the images of an asset.
    ///
    /// - Returns: false if the task was cancelled before they were prepared
    private func prepare(_ asset: ObjectID) async -> Bool {
        var delay = Self.firstDelay
        while !Task.isCancelled {
            // Repeated while the catalog does not respond, or images cannot be rendered or written.
            guard let prepared = try? await preparer.prepare(asset, images, requiresDisk: true) else {
                await TaskDelay.retryDelay(delay)
                delay = min(delay * 2, Self.maxDelay)
                continue
            }
            // The images are needed only later, and the disk cache has them.
            for plan in prepared.values { preparer.renditions.release(plan) }
            guard !Task.isCancelled else { return false }
            state.withLock {
                $0.prepared += prepared.count
                $0.failed += images.count - prepared.count
            }
            return true
        }
        return false
    }

    // MARK: The file

    /// Returns the second line of the file, with the renderer and the sizes: requests do not find images of another
    /// renderer or of other sizes.
    static func imageSet(_ sides: [Int], rendererVersion: String = RenditionProvider.rendererVersion) -> String {
        ([rendererVersion] + sides.map(String.init)).joined(separator: " ")
    }

    /// Returns the position in the text of a file; nil if it has none yet, or if the file is for another image set.
    static func token(in text: String, of imageSet: String) -> ChangeToken? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.count == 2, lines[1] == imageSet else { return nil }
        return ChangeToken(lines[0])
    }

    private func save() async {
        // If too many other operations wait for the disk, the position is saved by the next call.
        try? await blockingIO.run(.long) { self.saveNow() }
    }

    /// Saves the position after its images have reached the disk; blocks.
    private func saveNow() {
        // Read before the sync, which need not include images that are written meanwhile.
        let (text, isNew) = state.withLock { state in
            let text = "\(state.position.token?.description ?? "")\n\(imageSet)"
            return (text, !state.isLost && text != state.saved)
        }
        if disk.unsyncedCount > (isNew ? 0 : Self.maxUnsynced), let problem = disk.sync() {
            warn("images of new assets did not reach the disk; they are made again", problem)
            return recordLoss { _ in }
        }
        if state.withLock({ $0.saved != nil }), access(path, F_OK) != 0, errno == ENOENT {
            logger.warning("the cache was deleted; the images of all assets are made again")
            return recordLoss { $0.saved = nil }
        }
        guard isNew else { return }
        do throws(StorageError) {
            try DurableFile.replace(path, with: Array(text.utf8))
            state.withLock { state in
                state.saved = text
                state.isProblemLogged = false
            }
        } catch {
            warn("the position of new assets cannot be saved", error.name)
        }
    }

    /// Records that images before the position were lost, and begins again from the saved position.
    private func recordLoss(_ change: (inout State) -> Void) {
        let following = state.withLock { state in
            change(&state)
            state.isLost = true
            return state.following
        }
        following.cancel()
    }

    /// Logs a problem, unless one was logged and persists.
    private func warn(_ message: Logger.Message, _ problem: String) {
        let isNew = state.withLock { state in
            defer { state.isProblemLogged = true }
            return !state.isProblemLogged
        }
        if isNew { logger.warning(message, metadata: ["error": "\(problem)"]) }
    }
}
