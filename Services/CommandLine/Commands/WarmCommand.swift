import Basics
import ArgumentParser
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// `safelight warm`
struct WarmCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "warm",
        abstract: "Fill the image cache in advance for the assets of a fetch.",
        discussion:
            "Interactive requests have priority over this command. All sizes of an asset are rendered from a single "
            + "decode."
    )

    @OptionGroup var fetch: FetchOptions

    @Option(help: ArgumentHelp("Size in pixels to fit into, or max. May be repeated.", valueName: "WxH|N|max"))
    var size: [String] = ["256"]

    @Flag(help: "Enlarge images that are smaller than this size, like `thumb --exact`.")
    var exact = false

    @Option(help: "Image format: jpeg, webp, png or avif.")
    var format = DeliveredFormat.jpeg

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.catalog, .thumbnailer] }
    var reportsAtSignals: Bool { true }

    /// The number of assets that are requested at a time.
    private static let batchSize = 500
    /// The maximum number of failures whose reason is requested.
    private static let maxReasons = 20
    private static let pollInterval = Duration.milliseconds(100)

    func validate() throws {
        guard !size.isEmpty, size.count <= 8 else { throw ValidationError("give 1 to 8 sizes") }
    }

    func check() throws {
        _ = try fetch.fetch(of: nil)
        for text in size { _ = try ThumbCommand.size(text) }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let fetch = try await fetch.fetch(in: library)
        let sizes = try size.map { try ThumbCommand.size($0) }
        var progress = ProgressReporter(output: output)
        var pages = IdentifierPages(fetch, in: library)
        var page = try await pages.next()
        progress.begin(total: (page?.count ?? 0) * sizes.count, "image")
        let caches = InstanceCaches(library)
        var (prepared, failed) = (0, 0)
        var failedAssets: [ObjectID] = []
        do {
            while let ids = page?.ids {
                for batch in BatchedChanges.split(ids, by: Self.batchSize) {
                    let states = try await warm(batch, sizes, caches) { progress.update(prepared + failed + $0) }
                    for status in states {
                        prepared += status.prepared
                        failed += status.failed
                        failedAssets += status.failedAssets
                    }
                }
                page = try await pages.next()
            }
        } catch {
            guard prepared > 0 else { throw error }
            progress.clear()
            throw CommandFailure(error, after: prepared, of: progress.total, "image")
        }
        await caches.close()
        progress.clear()
        for asset in failedAssets.prefix(Self.maxReasons) {
            guard try await report(asset, sizes, in: library, &progress) else { break }
        }
        if failedAssets.count > Self.maxReasons {
            output.note("\(failedAssets.count - Self.maxReasons) more have images that could not be rendered")
        }
        let (ready, broken) = (prepared, failed)
        try output.result(["prepared": JSON(ready), "failed": JSON(broken)]) {
            ["\(QuantityFormatter.count(ready, "image")) cached, \(broken) failed"]
        }
        if broken > 0 { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }

    /// Requests the images of an asset and prints the error of the first one that cannot be rendered.
    ///
    /// - Returns: false if a service does not respond, so that nothing is requested for the other assets
    private func report(
        _ asset: ObjectID,
        _ sizes: [TargetSize],
        in library: PhotoLibrary,
        _ progress: inout ProgressReporter
    ) async throws -> Bool {
        for size in sizes {
            do throws(RPCError) {
                var request = ImageRequest(asset: asset, targetSize: size, resizeMode: exact ? .exact : .fast)
                request.isNetworkAccessAllowed = downloads.download
                _ = try await library.image(request, deadline: downloads.deadline(.seconds(120)))
            } catch {
                let name = try? await library.namedAsset(asset, members: AssetMembers.name).originalFilename
                progress.report(
                    CommandFailure(error, of: (name ?? asset.text).printable)
                )
                return !error.meansNoResponse
            }
        }
        return true
    }

    /// Caches the images of some assets and waits until all are done. If a thumbnailer is restarted meanwhile, begins
    /// again with new caches: images that are cached already are not rendered again.
    private func warm(
        _ assets: [ObjectID],
        _ sizes: [TargetSize],
        _ caches: InstanceCaches,
        _ onProgress: (Int) -> Void
    ) async throws -> [CacheStatus.Result] {
        try await caches.library.thumbnailer.repeating(within: nil) { _ throws(RPCError) in
            do throws(RPCError) {
                return try await warm(try await caches.divide(assets), sizes, onProgress)
            } catch {
                caches.forget()
                guard error.errorCode == .handleExpired else { throw error }
                throw ErrorCode.connectionLost.error("the thumbnailer was restarted again and again")
            }
        }
    }

    /// Starts caching and waits until all images are done. The caches are polled: they have counters and no events.
    private func warm(
        _ parts: [(cache: InstanceCaches.Cache, assets: [ObjectID])],
        _ sizes: [TargetSize],
        _ onProgress: (Int) -> Void
    ) async throws(RPCError) -> [CacheStatus.Result] {
        for (cache, assets) in parts {
            for size in sizes {
                var images = CachedImages(assets: assets, targetSize: size)
                images.resizeMode = exact ? .exact : .fast
                images.format = format
                images.isNetworkAccessAllowed = downloads.download
                _ = try await cache.thumbnailer.ask(StartCaching(cache: cache.id, images: images))
            }
        }
        while true {
            var states: [CacheStatus.Result] = []
            for (cache, _) in parts {
                states.append(try await cache.thumbnailer.ask(CacheStatus(cache: cache.id)).result)
            }
            onProgress(states.reduce(0) { $0 + $1.prepared + $1.failed })
            if states.allSatisfy({ $0.waiting + $0.preparing == 0 }) {
                for (cache, _) in parts { _ = try await cache.thumbnailer.ask(StopAllCaching(cache: cache.id)) }
                return states
            }
            await TaskDelay.pollInterval(Self.pollInterval)
        }
    }
}

/// The caches of one command, one for each thumbnailer that gets assets.
private final class InstanceCaches {
    struct Cache {
        let thumbnailer: ServiceClient
        let id: String
    }

    let library: PhotoLibrary
    private var opened: [EndpointAddress: Cache] = [:]

    init(_ library: PhotoLibrary) { self.library = library }

    /// Returns the assets grouped by the thumbnailer that renders their images, with its cache.
    func divide(_ assets: [ObjectID]) async throws(RPCError) -> [(cache: Cache, assets: [ObjectID])] {
        var parts: [(Cache, [ObjectID])] = []
        for (thumbnailer, assets) in await library.thumbnailer.divide(assets) {
            var cache = opened[thumbnailer.address]
            if cache == nil {
                cache = Cache(thumbnailer: thumbnailer, id: try await thumbnailer.ask(OpenCache()).result.cache)
                opened[thumbnailer.address] = cache
            }
            if let cache { parts.append((cache, assets)) }
        }
        return parts
    }

    /// Forgets the caches, so that new ones are opened: a thumbnailer that was restarted has none of them.
    func forget() { opened = [:] }

    /// Closes the caches, which would otherwise end with their lease.
    func close() async {
        for cache in opened.values { _ = try? await cache.thumbnailer.ask(CloseCache(cache: cache.id)) }
    }
}
