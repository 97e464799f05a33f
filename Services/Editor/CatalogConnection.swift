import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// The idempotency key of a client's edit, and a digest of the request.
struct EditTransaction: Sendable {
    /// The identity of the client that the editor acts for.
    var identity: String
    var client: String
    /// Nil for a published edit: its state in the catalog records whether it was applied.
    var transaction: String?
    /// The digest of the request; see ``EditDigest``.
    var digest: String?
}

/// The editor's requests to the catalog, which decides about edits and stores all state.
struct CatalogConnection: Sendable {
    let library: PhotoLibrary
    /// The name of this editor, the same after a restart.
    let editor: String
    /// The largest render sent with its transaction, in bytes; a larger one is uploaded before it.
    let largestAttachment: Int

    /// The maximum number of times that a transaction is sent, if the connection breaks.
    private static let maxAttempts = 5

    /// An asset as it is now, and the page it was read from.
    struct FetchedAsset: Sendable {
        let asset: Asset
        let page: FetchAssets.Result

        /// - Throws: `quarantined` if the resource with this digest must not be opened
        func requireNotQuarantined(_ digest: String) throws(RPCError) {
            if let entry = page.quarantine(of: digest) {
                throw entry.rpcError(of: asset.originalFilename ?? asset.id.text)
            }
        }
    }

    /// Returns the asset as it is now, also one in the trash: the catalog allows its edits (T-18).
    ///
    /// - Parameter token: the catalog responds once it has reached this token
    func asset(_ id: ObjectID, atLeast token: ChangeToken? = nil) async throws(RPCError) -> FetchedAsset {
        var fetch = FetchDescription(.assets)
        fetch.ids = [id]
        var page = try await library.catalog.ask(FetchAssets(fetch: fetch, count: 1, atLeast: token)).result
        if page.assets.isEmpty {
            // A fetch selects assets in the trash or the others. Both are read at the same sequence.
            fetch.inTrash = true
            page = try await library.catalog.ask(FetchAssets(fetch: fetch, token: page.token, count: 1)).result
        }
        guard let asset = page.assets.first else {
            throw .assetNotFound(id)
        }
        return FetchedAsset(asset: asset, page: page)
    }

    /// Returns the outcome of an earlier commit of the transaction; nil if there was none.
    ///
    /// - Throws: `id_reused` if the transaction id was used with other content
    func storedOutcome(_ transaction: EditTransaction) async throws(RPCError) -> PerformChanges.Result? {
        do throws(RPCError) {
            return try await perform([], attachments: [], transaction, recall: true)
        } catch  where error.errorCode == .identifierNotFound {
            return nil
        }
    }

    /// Commits a render as one change, with the video of a Live Photo if there is one, and together with the state of
    /// the published edit that it carries out, if any.
    ///
    /// - Throws: `conflict` if the asset's pixels are not those of the plan, or if the published edit is already
    ///   finished
    func commit(
        _ render: Render,
        pairedVideo: Render? = nil,
        of plan: EditPlan,
        asset: ObjectID,
        as transaction: EditTransaction,
        publishedEdit: String? = nil
    ) async throws(RPCError) -> PerformChanges.Result {
        var attachments = [plan.adjustments.json.bytes]
        let source: ResourceSource
        if let upload = render.upload {
            source = .upload(upload)
        } else {
            source = try await self.source(render.bytes, &attachments)
        }
        let edit = ChangeRequest.EditAsset(
            id: asset,
            render: NewResource(type: .fullSizePhoto, source: source),
            pairedVideo: pairedVideo?.upload.map { NewResource(type: .fullSizePairedVideo, source: .upload($0)) },
            adjustmentData: AdjustmentData(
                formatIdentifier: AdjustmentList.formatIdentifier,
                formatVersion: AdjustmentList.formatVersion,
                attachment: 0
            ),
            ifContentRevision: plan.contentRevision,
            inputToken: EditInputToken(
                asset: asset,
                contentRevision: plan.contentRevision,
                base: plan.base,
                digest: plan.source.digest
            ),
            publishedEdit: publishedEdit
        )
        var requests: [ChangeRequest] = [.editAsset(edit)]
        if let revision = plan.ifRevision {
            // Changes nothing, and is refused if the asset has changed in any way.
            let condition = ChangeRequest.UpdateAsset(id: .id(asset), set: AssetPatch(), ifRevision: revision)
            requests.insert(.updateAsset(condition), at: 0)
        }
        return try await perform(requests, attachments: attachments, transaction)
    }

    /// Commits an earlier version of an asset again: its render and its adjustment data as they were.
    ///
    /// - Throws: `conflict` if the asset's pixels are not those of the version's `contentRevision`, or if the published
    ///   edit is already finished
    func restore(
        _ version: EarlierVersion,
        asset: ObjectID,
        as transaction: EditTransaction,
        publishedEdit: String? = nil
    ) async throws(RPCError) -> PerformChanges.Result {
        var requests: [ChangeRequest] = []
        var attachments: [Bytes] = []
        func edit(_ render: Bytes, _ format: (String, String), _ data: Bytes) async throws(RPCError)
            -> ChangeRequest.EditAsset
        {
            attachments.append(data)
            let attachment = attachments.count - 1
            return ChangeRequest.EditAsset(
                id: asset,
                render: NewResource(type: .fullSizePhoto, source: try await source(render, &attachments)),
                adjustmentData: AdjustmentData(
                    formatIdentifier: format.0,
                    formatVersion: format.1,
                    attachment: attachment
                ),
                ifContentRevision: version.contentRevision
            )
        }
        if case .bytes(let base) = version.base {
            // Makes the base the current version, from which the edit below then starts.
            requests.append(.editAsset(try await edit(base, (EarlierVersion.baseFormat, "1"), [0])))
        }
        var restoring = try await edit(
            version.render,
            (version.formatIdentifier, version.formatVersion),
            version.adjustmentData
        )
        if case .existing(let base, let digest) = version.base {
            restoring.inputToken = EditInputToken(
                asset: asset,
                contentRevision: version.contentRevision,
                base: base,
                digest: digest
            )
        }
        restoring.publishedEdit = publishedEdit
        requests.append(.editAsset(restoring))
        return try await perform(requests, attachments: attachments, transaction)
    }

    /// Returns the source of a render: one more attachment or, if it is large, an upload.
    private func source(_ render: Bytes, _ attachments: inout [Bytes]) async throws(RPCError) -> ResourceSource {
        guard render.count + attachments.reduce(0, { $0 + $1.count }) <= largestAttachment else {
            return .upload(try await library.upload(render))
        }
        attachments.append(render)
        return .attachment(attachments.count - 1)
    }

    /// Reverts an asset to its original, together with the state of the published edit that requests it, if any.
    func revert(
        _ revert: RevertEdit,
        as transaction: EditTransaction,
        publishedEdit: String? = nil
    ) async throws(RPCError) -> PerformChanges.Result {
        let request = ChangeRequest.RevertAsset(
            id: revert.asset,
            ifContentRevision: revert.ifContentRevision,
            base: revert.base,
            publishedEdit: publishedEdit
        )
        return try await perform([.revertAsset(request)], attachments: [], transaction)
    }

    /// Sends a transaction. If the connection breaks before the response, sends it again under the same id.
    func perform(
        _ requests: [ChangeRequest],
        attachments: [Bytes] = [],
        _ transaction: EditTransaction,
        recall: Bool = false
    ) async throws(RPCError) -> PerformChanges.Result {
        let request = PerformChanges(
            requests: requests,
            client: transaction.client,
            transaction: transaction.transaction,
            onBehalfOf: transaction.identity,
            requestDigest: transaction.digest,
            recalls: recall
        )
        for _ in 1..<Self.maxAttempts {
            do throws(RPCError) {
                return try await library.catalog.ask(request, attachments: attachments).result
            } catch  where error.errorCode == .connectionLost {
                // The next attempt waits until the catalog is reachable.
                continue
            }
        }
        return try await library.catalog.ask(request, attachments: attachments).result
    }
}
