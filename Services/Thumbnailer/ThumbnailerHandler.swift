import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel

/// Dispatches each request to the responsible service.
struct ThumbnailerHandler: RequestHandler {
    let images: ImageRequestService
    let data: ImageDataService
    let sheets: ContactSheetService
    let videos: VideoService
    let livePhotos: LivePhotoService
    let exports: VideoExports
    let caches: CachingManagers
    /// Returns the assets of a request that an identity with a limited grant does not see.
    let hiddenAssets: @Sendable (_ identity: String, [ObjectID]) async throws(RPCError) -> [ObjectID]
    let state: ServiceState

    func limits(of method: String) -> MethodLimits { ThumbnailerRequest.limits(of: method) }

    @concurrent
    func handle(_ incoming: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        let identity = context.identity
        let request = try ThumbnailerRequest(method: incoming.method, params: incoming.params)
        var unseen: Set<ObjectID> = []
        if let identity = context.limitedClient {
            let named = request.viewedAssets
            // The catalog accepts at most 1000 assets in one request.
            for start in stride(from: 0, to: named.count, by: 1000) {
                unseen.formUnion(try await hiddenAssets(identity, Array(named[start..<min(start + 1000, named.count)])))
            }
            if let asset = request.viewedAsset, unseen.contains(asset) { throw RPCError.assetNotFound(asset) }
        }
        switch request {
        case .image(let image): return try await images.reply(to: image, context)
        case .data(let image): return try await data.data(image, context)
        case .sheet(let sheet): return try await sheets.sheet(sheet, for: context.limitedClient, without: unseen)
        case .frames(let frames): return try await videos.frames(frames, context)
        case .livePhoto(let photo): return try await livePhotos.request(photo, context)
        case .playback(let video): return Reply(try await videos.playback(video, context).json)
        case .videoAsset(let video): return Reply(try await videos.asset(video, context).json)
        case .readVideo(let range): return try await videos.read(range, context)
        case .exportVideo(let video): return Reply(try await exports.begin(video, context).json)
        case .exportStatus(let export): return Reply(try await exports.wait(export, identity: identity).json)
        case .cancelExport(let export): try exports.cancel(export, identity: identity)
        case .openCache(let cache): return Reply(try caches.open(cache, identity: identity).json)
        case .configureCache(let cache): try caches.configure(cache, identity: identity)
        case .startCaching(var images):
            images.images.assets.removeAll(where: unseen.contains)
            try caches.start(images, identity: identity)
        case .stopCaching(let images): try caches.stop(images, identity: identity)
        case .stopAllCaching(let cache): try caches.stopAll(cache, identity: identity)
        case .cacheStatus(let cache): return Reply(try caches.status(cache, identity: identity).json)
        case .closeCache(let cache): try caches.close(cache, identity: identity)
        case .discover: return Reply(state.document)
        case .health: return Reply(await state.health().json)
        case .figures: return Reply(await state.counts())
        }
        return Reply(EmptyResult().json)
    }

    /// Returns the response at once if the image is in memory and its asset is known to be unchanged.
    func replyAtOnce(to request: IncomingRequest, _ context: RequestContext) -> Reply? {
        guard request.method == ImageRequest.method,
            case .image(let image)? = try? ThumbnailerRequest(method: request.method, params: request.params)
        else { return nil }
        return images.cachedReply(to: image, context)
    }
}

extension RequestContext {
    /// The caller's identity if it does not see the whole library; nil for all others.
    var limitedClient: String? {
        guard let cachedPermission, !Permission(byte: cachedPermission.value).seesEverything else { return nil }
        return identity
    }
}

extension ThumbnailerRequest {
    /// The assets that are named in a request.
    fileprivate var viewedAssets: [ObjectID] {
        switch self {
        case .sheet(let sheet): sheet.assets
        case .startCaching(let images): images.images.assets
        default: viewedAsset.map { [$0] } ?? []
        }
    }

    /// The asset of a request that has exactly one; nil for all others.
    fileprivate var viewedAsset: ObjectID? {
        switch self {
        case .image(let image): image.asset
        case .data(let image): image.asset
        case .frames(let frames): frames.asset
        case .livePhoto(let photo): photo.asset
        case .playback(let video): video.asset
        case .videoAsset(let video): video.asset
        case .readVideo(let range): range.asset
        case .exportVideo(let video): video.asset
        default: nil
        }
    }
}
