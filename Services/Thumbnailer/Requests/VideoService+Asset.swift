import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage
import Video

extension VideoService {
    /// Handles `video.asset`.
    func asset(_ request: VideoAsset, _ context: RequestContext) async throws(RPCError) -> VideoAsset.Result {
        let found = try await assets.resolve([request.asset], atLeast: request.atLeast)
        let asset = try ImageRequestService.asset(request.asset, of: found)
        let video = try Self.resource(of: asset, version: request.version)
        if let refusal = found.rpcError(of: video.digest, asset) { throw refusal }
        try await originals.require(
            video.digest,
            of: asset.id,
            isNetworkAccessAllowed: request.isNetworkAccessAllowed,
            context
        )
        let structure = try await streams.structure(video)
        var result = VideoAsset.Result(asset: asset.id, resource: video)
        result.contentRevision = asset.contentRevision
        result.sequence = found.sequence
        result.photoTime = structure.photoTime
        result.tracks = structure.tracks
        result.duration = structure.duration
        result.sources = [video]
        result.timeMap = [Self.whole(structure.duration)]
        let edit = video.isRender ? try await streams.edit(of: asset, blockingIO) : nil
        if !video.isRender || edit?.keepsTimes == true, !structure.slowMotion.isEmpty {
            result.timeMap = structure.slowMotion
            result.duration = structure.slowMotion.reduce(0) { $0 + $1.duration }
        } else if let edit {
            result.isRendered = true
            result.timeMap = [
                VideoAsset.Segment(
                    start: 0,
                    duration: structure.duration,
                    sourceStart: edit.start,
                    sourceDuration: Int64((Double(structure.duration) * edit.speed).rounded()),
                    rate: edit.speed
                )
            ]
        }
        result.audioCurve = [VideoAsset.Volume(time: 0, volume: edit?.volume ?? 1)]
        if video.isRender, edit?.isOnRender == false, let original = asset.originalVideo {
            result.sources.append(original)
        }
        return result
    }

    private static func whole(_ duration: Int64) -> VideoAsset.Segment {
        VideoAsset.Segment(start: 0, duration: duration, sourceStart: 0, sourceDuration: duration, rate: 1)
    }
}

extension VideoStreams {
    /// Returns the changes of time and volume of the current edit of an asset; nil if another program made it.
    func edit(of asset: AssetSummary, _ blockingIO: BlockingIOExecutor) async throws(RPCError) -> VideoEditTimes? {
        guard let resource = asset.resource(.adjustmentData) else { return nil }
        let file = try open(resource.digest)
        do {
            let bytes = try await blockingIO.run(for: .service) {
                try file.readAll(limit: Int64(AdjustmentData.maxBytes))
            }
            // The adjustment data of another program cannot be parsed.
            return (try? JSON(parsing: bytes)).flatMap { try? AdjustmentList(json: $0) }.map { VideoEditTimes($0) }
        } catch let error as StorageError {
            throw .unreadableBytes(error)
        } catch {
            throw .requestCancelled
        }
    }
}

/// The changes of time and volume in this program's edit of a video, relative to its original.
struct VideoEditTimes: Sendable, Hashable {
    /// The part of the original in microseconds; a nil end is the end of the video.
    var start: Int64 = 0
    var end: Int64?
    /// The playback speed, as a factor.
    var speed = 1.0
    /// The volume, as a factor.
    var volume = 1.0
    /// True if the edit is based on another program's render, which is not stored.
    var isOnRender = false

    init(_ list: AdjustmentList) {
        isOnRender = list.isOnRender
        volume = list.livePhoto?.audioVolume ?? 1
        for operation in list.operations where !operation.isNeutral {
            switch operation.kind {
            case .timeRange:
                start = Int64((operation.number("start") * 1e6).rounded())
                end = Int64((operation.number("end") * 1e6).rounded())
            case .speed: speed *= operation.number()
            case .volume: volume *= operation.number()
            default: break
            }
        }
        // The editor clamps them too.
        speed = min(VideoEdit.speeds.upperBound, max(VideoEdit.speeds.lowerBound, speed))
        volume = min(VideoEdit.volumes.upperBound, max(VideoEdit.volumes.lowerBound, volume))
    }

    /// True if the edit does not change the times of the original, so that slow motion is preserved.
    var keepsTimes: Bool { start == 0 && end == nil && speed == 1 }
}

extension AssetResource {
    /// True for the render of an edit.
    var isRender: Bool { type == .fullSizeVideo || type == .fullSizePairedVideo }
}

extension AssetSummary {
    /// The imported video, or the video of a Live Photo.
    var originalVideo: AssetResource? { resource(.video) ?? resource(.pairedVideo) }
}
