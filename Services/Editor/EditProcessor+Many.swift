import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Storage

extension ApplyEdit {
    /// True if the edit may be rendered again after another client has changed the asset meanwhile.
    var isUnconditional: Bool { ifContentRevision == nil && ifRevision == nil }
}

extension EditPriority {
    var workerPriority: WorkerPriority {
        switch self {
        case .high: .high
        case .normal: .normal
        case .low: .low
        }
    }
}

/// Edits of one asset, of several, or of all assets of a fetch. Each is its own transaction, so that completed edits
/// persist if later ones fail.
extension EditProcessor {
    /// The notification sent after each part of the work: `{done, failed, total}`.
    static let progress = "edits.progress"

    /// Handles `edits.apply`. The response for one asset is an ``EditOutcome``, for several ``EditOutcomes``.
    func apply(_ edits: ApplyEdits, _ context: RequestContext) async throws(RPCError) -> JSON {
        guard [edits.asset != nil, !edits.assets.isEmpty, edits.fetch != nil].count(where: { $0 }) == 1 else {
            throw .appliesToNothing
        }
        if let asset = edits.asset {
            let access = NetworkAccess(isAllowed: edits.isNetworkAccessAllowed, client: context)
            let requestDigest = edits.enhances ? EditDigest.of(enhancing: edits, asset) : nil
            if let outcome = try await storedOutcome(edits, asset, requestDigest, context) { return outcome.json }
            let edit = try await edit(edits, asset, access)
            guard !edits.isDryRun else { return try await validate(edit) }
            let notifier = context.notifier
            let progress = VideoProgress { part in
                // The client may not accept notifications.
                _ = try? await notifier.notify(
                    Self.progress,
                    ["done": 0, "failed": 0, "total": 1, "part": .double(part)]
                )
            }
            return try await apply(
                edit,
                for: context.identity,
                priority: edits.priority.workerPriority,
                requestDigest: requestDigest,
                access: access,
                progress: { progress.update($0) }
            ).json
        }
        guard edits.ifRevision == nil, edits.ifContentRevision == nil else {
            throw .revisionOfSeveral
        }
        let assets = try await assets(edits.assets, edits.fetch)
        // Several downloads at a time have no common progress; `edits.progress` counts the assets.
        let access = NetworkAccess(isAllowed: edits.isNetworkAccessAllowed)
        return try await runForEach(assets, isDryRun: edits.isDryRun, context.notifier) { asset throws(RPCError) in
            let requestDigest = edits.enhances ? EditDigest.of(enhancing: edits, asset) : nil
            if let outcome = try await storedOutcome(edits, asset, requestDigest, context) { return outcome.json }
            let edit = try await edit(edits, asset, access)
            guard !edits.isDryRun else { return try await validate(edit) }
            return try await apply(
                edit,
                for: context.identity,
                priority: edits.priority.workerPriority,
                requestDigest: requestDigest,
                access: access
            ).json
        }
    }

    /// Handles `edits.copy`.
    func copy(_ copy: CopyEdits, _ context: RequestContext) async throws(RPCError) -> JSON {
        guard copy.to.isEmpty != (copy.fetch == nil) else {
            throw .copiesToNothing
        }
        let assets = try await assets(copy.to, copy.fetch).filter { $0 != copy.from }
        let found: Result<AdjustmentList, RPCError>
        do throws(RPCError) { found = .success(try await list(of: copy.from)) } catch { found = .failure(error) }
        if copy.transaction == nil { _ = try found.get() }
        return try await runForEach(assets, isDryRun: copy.isDryRun, context.notifier) { asset throws(RPCError) in
            let name = copy.transaction.map { "\($0).\(asset.text)" }
            // A repeated copy matches the earlier one even if the asset it was copied from has changed since.
            let requestDigest = EditDigest.of(copy, asset)
            if let name {
                let transaction = EditTransaction(
                    identity: context.identity,
                    client: copy.client,
                    transaction: name,
                    digest: requestDigest
                )
                if let outcome = try await storedOutcome(asset, transaction) { return outcome.json }
            }
            var list = try found.get()
            // A time in one video has no meaning in another.
            list.livePhoto?.keyFrame = nil
            if !copy.includesGeometry { list.operations.removeAll(where: \.kind.isGeometric) }
            let edit = ApplyEdit(
                asset: asset,
                adjustments: list,
                mode: copy.mode,
                client: copy.client,
                transaction: name
            )
            guard !copy.isDryRun else { return try await validate(edit) }
            return try await apply(
                edit,
                for: context.identity,
                priority: copy.priority.workerPriority,
                requestDigest: requestDigest,
                access: NetworkAccess(isAllowed: copy.isNetworkAccessAllowed)
            ).json
        }
    }

    /// Handles `edits.suggest`.
    func suggest(_ suggest: SuggestEdit, _ context: RequestContext) async throws(RPCError) -> SuggestEdit.Result {
        let access = NetworkAccess(isAllowed: suggest.isNetworkAccessAllowed, client: context)
        return SuggestEdit.Result(
            adjustments: try await suggestion(for: suggest.asset, atLeast: suggest.atLeast, access)
        )
    }

    // MARK: - Parts

    /// Returns the outcome of an edit with suggested operations if it was committed before; nil for other edits, and
    /// without a transaction id.
    ///
    /// - Parameter requestDigest: the digest of such an edit
    private func storedOutcome(
        _ edits: ApplyEdits,
        _ asset: ObjectID,
        _ requestDigest: String?,
        _ context: RequestContext
    ) async throws(RPCError) -> EditOutcome? {
        guard let requestDigest, let name = Self.transaction(of: edits, asset), !edits.isDryRun else { return nil }
        let transaction = EditTransaction(
            identity: context.identity,
            client: edits.client,
            transaction: name,
            digest: requestDigest
        )
        return try await storedOutcome(asset, transaction)
    }

    /// Returns the transaction id of one asset's edit.
    private static func transaction(of edits: ApplyEdits, _ asset: ObjectID) -> String? {
        edits.transaction.map { edits.asset == nil ? "\($0).\(asset.text)" : $0 }
    }

    /// Returns the request for one asset, with all values explicit.
    private func edit(
        _ edits: ApplyEdits,
        _ asset: ObjectID,
        _ access: NetworkAccess
    ) async throws(RPCError) -> ApplyEdit {
        var adjustments = edits.adjustments
        if edits.enhances {
            adjustments.operations = try await suggestion(for: asset, access).operations + adjustments.operations
        }
        return ApplyEdit(
            asset: asset,
            adjustments: adjustments,
            magick: edits.magick,
            mode: edits.mode,
            engine: edits.engine,
            ifContentRevision: edits.ifContentRevision,
            ifRevision: edits.ifRevision,
            client: edits.client,
            transaction: Self.transaction(of: edits, asset)
        )
    }

    /// The effect of a published edit on its asset.
    enum PublishedTarget {
        case original
        case step(EditStep)
        case edit(ApplyEdit)
    }

    /// Returns the target of a published edit, with all values explicit.
    func target(of published: PublishEdit, _ access: NetworkAccess) async throws(RPCError) -> PublishedTarget {
        var edit = published.request
        if published.reverts { return .original }
        if let source = published.source { edit.adjustments = try await list(of: source) }
        if let number = published.step {
            guard let step = try await step(number, of: published.asset) else { return .original }
            guard published.mode == .append || published.enhances else { return .step(step) }
            edit.adjustments = try list(of: step, published.asset)
        }
        if published.enhances {
            edit.adjustments.operations =
                try await suggestion(for: published.asset, access).operations + edit.adjustments.operations
        }
        return .edit(edit)
    }

    /// Returns operations that would improve the version that an edit starts from.
    private func suggestion(
        for id: ObjectID,
        atLeast token: ChangeToken? = nil,
        _ access: NetworkAccess
    ) async throws(RPCError) -> AdjustmentList {
        let found = try await catalog.asset(id, atLeast: token)
        let input = try EditPlan.input(of: found.asset).source
        try await require(input.digest, of: found, access)
        let file = try resources.open(input.digest)
        let job = WorkerJob(method: EditWorker.suggestMethod, files: [file.descriptor])
        let result: WorkerResult
        do throws(WorkerFailure) { result = try await workers.run(job, over: input.digest, priority: .high) } catch {
            throw error.rpcError
        }
        guard let list = try? withExtendedLifetime(file, { try AdjustmentList(json: result.result) }) else {
            throw .invalidResult(expected: "a list of adjustments")
        }
        return list
    }

    /// Returns the adjustments of the last edit if this editor made it.
    func list(of id: ObjectID) async throws(RPCError) -> AdjustmentList {
        let asset = try await catalog.asset(id).asset
        guard asset.hasAdjustments else {
            throw .nothingToCopy(from: id)
        }
        return try EditPlan.currentList(of: asset, data: await adjustmentData(of: asset))
    }

    private func assets(_ named: [ObjectID], _ fetch: FetchDescription?) async throws(RPCError) -> [ObjectID] {
        guard let fetch else { return named }
        var found: [ObjectID] = []
        for try await asset in catalog.library.allAssets(fetch) {
            found.append(asset.id)
            guard found.count <= ApplyEdits.maxAssets else {
                throw .tooManyAssets()
            }
        }
        return found
    }

    /// Returns the outcome that an edit would have, without rendering it.
    private func validate(_ edit: ApplyEdit) async throws(RPCError) -> JSON {
        let asset = try await catalog.asset(edit.asset).asset
        let data = EditPlan.needsAdjustmentData(edit.mode, of: asset) ? try await adjustmentData(of: asset) : nil
        let plan = try EditPlan(edit, of: asset, adjustmentData: data)
        return [
            "asset": .string(asset.id.text), "dryRun": true,
            "contentRevision": .string(plan.contentRevision.description),
            "source": .string(plan.source.digest), "adjustments": plan.adjustments.json,
            "engine": .string((plan.engine ?? engine).rawValue),
        ]
    }

    /// Runs work for each asset, a few at a time, and sends progress notifications.
    ///
    /// - Throws: `user_cancelled` with the number of completed assets, if the request is cancelled
    private func runForEach(
        _ assets: [ObjectID],
        isDryRun: Bool,
        _ notifier: Notifier,
        _ body: @escaping @Sendable (ObjectID) async throws(RPCError) -> JSON
    ) async throws(RPCError) -> JSON {
        var tally = Tally(assets)
        let step = max(1, assets.count / 100)
        await withTaskGroup(of: Finished.self) { group in
            var next = 0
            func start() {
                guard next < assets.count, !Task.isCancelled else { return }
                let index = next
                next += 1
                group.addTask { await Finished(index, assets[index], body) }
            }
            for _ in 0..<Self.maxConcurrent { start() }
            while let finished = await group.next() {
                tally.add(finished.result, of: finished.index)
                if tally.finished % step == 0 || tally.finished == assets.count {
                    // The client may not accept notifications.
                    _ = try? await notifier.notify(Self.progress, tally.progress)
                }
                start()
            }
        }
        guard !Task.isCancelled else {
            throw .cancelled(after: tally.done, of: assets.count, tally.progress)
        }
        return tally.outcomes(isDryRun: isDryRun).json
    }

    /// The result of one asset.
    ///
    /// A structure, because Swift 6.3 miscompiles a tuple here: in optimised builds the index in a closure that catches
    /// a typed error was read from other memory.
    private struct Finished: Sendable {
        let index: Int
        let result: Result<JSON, RPCError>

        init(_ index: Int, _ asset: ObjectID, _ body: (ObjectID) async throws(RPCError) -> JSON) async {
            self.index = index
            do throws(RPCError) { result = .success(try await body(asset)) } catch { result = .failure(error) }
        }
    }

    /// The results of one request so far.
    private struct Tally {
        private let assets: [ObjectID]
        private var results: [JSON]
        private var isChanged = false
        private var last: ChangeToken?
        private(set) var done = 0
        private var failed = 0

        init(_ assets: [ObjectID]) {
            self.assets = assets
            results = [JSON](repeating: .null, count: assets.count)
        }

        var finished: Int { done + failed }

        var progress: JSONObject {
            ["done": JSON(done), "failed": JSON(failed), "total": JSON(assets.count)]
        }

        mutating func add(_ result: Result<JSON, RPCError>, of index: Int) {
            switch result {
            case .success(let outcome):
                done += 1
                results[index] = outcome
                if outcome["isChanged"]?.boolValue == true { isChanged = true }
                let token = outcome["token"]?.stringValue.flatMap { ChangeToken($0) }
                if let token, token.sequence > last?.sequence ?? -1 { last = token }
            case .failure(let error):
                failed += 1
                results[index] = [
                    "asset": .string(assets[index].text),
                    "error": ["name": .string(error.name), "message": .string(error.message)],
                ]
            }
        }

        func outcomes(isDryRun: Bool) -> EditOutcomes {
            EditOutcomes(
                token: last,
                isChanged: isChanged,
                done: done,
                failed: failed,
                isDryRun: isDryRun,
                results: results
            )
        }
    }

    /// The maximum number of assets of one request processed at a time.
    private static let maxConcurrent = 4
}
