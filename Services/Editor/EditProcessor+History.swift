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
    /// Handles `edits.history`.
    func history(_ request: EditHistory) async throws(RPCError) -> EditHistory.Result {
        let asset = try await catalog.asset(request.asset, atLeast: request.atLeast).asset
        var steps: [EditStep] = []
        var isComplete = false
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
                if change.before == nil { isComplete = true }
                guard change.isContentChanged, let after = change.after else { continue }
                guard steps.count < EditHistory.Result.maxSteps else {
                    throw .tooManySteps(of: asset)
                }
                steps.append(await step(steps.count + 1, record, after))
            }
            guard page.hasMore, page.token != token else { break }
            token = page.token
        }
        return EditHistory.Result(
            asset: asset.id,
            contentRevision: asset.contentRevision,
            steps: steps,
            isComplete: isComplete
        )
    }

    private func step(_ number: Int, _ record: ChangeRecord, _ asset: Asset) async -> EditStep {
        var step = EditStep(
            step: number,
            kind: asset.hasAdjustments ? .edit : .revert,
            sequence: record.sequence,
            date: record.date,
            identity: record.origin.onBehalfOf ?? record.origin.identity
        )
        step.client = record.origin.client
        guard asset.hasAdjustments else { return step }
        step.formatIdentifier = asset.adjustmentFormatIdentifier
        step.formatVersion = asset.adjustmentFormatVersion
        if asset.keepsPreviousVersion {
            step.base = (asset.resource(.adjustmentBasePhoto) ?? asset.originalResource)?.digest
        }
        step.render = asset.currentResource?.digest
        let data = asset.resource(.adjustmentData)
        step.adjustmentData = data?.digest
        if asset.adjustmentFormatIdentifier == AdjustmentList.formatIdentifier, let data {
            // The data of earlier steps may have been collected; then the step is listed without it.
            try? await require(data.digest, of: asset.id, isEarlier: true)
            let bytes = try? resources.open(data.digest).readAll(limit: Int64(AdjustmentData.maxBytes))
            step.adjustments = bytes.flatMap { try? JSON(parsing: $0) }
            let isOnOriginal = step.adjustments != nil && step.adjustments?["base"] == nil
            if asset.mediaType == .video, isOnOriginal { step.base = asset.originalResource?.digest }
        }
        return step
    }

    /// Handles `edits.undo`.
    func undo(_ undo: UndoEdits, _ context: RequestContext) async throws(RPCError) -> EditOutcome {
        let transaction = EditTransaction(
            identity: context.identity,
            client: undo.client,
            transaction: undo.transaction ?? PhotoLibrary.randomTransaction(),
            digest: EditDigest.of(undo)
        )
        if undo.transaction != nil, let known = try await catalog.storedOutcome(transaction) {
            return EditOutcome(asset: undo.asset, token: known.token, isChanged: known.isChanged)
        }
        let history = try await history(EditHistory(asset: undo.asset))
        if let expected = undo.ifContentRevision, expected != history.contentRevision {
            throw .conflict(try await catalog.asset(undo.asset).asset, expected: expected)
        }
        guard let step = try Self.step(undo.step ?? max(0, history.steps.count - 1), in: history) else {
            let revert = RevertEdit(asset: undo.asset, ifContentRevision: history.contentRevision)
            let result = try await serializer.run(undo.asset) { () async throws(RPCError) in
                try await catalog.revert(revert, as: transaction)
            }
            metrics.reverted.add()
            return EditOutcome(asset: undo.asset, token: result.token, isChanged: result.isChanged)
        }
        let result = try await serializer.run(undo.asset) { () async throws(RPCError) in
            try await restore(
                step,
                of: undo.asset,
                ifContentRevision: history.contentRevision,
                transaction,
                access: NetworkAccess(isAllowed: undo.isNetworkAccessAllowed, client: context)
            )
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
        let origin: EarlierVersion.Base
        if let present = asset.version(base) {
            origin = .present(present.base, digest: base)
        } else {
            origin = .bytes(try await bytes(base, "base"))
        }
        return EarlierVersion(
            render: try await bytes(step.render, "image"),
            formatIdentifier: step.formatIdentifier ?? "",
            formatVersion: step.formatVersion ?? "",
            adjustmentData: try await bytes(step.adjustmentData, "adjustment data"),
            contentRevision: asset.contentRevision,
            base: origin
        )
    }

    private static func isOwn(_ step: EditStep) -> Bool {
        step.formatIdentifier == AdjustmentList.formatIdentifier && step.formatVersion == AdjustmentList.formatVersion
    }

    /// Returns a step of an asset's history; nil if it shows the original.
    func step(_ wanted: Int, of asset: ObjectID) async throws(RPCError) -> EditStep? {
        try Self.step(wanted, in: try await history(EditHistory(asset: asset)))
    }

    private static func step(_ wanted: Int, in history: EditHistory.Result) throws(RPCError) -> EditStep? {
        guard wanted <= history.steps.count else {
            throw .stepNotFound(wanted, in: history)
        }
        guard wanted > 0, history.steps[wanted - 1].kind == .edit else { return nil }
        return history.steps[wanted - 1]
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

extension Asset {
    /// Returns the version of the asset that has these bytes; nil if it has none.
    func version(_ digest: String) -> (base: EditBase, source: AssetResource)? {
        for base in EditBase.allCases {
            if let source = resource(of: base).first(where: { $0.digest == digest }) { return (base, source) }
        }
        return nil
    }
}
