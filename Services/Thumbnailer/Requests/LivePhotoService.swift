import Contracts
import JSONValue
import Messaging
import PhotoModel

/// Handles `livePhoto.request`. The still and the video are prepared at the same time, and the response has both
/// (T-47).
struct LivePhotoService: Sendable {
    let images: ImageRequestService
    let videos: VideoService

    func request(_ request: LivePhotoRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        let found = try await images.assets.resolve([request.asset], atLeast: request.atLeast)
        let asset = try ImageRequestService.asset(request.asset, of: found)
        guard asset.resource(.photo) != nil, asset.resource(.pairedVideo) != nil else {
            throw .noLivePhoto(asset)
        }
        let video = try VideoService.resource(of: asset, version: request.version == .current ? .current : .original)
        if let refusal = found.rpcError(of: video.digest, asset) { throw refusal }
        // Only one progress is reported: that of the video, which has more bytes.
        let isVideoLocal = videos.originals.isLocal(video.digest)
        let mode = request.still.effectiveDeliveryMode(acceptsNotifications: context.acceptsNotifications)
        let (still, playback) = await withTaskGroup(of: Part.self) { group in
            group.addTask {
                do throws(RPCError) {
                    let response = try await images.response(
                        request.still,
                        found,
                        context,
                        reportsProgress: isVideoLocal
                    )
                    return .still(.success(response))
                } catch { return .still(.failure(error)) }
            }
            group.addTask {
                do throws(RPCError) {
                    try await videos.originals.require(
                        video.digest,
                        of: asset.id,
                        isNetworkAccessAllowed: request.isNetworkAccessAllowed,
                        context
                    )
                    return .video(.success(try await videos.playbackResult(video, of: asset, found)))
                } catch {
                    return .video(.failure(error))
                }
            }
            var (still, playback): (Outcome<ImageResponse>?, Outcome<VideoPlayback.Result>?)
            // No degraded still may follow the response, so both are awaited.
            for await part in group {
                switch part {
                case .still(let outcome):
                    still = outcome
                    if case .failure = outcome { group.cancelAll() }
                case .video(let outcome):
                    playback = outcome
                    // A degraded still is sent before the error of a download.
                    if case .failure(let error) = outcome, mode != .opportunistic || !error.isOfDownload {
                        group.cancelAll()
                    }
                }
            }
            return (still, playback)
        }
        // If one failed, the other was cancelled. The error of the one that failed is thrown.
        if case .failure(let error)? = playback, error.errorCode != .userCancelled { throw error }
        guard let still = try still?.get(), let playback = try playback?.get() else {
            throw .noRendition
        }
        let result = LivePhotoRequest.Result(still: still.description, video: playback)
        return try await ImageReplyBuilder.reply(result.json, delivering: still.bytes, context)
    }

    private typealias Outcome<Value> = Result<Value, RPCError>

    private enum Part: Sendable {
        case still(Outcome<ImageResponse>)
        case video(Outcome<VideoPlayback.Result>)
    }
}

extension RPCError {
    /// True if the bytes are only in remote storage, and cannot or may not be downloaded.
    fileprivate var isOfDownload: Bool { errorCode == .networkAccessRequired || errorCode == .networkError }
}
