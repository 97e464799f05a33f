import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Edits of Live Photos: of the still and of each frame of the video (T-48).
extension EditProcessor {
    /// Handles `edits.livePhoto`.
    func saveLivePhoto(_ request: EditLivePhoto, _ context: RequestContext) async throws(RPCError) -> JSON {
        let notifier = context.notifier
        let progress = VideoProgress { part in
            // The client may not accept notifications.
            _ = try? await notifier.notify(
                Self.progress,
                ["done": 0, "failed": 0, "total": 1, "part": .double(part)]
            )
        }
        let (identity, edit) = (context.identity, request.edit)
        if let name = edit.transaction {
            let transaction = EditTransaction(
                identity: identity,
                client: edit.client,
                transaction: name,
                digest: EditDigest.of(edit)
            )
            if let outcome = try await storedOutcome(edit.asset, transaction) { return outcome.json }
        }
        return try await livePhotos.run(request.asset, for: identity) { () async throws(RPCError) in
            let asset = try await catalog.asset(request.asset).asset
            guard asset.mediaType == .image, asset.resource(.pairedVideo) != nil else {
                throw RPCError.noLivePhoto(asset)
            }
            let access = NetworkAccess(isAllowed: request.isNetworkAccessAllowed, client: context)
            return try await apply(edit, for: identity, access: access, progress: { progress.update($0) }).json
        }
    }

    /// Renders the still and the video of an edit.
    func renderLivePhoto(
        _ plan: EditPlan,
        _ pairedVideo: AssetResource,
        _ priority: WorkerPriority,
        progress: @escaping @Sendable (Double) -> Void
    ) async throws(RPCError) -> (still: Render, pairedVideo: Render?) {
        let still: Render
        if plan.adjustments.livePhoto?.keyFrame != nil {
            still = try await keyFrame(plan.adjustments, of: pairedVideo, plan.source, priority)
        } else {
            still = try await render(
                RenderPlan(digest: plan.source.digest, adjustments: plan.adjustments, engine: plan.engine ?? engine),
                priority
            )
        }
        let list = plan.adjustments.ofPairedVideo
        // A video that stays as it was taken is not stored again.
        guard plan.base != .original || !list.isNeutral else { return (still, nil) }
        return (still, try await videos.render(pairedVideo, list, priority, progress: progress))
    }

    /// Handles `edits.preview` of a Live Photo whose video is edited too: the response has both.
    func previewLivePhoto(
        _ preview: PreviewEdit,
        _ operations: [Adjustment],
        _ options: LivePhotoAdjustment,
        _ version: (base: EditBase, source: AssetResource),
        _ pairedVideo: AssetResource,
        _ found: CatalogConnection.FetchedAsset,
        _ access: NetworkAccess
    ) async throws(RPCError) -> Reply {
        let asset = found.asset
        try EditPlan.requireSupported(operations, options, on: pairedVideo, of: asset)
        try await require(version.source.digest, of: found, access)
        try await require(pairedVideo.digest, of: found, access)
        let list = AdjustmentList(operations: operations, livePhoto: options)
        let still: Render
        if options.keyFrame != nil {
            still = try await keyFrame(list, of: pairedVideo, version.source, .high, maximumSide: preview.maximumSide)
        } else {
            let plan = RenderPlan(
                digest: version.source.digest,
                adjustments: list,
                maximumSide: preview.maximumSide,
                engine: preview.engine ?? preview.adjustments.engine?.engine ?? engine
            )
            still = try await render(plan, .high)
        }
        let video = try await videos.preview(
            pairedVideo,
            list.ofPairedVideo,
            maximumSide: preview.maximumSide,
            maxBytes: largestAttachment
        )
        let total = still.bytes.count + video.bytes.count
        guard total <= largestAttachment else {
            throw .previewTooLarge(total, limit: largestAttachment)
        }
        metrics.previews.add()
        var result = PreviewEdit.Result(
            mimeType: still.mimeType,
            pixelWidth: still.pixelWidth,
            pixelHeight: still.pixelHeight,
            sequence: found.page.sequence
        )
        result.pairedVideo = PreviewEdit.PairedVideo(
            mimeType: video.mimeType,
            pixelWidth: video.pixelWidth,
            pixelHeight: video.pixelHeight
        )
        return Reply(result.json, attachments: [still.bytes, video.bytes])
    }

    /// Renders a frame of the video as the still, with the metadata of the photo.
    ///
    /// - Parameter maximumSide: the longer side of a preview, in pixels; nil for the full size, with metadata
    private func keyFrame(
        _ list: AdjustmentList,
        of pairedVideo: AssetResource,
        _ photo: AssetResource,
        _ priority: WorkerPriority,
        maximumSide: Int? = nil
    ) async throws(RPCError) -> Render {
        let (frames, still) = (try resources.open(pairedVideo.digest), try resources.open(photo.digest))
        let plan = VideoRenderPlan(pairedVideo, list, frameTime: list.livePhoto?.keyFrame, maximumSide: maximumSide)
        let job = WorkerJob(
            method: VideoEditWorker.keyFrameMethod,
            params: plan.json,
            files: [frames.descriptor, still.descriptor]
        )
        let render = try await metrics.timing { () async throws(RPCError) in
            try await run(job, over: pairedVideo.digest, priority)
        }
        return withExtendedLifetime((frames, still)) { render }
    }
}
