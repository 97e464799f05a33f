import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage
import Video

/// Frames of videos before and after an edit.
extension EditProcessor {
    /// Renders a frame of a video for `edits.preview`.
    func previewFrame(
        _ preview: PreviewEdit,
        _ found: CatalogConnection.FetchedAsset,
        _ access: NetworkAccess
    ) async throws(RPCError) -> Reply {
        let asset = found.asset
        let edit = ApplyEdit(asset: asset.id, adjustments: preview.adjustments, magick: preview.magick)
        let data = EditPlan.needsAdjustmentData(edit.mode, of: asset) ? try await adjustmentData(of: asset) : nil
        let plan = try EditPlan(edit, of: asset, adjustmentData: data)
        try await require(plan.source.digest, of: found, access)
        let file = try resources.open(plan.source.digest)
        let frame = VideoRenderPlan(
            plan.source,
            plan.adjustments,
            frameTime: preview.frameTime,
            maximumSide: preview.maximumSide
        )
        let job = WorkerJob(method: VideoEditWorker.frameMethod, params: frame.json, files: [file.descriptor])
        let render = try await metrics.timing { () async throws(RPCError) in
            try await run(job, over: plan.source.digest, .high)
        }
        guard render.bytes.count <= largestAttachment else {
            throw .previewTooLarge(render.bytes.count, limit: largestAttachment)
        }
        metrics.previews.add()
        let result = PreviewEdit.Result(
            mimeType: render.mimeType,
            pixelWidth: render.pixelWidth,
            pixelHeight: render.pixelHeight,
            sequence: found.page.sequence
        )
        return withExtendedLifetime(file) { Reply(result.json, attachments: [render.bytes]) }
    }

    /// Returns the times at which the original and the current version show the same frame; nil for a photo. For
    /// another program's edit the times are equal, because it is not known how it has moved the frame.
    func comparedTimes(of asset: Asset) async -> JSON? {
        guard asset.mediaType == .video, let shown = asset.currentResource?.duration else { return nil }
        // Not the first frame, which is often black.
        let after = min(1_000_000, shown / 3)
        guard asset.isVideoOfThisEditor,
            let list = try? EditPlan.currentList(of: asset, data: await adjustmentData(of: asset))
        else { return [.int(after), .int(after)] }
        let start = list.operations.last { $0.kind == .timeRange }?.number("start") ?? 0
        let product = list.operations.filter { $0.kind == .speed }.reduce(1) { $0 * $1.number() }
        let speed = min(VideoEdit.speeds.upperBound, max(VideoEdit.speeds.lowerBound, product))
        return [.int(Int64(start * 1e6 + Double(after) * speed)), .int(after)]
    }
}
