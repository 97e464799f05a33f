import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Storage

/// Content editing by other programs: the input that they need for an edit.
extension EditProcessor {
    /// Handles `editing.begin`; the editor keeps no state about it.
    func begin(_ begin: BeginEditing, _ context: RequestContext) async throws(RPCError) -> Reply {
        let found = try await catalog.asset(begin.asset, atLeast: begin.atLeast)
        let (asset, sequence) = (found.asset, found.page.sequence)
        let handles = { (identifier: String, version: String) in
            begin.canHandle.contains { $0.includes(identifier, version) }
        }
        guard var (base, resource, hasData) = asset.editingInput(handles: handles) else {
            throw .noOriginal(asset)
        }
        if let choice = begin.originalChoice {
            guard let chosen = asset.editingInput(of: choice, handles: handles) else {
                throw .noOriginalChoice(asset)
            }
            (base, resource, hasData) = chosen
        }
        try await require(
            resource.digest,
            of: found,
            NetworkAccess(isAllowed: begin.isNetworkAccessAllowed, client: context)
        )
        var result = BeginEditing.Result(
            version: base,
            resource: resource,
            inputToken: EditInputToken(
                asset: asset.id,
                contentRevision: asset.contentRevision,
                base: base,
                digest: resource.digest
            ),
            contentRevision: asset.contentRevision,
            isPreviousAvailable: asset.keepsPreviousVersion,
            supportedRenderTypes: RenderType.supported(for: asset.mediaType),
            sequence: sequence
        )
        result.pairedVideo = EditPlan.pairedVideo(of: asset, base)
        var attachments: [Bytes] = []
        if hasData, let data = try await adjustmentData(of: asset) {
            result.formatIdentifier = asset.adjustmentFormatIdentifier
            result.formatVersion = asset.adjustmentFormatVersion
            result.adjustmentData = attachments.count
            attachments.append(data)
        }
        var remainingBytes = largestAttachment
        if !begin.skipsInput, resource.size <= Int64(remainingBytes) {
            result.input = attachments.count
            let bytes = try read(resource, of: asset)
            remainingBytes -= bytes.count
            attachments.append(bytes)
        }
        // The frames of a video are not examined; the program does that.
        guard asset.mediaType == .image else { return Reply(result.json, attachments: attachments) }
        result.orientation = try await orientation(of: resource)
        if !begin.skipsDisplaySizeImage {
            let plan = RenderPlan(
                digest: resource.digest,
                adjustments: AdjustmentList(),
                maximumSide: begin.displaySize
            )
            let image = try await render(plan, .high)
            if image.bytes.count <= remainingBytes {
                result.displaySizeImage = attachments.count
                attachments.append(image.bytes)
            }
        }
        return Reply(result.json, attachments: attachments)
    }

    /// Handles `edits.compare`.
    func compare(_ compare: CompareEdit, _ context: RequestContext) async throws(RPCError) -> Reply {
        let found = try await catalog.asset(compare.asset, atLeast: compare.atLeast)
        let (asset, sequence) = (found.asset, found.page.sequence)
        let (original, shown) = (try EditPlan.original(of: asset).digest, asset.currentResource?.digest ?? "")
        let access = NetworkAccess(isAllowed: compare.isNetworkAccessAllowed, client: context)
        for digest in Set([original, shown]) { try await require(digest, of: found, access) }
        let (before, after) = (try resources.open(original), try resources.open(shown))
        let job = WorkerJob(
            method: EditWorker.compareMethod,
            params: [
                "maximumSide": JSON(compare.maximumSide), "labels": .bool(compare.hasLabels),
                "frameTimes": await comparedTimes(of: asset) ?? .null,
            ],
            files: [before.descriptor, after.descriptor]
        )
        let render = try await run(job, over: shown, .high)
        let result = PreviewEdit.Result(
            mimeType: render.mimeType,
            pixelWidth: render.pixelWidth,
            pixelHeight: render.pixelHeight,
            sequence: sequence
        )
        return withExtendedLifetime((before, after)) { Reply(result.json, attachments: [render.bytes]) }
    }

    private func read(_ resource: AssetResource, of asset: Asset) throws(RPCError) -> Bytes {
        let file = try resources.open(resource.digest)
        do throws(StorageError) {
            return try file.readAll(limit: resource.size)
        } catch {
            throw .unreadable(resource, of: asset, error)
        }
    }

    private func orientation(of resource: AssetResource) async throws(RPCError) -> Int {
        let file = try resources.open(resource.digest)
        let job = WorkerJob(method: EditWorker.inspectMethod, files: [file.descriptor])
        do throws(WorkerFailure) {
            let result = try await workers.run(job, over: resource.digest, priority: .high)
            return withExtendedLifetime(file) { Int(result.result["orientation"]?.intValue ?? 1) }
        } catch {
            throw error.rpcError
        }
    }
}
