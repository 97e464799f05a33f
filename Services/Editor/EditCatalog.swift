import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// The name under which a client's edit is committed, and what the client asked for.
struct EditTransaction: Sendable {
    /// The identity of the client that the editor acts for.
    var identity: String
    var client: String
    /// Nil for a published edit: its state says whether it was applied.
    var transaction: String?
    /// See ``EditDigest``.
    var digest: String?
}

/// The editor's conversation with the catalog, which alone decides and remembers.
struct EditCatalog: Sendable {
    let library: PhotoLibrary
    /// A render up to this size travels with the transaction; a larger one is uploaded before it.
    let largestAttachment: Int

    /// How often a transaction is sent again after the connection broke.
    private static let attempts = 5

    /// An asset as it is now, and the page on which it was read.
    struct Found: Sendable {
        let asset: Asset
        let page: FetchAssets.Result

        /// Throws `quarantined` where bytes of the asset are opened no more.
        func requireOpen(_ digest: String) throws(RPCError) {
            guard let entry = page.quarantine(of: digest) else { return }
            throw entry.refusal(of: asset.originalFilename ?? asset.id.text)
        }
    }

    /// The asset as it is now.
    func asset(_ id: ObjectID) async throws(RPCError) -> Found {
        var fetch = FetchDescription(.assets)
        fetch.ids = [id]
        let page = try await library.catalog.ask(FetchAssets(fetch: fetch, count: 1)).result
        guard let asset = page.assets.first else {
            throw Refusal.identifierNotFound.error("there is no asset \(id)", ["id": .string(id.text)])
        }
        return Found(asset: asset, page: page)
    }

    /// The outcome of a transaction that was committed before; nil where there was none.
    ///
    /// - Throws: `id_reused` where the name was used for something else
    func recall(_ transaction: EditTransaction) async throws(RPCError) -> PerformChanges.Result? {
        do throws(RPCError) {
            return try await perform([], attachments: [], transaction, recall: true)
        } catch  where error.refusal == .identifierNotFound {
            return nil
        }
    }

    /// Commits a render as one change, and with it the published edit that it carries out, if any.
    ///
    /// - Throws: `conflict` where the asset has other pixels than the plan was made of, or the edit is finished
    func commit(
        _ render: Render,
        of plan: EditPlan,
        asset: ObjectID,
        as transaction: EditTransaction,
        publishedEdit: String? = nil
    ) async throws(RPCError) -> PerformChanges.Result {
        let data = plan.adjustments.json.bytes
        let source: ResourceSource
        var attachments = [data]
        if render.bytes.count <= largestAttachment {
            source = .attachment(1)
            attachments.append(render.bytes)
        } else {
            source = .upload(try await library.upload(render.bytes))
        }
        let edit = ChangeRequest.EditAsset(
            id: asset,
            render: NewResource(type: .fullSizePhoto, source: source),
            adjustmentData: AdjustmentData(
                formatIdentifier: AdjustmentList.formatIdentifier,
                formatVersion: AdjustmentList.formatVersion,
                attachment: 0
            ),
            ifContentRevision: plan.contentRevision,
            publishedEdit: publishedEdit
        )
        var requests: [ChangeRequest] = [.editAsset(edit)]
        if plan.revertsFirst {
            requests.insert(
                .revertAsset(ChangeRequest.RevertAsset(id: asset, ifContentRevision: plan.contentRevision)),
                at: 0
            )
        }
        if let revision = plan.ifRevision {
            // Changes nothing, and is refused where the asset has changed in any way.
            let guarding = ChangeRequest.UpdateAsset(id: .id(asset), set: AssetPatch(), ifRevision: revision)
            requests.insert(.updateAsset(guarding), at: 0)
        }
        return try await perform(requests, attachments: attachments, transaction)
    }

    /// Takes an asset back to its original, and with it the published edit that asks for it, if any.
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

    /// Sends a transaction, again under the same name where the connection broke before its answer.
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
            recall: recall
        )
        for _ in 1..<Self.attempts {
            do throws(RPCError) {
                return try await library.catalog.ask(request, attachments: attachments).result
            } catch  where error.refusal == .connectionLost {
                // The next attempt waits until the catalog is there.
                continue
            }
        }
        return try await library.catalog.ask(request, attachments: attachments).result
    }
}
