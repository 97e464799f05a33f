import Contracts
import JSONValue
import Messaging
import PhotoModel

/// Handles `livePhoto.request`: still and video are prepared at the same time, and the response has both (T-47).
struct LivePhotoService: Sendable {
    let images: ImageRequestService
    let videos: VideoService

    func request(_ request: LivePhotoRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        let answer = try await images.assets.resolve([request.asset], atLeast: request.atLeast)
        let asset = try ImageRequestService.asset(request.asset, of: answer)
        guard asset.resource(.photo) != nil, asset.resource(.pairedVideo) != nil else {
            throw .noLivePhoto(asset)
        }
        let video = try VideoService.resource(of: asset, version: request.version == .current ? .current : .original)
        if let refusal = answer.rpcError(of: video.digest, asset) { throw refusal }
        // A client can show one progress: that of the video, which has more bytes.
        let isVideoLocal = videos.originals.isLocal(video.digest)
        let mode = request.still.effectiveDeliveryMode(acceptsNotifications: context.acceptsNotifications)
        let (still, ticket) = await withTaskGroup(of: Part.self) { group in
            group.addTask {
                do throws(RPCError) {
                    let response = try await images.response(
                        request.still,
                        answer,
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
                    return .video(.success(try await videos.ticket(video, of: asset, answer)))
                } catch {
                    return .video(.failure(error))
                }
            }
            var (still, ticket): (Outcome<ImageResponse>?, Outcome<VideoPlayback.Result>?)
            // No degraded still may follow the response, so both are awaited.
            for await part in group {
                switch part {
                case .still(let outcome):
                    still = outcome
                    if case .failure = outcome { group.cancelAll() }
                case .video(let outcome):
                    ticket = outcome
                    // A degraded still comes before the error of a download.
                    if case .failure(let error) = outcome, mode != .opportunistic || !error.isOfDownload {
                        group.cancelAll()
                    }
                }
            }
            return (still, ticket)
        }
        // Where one failed, the other was cancelled: the first failure counts.
        if case .failure(let error)? = ticket, error.errorCode != .userCancelled { throw error }
        guard let still = try still?.get(), let ticket = try ticket?.get() else {
            throw .noRendition
        }
        let result = LivePhotoRequest.Result(still: still.description, video: ticket)
        return try await ImageReplyBuilder.send(result.json, still.bytes, context)
    }

    private typealias Outcome<Value> = Result<Value, RPCError>

    private enum Part: Sendable {
        case still(Outcome<ImageResponse>)
        case video(Outcome<VideoPlayback.Result>)
    }
}

extension RPCError {
    /// The bytes are in remote storage only, and cannot or may not be downloaded.
    fileprivate var isOfDownload: Bool { errorCode == .networkAccessRequired || errorCode == .networkError }
}
