import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Storage

/// The history of an asset's edits, reconstructed from the catalog's change log; the editor keeps no state.
extension EditProcessor {
    /// The maximum size of the adjustment lists of a history in bytes, so that it fits into a reply. Beyond it the
    /// lists of older steps are left out.
    private static let maxListBytes: Int64 = 4 << 20

    /// The edits of an asset, without their lists.
    private struct RecordedEdits {
        let asset: Asset
        var all: [RecordedStep] = []
        var isComplete = false
    }

    private struct RecordedStep {
        var step: EditStep
        /// The list of an edit of this editor; nil for other steps.
        var list: AssetResource?
        /// The digest of a video's original, which is the base of each list that does not name another one.
        var videoOriginal: String?
    }

    /// Handles `edits.history`.
    func history(_ request: EditHistory) async throws(RPCError) -> EditHistory.Result {
        let edits = try await recordedEdits(request)
        var steps = edits.all.map(\.step)
        var bytesLeft = Self.maxListBytes
        for (index, recorded) in edits.all.enumerated().reversed() {
            guard let list = recorded.list, list.size <= bytesLeft else { continue }
            bytesLeft -= list.size
            steps[index] = await withList(recorded, of: edits.asset.id)
        }
        return EditHistory.Result(
            asset: edits.asset.id,
            contentRevision: edits.asset.contentRevision,
            steps: steps,
            isComplete: edits.isComplete
        )
    }

    private func recordedEdits(_ request: EditHistory) async throws(RPCError) -> RecordedEdits {
        let asset = try await catalog.asset(request.asset, atLeast: request.atLeast).asset
        var edits = RecordedEdits(asset: asset)
        var token: ChangeToken?
        while true {
            let page = try await catalog.library.catalog.ask(
                ChangesSince(token: token, limit: ChangesSince.maxRecords, topics: [FeedTopic.object(asset.id)])
            ).result
            for json in page.records {
                guard let record = try? ChangeRecord(json: json) else {
                    throw .invalidRecord
                }
                guard let change = record.assets.first(where: { $0.id == asset.id }) else { continue }
                if change.before == nil { edits.isComplete = true }
                let versions = change.editedVersions(isFirst: edits.all.isEmpty)
                if let earlier = versions.earlier {
                    let step = EditStep(
                        step: 1,
                        kind: .edit,
                        sequence: earlier.contentRevision.sequence,
                        date: earlier.adjustmentDate ?? record.date,
                        identity: ""
                    )
                    edits.all.append(Self.recorded(step, earlier))
                }
                guard let version = versions.recorded else { continue }
                guard edits.all.count < EditHistory.Result.maxSteps else {
                    throw .tooManySteps(of: asset)
                }
                var step = EditStep(
                    step: edits.all.count + 1,
                    kind: version.hasAdjustments ? .edit : .revert,
                    sequence: record.sequence,
                    date: record.date,
                    identity: record.origin.onBehalfOf ?? record.origin.identity
                )
                step.client = record.origin.client
                edits.all.append(Self.recorded(step, version))
            }
            guard page.hasMore, page.token != token else { return edits }
            token = page.token
        }
    }

    /// Adds the digests of an asset's version to a step.
    private static func recorded(_ step: EditStep, _ asset: Asset) -> RecordedStep {
        guard asset.hasAdjustments else { return RecordedStep(step: step) }
        var step = step
        step.formatIdentifier = asset.adjustmentFormatIdentifier
        step.formatVersion = asset.adjustmentFormatVersion
        if asset.keepsPreviousVersion {
            step.base = (asset.resource(.adjustmentBasePhoto) ?? asset.originalResource)?.digest
        }
        step.render = asset.currentResource?.digest
        let data = asset.resource(.adjustmentData)
        step.adjustmentData = data?.digest
        return RecordedStep(
            step: step,
            list: asset.adjustmentFormatIdentifier == AdjustmentList.formatIdentifier ? data : nil,
            videoOriginal: asset.mediaType == .video ? asset.originalResource?.digest : nil
        )
    }

    /// Returns a step with its list; without one if the list of an earlier step was garbage-collected.
    private func withList(_ recorded: RecordedStep, of asset: ObjectID) async -> EditStep {
        var step = recorded.step
        guard let list = recorded.list else { return step }
        try? await require(list.digest, of: asset, isEarlier: true)
        let bytes = try? resources.open(list.digest).readAll(limit: Int64(AdjustmentData.maxBytes))
        step.adjustments = bytes.flatMap { try? JSON(parsing: $0) }
        let isOnOriginal = step.adjustments != nil && step.adjustments?["base"] == nil
        if isOnOriginal, let original = recorded.videoOriginal { step.base = original }
        return step
    }

    /// Handles `edits.undo`.
    func undo(_ undo: UndoEdits, _ context: RequestContext) async throws(RPCError) -> EditOutcome {
        let transaction = EditTransaction(
            identity: context.identity,
            client: undo.client,
            transaction: undo.transaction ?? PhotoLibrary.uniqueTransaction(),
            digest: EditDigest.of(undo)
        )
        if undo.transaction != nil, let stored = try await catalog.storedOutcome(transaction) {
            return EditOutcome(asset: undo.asset, token: stored.token, isChanged: stored.isChanged)
        }
        let edits = try await recordedEdits(EditHistory(asset: undo.asset))
        let current = edits.asset.contentRevision
        if let expected = undo.ifContentRevision, expected != current {
            throw .conflict(edits.asset, expected: expected)
        }
        guard let step = try await step(undo.step ?? max(0, edits.all.count - 1), of: edits) else {
            let revert = RevertEdit(asset: undo.asset, ifContentRevision: current)
            let result = try await serializer.run(undo.asset) { () async throws(RPCError) in
                try await catalog.revert(revert, as: transaction)
            }
            metrics.reverted.add()
            return EditOutcome(asset: undo.asset, token: result.token, isChanged: result.isChanged)
        }
        let result = try await serializer.run(undo.asset) { () async throws(RPCError) -> PerformChanges.Result in
            var attempt = 1
            while true {
                do throws(RPCError) {
                    return try await restore(
                        step,
                        of: undo.asset,
                        ifContentRevision: current,
                        transaction,
                        access: NetworkAccess(isAllowed: undo.isNetworkAccessAllowed, client: context)
                    )
                } catch  where error.errorCode == .handleExpired && attempt < Self.maxAttempts {
                    attempt += 1
                }
            }
        }
        metrics.applied.add()
        return EditOutcome(asset: undo.asset, token: result.token, isChanged: result.isChanged)
    }

    /// Makes a step of an asset's history its current version again. The editor's own step is rendered again from its
    /// base; another program's is committed as it was, with the adjustment data by which that program can resume it.
    func restore(
        _ step: EditStep,
        of id: ObjectID,
        ifContentRevision expected: Revision?,
        _ transaction: EditTransaction,
        publishedEdit: String? = nil,
        mayRenderVideo: Bool = true,
        priority: WorkerPriority = .normal,
        access: NetworkAccess = .none
    ) async throws(RPCError) -> PerformChanges.Result {
        let found = try await catalog.asset(id)
        let asset = found.asset
        if let expected, expected != asset.contentRevision { throw .conflict(asset, expected: expected) }
        if Self.isOwn(step), let base = step.base, asset.version(base) != nil {
            let edit = ApplyEdit(
                asset: id,
                adjustments: try list(of: step, id),
                ifContentRevision: asset.contentRevision
            )
            return try await renderAndCommit(
                edit,
                transaction,
                from: base,
                publishedEdit: publishedEdit,
                mayRenderVideo: mayRenderVideo,
                priority: priority,
                access: access
            ).result
        }
        for digest in [step.base, step.render].compactMap(\.self)
        where asset.resources.contains(where: { $0.digest == digest }) {
            try await require(digest, of: found, access)
        }
        let version = try await earlierVersion(step, of: asset)
        return try await catalog.restore(version, asset: id, as: transaction, publishedEdit: publishedEdit)
    }

    private func earlierVersion(_ step: EditStep, of asset: Asset) async throws(RPCError) -> EarlierVersion {
        guard asset.mediaType == .image, let base = step.base else {
            throw .foreignVideoStep(step, of: asset)
        }
        func bytes(_ digest: String?, _ name: String) async throws(RPCError) -> Bytes {
            do {
                guard let digest else { throw StorageError.notFound("no digest") }
                try await require(digest, of: asset.id, isEarlier: true)
                let file = try resources.open(digest)
                return try file.readAll(limit: file.size)
            } catch {
                throw .collected(name, of: step, asset)
            }
        }
        let earlierBase: EarlierVersion.Base
        if let existing = asset.version(base) {
            earlierBase = .existing(existing.base, digest: base)
        } else {
            earlierBase = .bytes(try await bytes(base, "base"))
        }
        return EarlierVersion(
            render: try await bytes(step.render, "image"),
            formatIdentifier: step.formatIdentifier ?? "",
            formatVersion: step.formatVersion ?? "",
            adjustmentData: try await bytes(step.adjustmentData, "adjustment data"),
            contentRevision: asset.contentRevision,
            base: earlierBase
        )
    }

    private static func isOwn(_ step: EditStep) -> Bool {
        step.formatIdentifier == AdjustmentList.formatIdentifier && step.formatVersion == AdjustmentList.formatVersion
    }

    /// Returns a step of an asset's history; nil if it shows the original.
    func step(_ number: Int, of asset: ObjectID) async throws(RPCError) -> EditStep? {
        try await step(number, of: try await recordedEdits(EditHistory(asset: asset)))
    }

    private func step(_ number: Int, of edits: RecordedEdits) async throws(RPCError) -> EditStep? {
        guard number <= edits.all.count else {
            throw .stepNotFound(number, of: edits.asset.id, steps: edits.all.count)
        }
        guard number > 0, edits.all[number - 1].step.kind == .edit else { return nil }
        return await withList(edits.all[number - 1], of: edits.asset.id)
    }

    func list(of step: EditStep, _ id: ObjectID) throws(RPCError) -> AdjustmentList {
        guard Self.isOwn(step) else {
            throw .foreignStep(step, of: id)
        }
        guard let json = step.adjustments, let list = try? AdjustmentList(json: json) else {
            throw .adjustmentDataCollected(step, of: id)
        }
        return list
    }
}

extension EntityChange where Entity == Asset {
    /// Returns the versions that a change adds to the history of an asset's edits.
    ///
    /// The edit that an asset was created with is a version, because an undo can go back to it. So is the edit before
    /// the first known change of the pixels, whose own record is no longer retained.
    ///
    /// - Parameter isFirst: true if no earlier change has added a version
    func editedVersions(isFirst: Bool) -> (earlier: Asset?, recorded: Asset?) {
        guard let after else { return (nil, nil) }
        guard let before else { return (nil, after.hasAdjustments ? after : nil) }
        guard isContentChanged else { return (nil, nil) }
        return (isFirst && before.hasAdjustments ? before : nil, after)
    }
}

extension Asset {
    /// Returns the version of the asset that has these bytes; nil if it has none.
    func version(_ digest: String) -> (base: EditBase, source: AssetResource)? {
        for base in EditBase.allCases {
            if let source = resources(of: base).first(where: { $0.digest == digest }) { return (base, source) }
        }
        return nil
    }
}
