import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Handles requests for frames and streams of videos.
struct VideoService: Sendable {
    let assets: AssetResolver
    let renditions: RenditionProvider
    let streams: VideoStreams
    let exports: VideoExports
    let blockingIO: BlockingIOExecutor
    let originals: OriginalFiles

    // MARK: Frames

    /// Handles `image.frames`. The frames are rendered together, so that several of them need only one pass over the
    /// file.
    func frames(_ request: ImageFrames, _ context: RequestContext) async throws(RPCError) -> Reply {
        let found = try await assets.resolve([request.asset], atLeast: request.atLeast)
        let asset = try ImageRequestService.asset(request.asset, of: found)
        let image = ImageRequest(
            asset: request.asset,
            targetSize: request.targetSize,
            contentMode: request.contentMode,
            resizeMode: request.resizeMode,
            version: request.version,
            format: request.format,
            quality: request.quality
        )
        let resource = try RenditionPlan.resource(of: asset, version: request.version)
        guard resource.isVideo else { throw RPCError.noVideo(asset) }
        let (times, tolerance) = try Self.times(request, duration: resource.duration ?? 0)
        let first = try RenditionPlan(image, of: asset, for: context.limitedClient)
        if let refusal = found.rpcError(of: first, asset) { throw refusal }
        var plans: [RenditionPlan] = []
        for (index, time) in times.enumerated() {
            var plan = first
            plan.frame = try VideoFrameChoice(
                time,
                tolerance: tolerance,
                of: resource,
                parameter: "times.\(index)"
            )
            plans.append(plan)
        }
        if plans.contains(where: { renditions.cached($0, urgency: .prefetch) == nil }) {
            try await originals.require(
                resource.digest,
                of: asset.id,
                isNetworkAccessAllowed: request.isNetworkAccessAllowed,
                context
            )
        }
        var (frames, attachments): ([ImageFrames.Frame], [Bytes]) = ([], [])
        var mimeType = ""
        for (time, outcome) in zip(times, try await outcomes(plans, request)) {
            var frame = ImageFrames.Frame(time: time)
            switch outcome {
            case .success(let provided):
                frame.frameTime = provided.rendition.frameTime
                frame.pixelWidth = provided.rendition.pixelWidth
                frame.pixelHeight = provided.rendition.pixelHeight
                frame.size = provided.rendition.bytes.count
                frame.isCacheHit = provided.isCacheHit
                mimeType = provided.rendition.mimeType
                attachments.append(provided.rendition.bytes)
            case .failure(let error):
                frame.error = ["name": .string(error.name), "message": .string(error.message)]
            }
            frames.append(frame)
        }
        let result = ImageFrames.Result(
            asset: asset.id,
            contentRevision: asset.contentRevision,
            sequence: found.sequence,
            mimeType: mimeType,
            frames: frames
        )
        return Reply(result.json, attachments: attachments)
    }

    /// The maximum number of frames of one request that are rendered at a time: the frames of one pass over the file.
    private static let maxConcurrentFrames = RenditionProvider.batchSize

    /// Returns the outcome of each frame.
    ///
    /// - Throws: the first error of the service, or `limit_exceeded` as soon as the frames do not fit into a response;
    ///   the others are cancelled then, and no more are rendered
    private func outcomes(
        _ plans: [RenditionPlan],
        _ request: ImageFrames
    ) async throws(RPCError) -> [Result<ProvidedRendition, RPCError>] {
        typealias Outcome = (index: Int, result: Result<ProvidedRendition, RPCError>)
        let (outcomes, refusal) = await withTaskGroup(of: Outcome.self) { group in
            var outcomes = [Result<ProvidedRendition, RPCError>?](repeating: nil, count: plans.count)
            var (next, total) = (0, 0)
            var refusal: RPCError?
            func begin() {
                guard next < plans.count else { return }
                let (index, plan) = (next, plans[next])
                next += 1
                group.addTask { (index, await rendition(of: plan, request)) }
            }
            for _ in 0..<Self.maxConcurrentFrames { begin() }
            for await outcome in group where refusal == nil {
                switch outcome.result {
                case .success(let provided):
                    let size = provided.rendition.bytes.count
                    total += size
                    if total > ImageDelivery.maxAttachedBytes || size > ReadResource.maxReplyBytes {
                        refusal = RPCError.framesTooLarge(bytes: total)
                    }
                case .failure(let error):
                    if error.concernsService { refusal = error }
                }
                if refusal == nil {
                    outcomes[outcome.index] = outcome.result
                    begin()
                } else {
                    group.cancelAll()
                    outcomes = []
                }
            }
            return (outcomes.compactMap { $0 }, refusal)
        }
        if let refusal { throw refusal }
        return outcomes
    }

    /// Returns the image of a frame, or the error that prevented it.
    private func rendition(
        of plan: RenditionPlan,
        _ request: ImageFrames
    ) async -> Result<ProvidedRendition, RPCError> {
        if let cached = renditions.cached(plan) { return .success(cached) }
        do throws(RPCError) {
            let provided = try await renditions.rendered(
                plan,
                from: originals,
                of: request.asset,
                isNetworkAccessAllowed: request.isNetworkAccessAllowed
            )
            return .success(provided)
        } catch {
            return .failure(error)
        }
    }

    /// Returns the times of a request and the tolerance.
    private static func times(
        _ request: ImageFrames,
        duration: Int64
    ) throws(RPCError) -> (times: [Int64], tolerance: Int64) {
        guard (request.count == nil) != request.times.isEmpty else {
            throw .framesNotChosen(parameter: request.count == nil ? "times" : "count")
        }
        guard let count = request.count else { return (request.times, request.tolerance ?? 0) }
        let part = max(0, duration) / Int64(count)
        return ((0..<Int64(count)).map { $0 * part + part / 2 }, request.tolerance ?? part / 2)
    }

    // MARK: Streams

    /// Handles `video.playback`.
    func playback(
        _ request: VideoPlayback,
        _ context: RequestContext
    ) async throws(RPCError) -> VideoPlayback.Result {
        let found = try await assets.resolve([request.asset], atLeast: request.atLeast)
        let asset = try ImageRequestService.asset(request.asset, of: found)
        let video = try Self.resource(of: asset, version: request.version)
        try await originals.require(
            video.digest,
            of: asset.id,
            isNetworkAccessAllowed: request.isNetworkAccessAllowed,
            context
        )
        return try await playbackResult(video, of: asset, found)
    }

    /// Returns the description of a video of an asset with which a client can play it.
    func playbackResult(
        _ resource: AssetResource,
        of asset: AssetSummary,
        _ found: AssetResolver.ResolvedAssets
    ) async throws(RPCError) -> VideoPlayback.Result {
        if let refusal = found.rpcError(of: resource.digest, asset) { throw refusal }
        let layout = try await streams.layout(resource)
        let description = layout.description
        var result = VideoPlayback.Result(asset: asset.id, resource: resource)
        result.contentRevision = asset.contentRevision
        result.sequence = found.sequence
        result.stream = resource.stream
        result.size = resource.size
        result.isFastStart = description.isFastStart
        result.isReordered = layout.index != nil
        result.mimeType = description.mimeType
        result.duration = description.duration
        result.pixelWidth = description.pixelWidth
        result.pixelHeight = description.pixelHeight
        result.rotation = description.rotation
        result.frameRate = description.frameRate
        result.isHDR = description.isHDR
        result.primaries = description.primaries
        result.transfer = description.transfer
        result.matrix = description.matrix
        result.tracks = description.tracks
        return result
    }

    /// Handles `video.read`.
    func read(_ request: ReadVideo, _ context: RequestContext) async throws(RPCError) -> Reply {
        let found = try await assets.resolve([request.asset], atLeast: nil)
        let asset = try ImageRequestService.asset(request.asset, of: found)
        if let file = try exports.file(request.stream, of: asset.id, identity: context.identity) {
            return try await read(request, context, size: file.size) { offset, count throws(StorageError) in
                try file.read(offset: offset, count: count)
            }
        }
        guard let resource = asset.resources.first(where: { $0.isPlayable && $0.stream == request.stream }) else {
            throw .streamNotFound(asset)
        }
        if let refusal = found.rpcError(of: resource.digest, asset) { throw refusal }
        try await originals.require(
            resource.digest,
            of: asset.id,
            isNetworkAccessAllowed: request.isNetworkAccessAllowed,
            context
        )
        let layout = try await streams.layout(resource)
        let file = try streams.open(resource.digest)
        guard resource.offset == nil ? file.size == resource.size : layout.range.upperBound <= file.size else {
            throw RPCError.damagedBytes
        }
        return try await read(request, context, size: resource.size) { offset, count throws(StorageError) in
            try VideoStreams.read(layout, offset: offset, count: count) { start, length throws(StorageError) in
                try file.read(offset: start, count: length)
            }
        }
    }

    /// Sends a range of a stream.
    private func read(
        _ request: ReadVideo,
        _ context: RequestContext,
        size: Int64,
        _ bytes: @escaping @Sendable (_ offset: Int64, _ count: Int) throws(StorageError) -> Bytes
    ) async throws(RPCError) -> Reply {
        guard request.offset <= size else {
            throw .rangeAfterEnd(offset: request.offset, size: size)
        }
        let length = min(request.length ?? .max, size - request.offset)
        let isStreamed = context.acceptsNotifications && context.credit != nil
        guard isStreamed || length <= Int64(ReadResource.maxReplyBytes) else { throw .rangeTooLong(length, size: size) }
        let client = WorkSource(of: context)
        var (sent, attachments): (Int64, [Bytes]) = (0, [])
        repeat {
            let (position, remaining) = (request.offset + sent, length - sent)
            let count = Int(isStreamed ? min(remaining, Int64(ReadResource.chunkBytes)) : remaining)
            let bytes = try await readPart(position, count, client, bytes)
            guard bytes.count == count else { throw RPCError.damagedBytes }
            if isStreamed {
                try await context.notifier.notify(
                    ReadResource.notification,
                    ["offset": .int(position)],
                    attachments: [bytes]
                )
            } else {
                attachments = [bytes]
            }
            sent += Int64(count)
        } while sent < length
        let result = ReadVideo.Result(offset: request.offset, length: sent, size: size)
        return Reply(result.json, attachments: attachments)
    }

    private func readPart(
        _ offset: Int64,
        _ count: Int,
        _ client: BlockingIOExecutor.Source,
        _ read: @escaping @Sendable (_ offset: Int64, _ count: Int) throws(StorageError) -> Bytes
    ) async throws(RPCError) -> Bytes {
        do {
            return try await blockingIO.run(for: client) { try read(offset, count) }
        } catch let error as RPCError {
            throw error
        } catch let error as StorageError {
            throw .unreadableBytes(error)
        } catch {
            throw .requestCancelled
        }
    }

    /// Returns the video of a version of an asset, which is a video or a Live Photo.
    static func resource(of asset: AssetSummary, version: VideoVersion) throws(RPCError) -> AssetResource {
        let original = asset.resource(.video) ?? asset.resource(.pairedVideo)
        let current = asset.resource(.fullSizeVideo) ?? asset.resource(.fullSizePairedVideo) ?? original
        guard let chosen = version == .current ? current : original else { throw .noVideo(asset) }
        return chosen
    }
}

extension AssetResource {
    /// True for a resource that can be played.
    fileprivate var isPlayable: Bool {
        isVideo
            || [.pairedVideo, .fullSizePairedVideo, .adjustmentBaseVideo, .adjustmentBasePairedVideo].contains(type)
    }
}
