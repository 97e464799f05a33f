import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Storage

/// Renders edits and commits them to the catalog; keeps no state.
struct EditProcessor: Sendable {
    let catalog: CatalogConnection
    let resources: ResourceFolder
    let workers: ResourceJobRunner
    let videos: VideoRenderer
    let livePhotos = LivePhotoOperations()
    let serializer: PerAssetSerializer
    let metrics: EditorMetrics
    /// The engine of edits that name none.
    let engine: RenderEngine
    /// The maximum number of bytes of one attachment.
    let largestAttachment: Int
    /// Returns the first of some assets that an identity does not see; nil if it sees all of them.
    var unseen: @Sendable (_ identity: String, [ObjectID]) async throws(RPCError) -> ObjectID? = { _, _ in nil }
    /// Returns true if an identity does not see the whole library; asks the catalog if that is not known.
    var isLimited: @Sendable (_ identity: String) async throws(RPCError) -> Bool = { _ in false }

    /// The maximum number of attempts of an edit that fails because another client has changed the asset, or because
    /// the catalog has lost the upload.
    static let maxAttempts = 3

    /// Applies an edit as one change, once for each transaction id.
    ///
    /// - Parameters:
    ///   - identity: the requesting client
    ///   - requestDigest: the digest of its request, if that differs from the edit itself
    ///   - access: whether the original may be downloaded
    func apply(
        _ edit: ApplyEdit,
        for identity: String,
        priority: WorkerPriority = .normal,
        requestDigest: String? = nil,
        access: NetworkAccess = .none,
        progress: @escaping @Sendable (Double) -> Void = { _ in }
    ) async throws(RPCError) -> EditOutcome {
        let transaction = EditTransaction(
            identity: identity,
            client: edit.client,
            transaction: edit.transaction ?? PhotoLibrary.uniqueTransaction(),
            digest: requestDigest ?? EditDigest.of(edit)
        )
        return try await serializer.run(edit.asset) { () async throws(RPCError) in
            if edit.transaction != nil, let outcome = try await storedOutcome(edit.asset, transaction) {
                return outcome
            }
            var attempt = 1
            while true {
                do throws(RPCError) {
                    let (result, dropsGainMap) = try await renderAndCommit(
                        edit,
                        transaction,
                        priority: priority,
                        access: access,
                        progress: progress
                    )
                    metrics.applied.add()
                    var outcome = EditOutcome(asset: edit.asset, token: result.token, isChanged: result.isChanged)
                    outcome.dropsGainMap = dropsGainMap
                    return outcome
                } catch
                    where attempt < Self.maxAttempts
                    && (error.errorCode == .handleExpired || error.errorCode == .conflict && edit.isUnconditional)
                {
                    // `handle_expired`: a restart or a takeover of the catalog has removed the uploaded render.
                    if error.errorCode == .conflict { metrics.conflicts.add() }
                    attempt += 1
                }
            }
        }
    }

    /// Applies a published edit once, at a lower priority than requests; the catalog records that it was applied.
    ///
    /// - Throws: `conflict` if the asset has changed meanwhile, or if the edit is already finished; an error that
    ///   ``QueuedEdit/moved(after:)`` knows, if the edit needs another lane
    func apply(_ queued: QueuedEdit) async throws(RPCError) {
        let transaction = EditTransaction(identity: queued.key.publisher, client: Self.publishing)
        _ = try await serializer.run(queued.edit.asset) { () async throws(RPCError) in
            let (published, id) = (queued.edit, queued.key.id)
            let access = NetworkAccess(isAllowed: queued.mayDownload)
            let mayRenderVideo = queued.lane == .video
            let named = [published.asset] + (published.source.map { [$0] } ?? [])
            if let asset = try await unseen(queued.key.publisher, named) { throw RPCError.assetNotFound(asset) }
            switch try await target(of: published, access) {
            case .original:
                let revert = RevertEdit(asset: published.asset, ifContentRevision: published.ifContentRevision)
                return try await catalog.revert(revert, as: transaction, publishedEdit: id)
            case .step(let step):
                return try await restore(
                    step,
                    of: published.asset,
                    ifContentRevision: published.ifContentRevision,
                    transaction,
                    publishedEdit: id,
                    mayRenderVideo: mayRenderVideo,
                    priority: .low,
                    access: access
                )
            case .edit(let edit):
                return try await renderAndCommit(
                    edit,
                    transaction,
                    publishedEdit: id,
                    mayRenderVideo: mayRenderVideo,
                    priority: .low,
                    access: access
                ).result
            }
        }
    }

    /// The `client` of transactions that carry out published edits.
    static let publishing = "edits"

    /// Handles `edits.preview`: renders an edit without committing it.
    func preview(_ preview: PreviewEdit, _ context: RequestContext) async throws(RPCError) -> Reply {
        let access = NetworkAccess(isAllowed: preview.isNetworkAccessAllowed, client: context)
        guard preview.adjustments.livePhoto != nil else { return try await self.preview(preview, access) }
        // Rendering the video may take a while: a later preview or save of the same client replaces this one.
        return try await livePhotos.run(preview.asset, for: context.identity) { () async throws(RPCError) in
            try await self.preview(preview, access)
        }
    }

    private func preview(_ preview: PreviewEdit, _ access: NetworkAccess) async throws(RPCError) -> Reply {
        let found = try await catalog.asset(preview.asset, atLeast: preview.atLeast)
        let (asset, sequence) = (found.asset, found.page.sequence)
        guard asset.mediaType != .video else { return try await previewFrame(preview, found, access) }
        let version = try EditPlan.input(of: asset)
        let source = version.source
        try EditPlan.requireSupported(preview.adjustments, for: asset)
        guard preview.frameTime == nil else { throw .frameTimeOfPhoto(asset) }
        let operations = try EditPlan.operations(preview.adjustments, preview.magick, onto: source)
        if let options = preview.adjustments.livePhoto, let pairedVideo = EditPlan.pairedVideo(of: asset, version.base)
        {
            return try await previewLivePhoto(preview, operations, options, version, pairedVideo, found, access)
        }
        let plan = RenderPlan(
            digest: source.digest,
            adjustments: AdjustmentList(operations: operations),
            maximumSide: preview.maximumSide,
            engine: preview.engine ?? preview.adjustments.engine?.engine ?? engine
        )
        try await require(plan.digest, of: found, access)
        let render = try await render(plan, .high)
        guard render.bytes.count <= largestAttachment else {
            throw .previewTooLarge(render.bytes.count, limit: largestAttachment)
        }
        metrics.previews.add()
        let result = PreviewEdit.Result(
            mimeType: render.mimeType,
            pixelWidth: render.pixelWidth,
            pixelHeight: render.pixelHeight,
            sequence: sequence
        )
        return Reply(result.json, attachments: [render.bytes])
    }

    /// Reverts an asset to its original as one change, once for each transaction id.
    func revert(_ revert: RevertEdit, for identity: String) async throws(RPCError) -> EditOutcome {
        let transaction = EditTransaction(
            identity: identity,
            client: revert.client,
            transaction: revert.transaction ?? PhotoLibrary.uniqueTransaction(),
            digest: EditDigest.of(revert)
        )
        return try await serializer.run(revert.asset) { () async throws(RPCError) in
            let result = try await catalog.revert(revert, as: transaction)
            metrics.reverted.add()
            return EditOutcome(asset: revert.asset, token: result.token, isChanged: result.isChanged)
        }
    }

    /// Returns the outcome of the same edit if it was committed before, without rendering.
    ///
    /// Called before anything else: the asset may have changed or been deleted since, and the outcome stays the same.
    func storedOutcome(_ asset: ObjectID, _ transaction: EditTransaction) async throws(RPCError) -> EditOutcome? {
        guard let result = try await catalog.storedOutcome(transaction) else { return nil }
        metrics.recalled.add()
        return EditOutcome(asset: asset, token: result.token, isChanged: result.isChanged)
    }

    /// Renders an edit of the asset as it is now, and commits it.
    ///
    /// - Parameters:
    ///   - base: the digest of the version to start from; nil for the one that replacing starts from
    ///   - mayRenderVideo: false to throw ``RPCError/videoInOtherLane`` before a video is rendered
    func renderAndCommit(
        _ edit: ApplyEdit,
        _ transaction: EditTransaction,
        from base: String? = nil,
        publishedEdit: String? = nil,
        mayRenderVideo: Bool = true,
        priority: WorkerPriority = .normal,
        access: NetworkAccess = .none,
        progress: @escaping @Sendable (Double) -> Void = { _ in }
    ) async throws(RPCError) -> (result: PerformChanges.Result, dropsGainMap: Bool) {
        let found = try await catalog.asset(edit.asset)
        let asset = found.asset
        let data = EditPlan.needsAdjustmentData(edit.mode, of: asset) ? try await adjustmentData(of: asset) : nil
        var plan = try EditPlan(edit, of: asset, adjustmentData: data, from: base.flatMap(asset.version))
        try await require(plan.source.digest, of: found, access)
        if let source = plan.pairedVideo { try await require(source.digest, of: found, access) }
        guard mayRenderVideo || (plan.pairedVideo == nil && asset.mediaType != .video) else { throw .videoInOtherLane }
        let render: Render
        var pairedVideo: Render?
        if let source = plan.pairedVideo {
            (render, pairedVideo) = try await renderLivePhoto(plan, source, priority, progress: progress)
        } else if asset.mediaType == .video {
            render = try await videos.render(plan.source, plan.adjustments, priority, progress: progress)
        } else {
            render = try await self.render(
                RenderPlan(digest: plan.source.digest, adjustments: plan.adjustments, engine: plan.engine ?? engine),
                priority
            )
        }
        plan.adjustments.engine = render.appliedEngine
        let result = try await catalog.commit(
            render,
            pairedVideo: pairedVideo,
            of: plan,
            asset: asset.id,
            as: transaction,
            publishedEdit: publishedEdit
        )
        return (result, render.dropsGainMap)
    }

    func adjustmentData(of asset: Asset) async throws(RPCError) -> Bytes? {
        guard let resource = asset.resource(.adjustmentData) else { return nil }
        try await require(resource.digest, of: asset.id)
        let file = try resources.open(resource.digest)
        do throws(StorageError) {
            return try file.readAll(limit: Int64(AdjustmentData.maxBytes))
        } catch {
            throw .unreadableAdjustmentData(of: asset, error)
        }
    }

    func render(_ plan: RenderPlan, _ priority: WorkerPriority) async throws(RPCError) -> Render {
        let file = try resources.open(plan.digest)
        let job = WorkerJob(method: EditWorker.renderMethod, params: plan.json, files: [file.descriptor])
        let render = try await metrics.timing { () async throws(RPCError) in
            try await run(job, over: plan.digest, priority)
        }
        // The worker uses the descriptor until here.
        return withExtendedLifetime(file) { render }
    }

    /// Runs a job that renders an image.
    func run(_ job: WorkerJob, over digest: String, _ priority: WorkerPriority) async throws(RPCError) -> Render {
        let result: WorkerResult
        do throws(WorkerFailure) { result = try await workers.run(job, over: digest, priority: priority) } catch {
            throw error.rpcError
        }
        guard var render = try? Render(json: result.result), let bytes = result.attachments.first else {
            throw .invalidResult(expected: "an image")
        }
        render.bytes = bytes
        return render
    }
}
