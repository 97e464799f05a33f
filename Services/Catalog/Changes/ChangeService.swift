import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Implements `changes.perform`: performs a transaction once, however often it is sent.
///
/// Bytes are stored first, then the writer commits. Bytes that no transaction refers to in the end are removed.
///
/// Here and in the writer, `call` is a whole `changes.perform`, `requests` are the changes in it, `prepared` are these
/// with their bytes, and `write` is the transaction that they become.
struct ChangeService: Sendable {
    let store: LibraryStore
    let writer: TransactionWriter
    let ingestor: ResourceIngestor
    let fetches: FetchService
    let uploads: UploadRegistry
    let healing: ResourceHealing
    let collector: ResourceCollector
    let services: ServiceIdentities
    let grants: GrantService

    /// Performs a transaction, or returns its outcome if it was performed before.
    ///
    /// - Returns: the encoded ``PerformChanges/Result``
    /// - Throws: `id_reused` if the transaction id was used for other requests; the refusal of a request with its index
    func perform(_ call: PerformChanges, _ context: RequestContext) async throws -> Bytes {
        if call.onBehalfOf != nil { try services.check(context.identity, for: "onBehalfOf") }
        guard !call.recalls || call.transaction != nil else {
            throw ChangeError.recallWithoutTransaction
        }
        let permission = try permission(for: call, context)
        let call = try Self.restrict(call, to: permission, context)
        let key = call.transaction.map {
            OutcomeKey(identity: call.onBehalfOf ?? context.identity, client: call.client, transaction: $0)
        }
        // The digest is compared only if the transaction is repeated, which is impossible without an id.
        let digest = key == nil ? [] : RequestDigest.digest(of: call, context.attachments)
        var consent: ConsentSummary?
        // Most clients never need consent, so most transactions need no summary.
        if permission.consent != .never {
            let summary = ConsentSummary(call.requests)
            if summary.needsConsent(permission.consent) { consent = summary }
        }
        let hasBytes = call.requests.contains(where: \.hasBytes)
        let hasSnapshot = call.requests.contains(where: \.hasSnapshot)
        // A repeated transaction may use bytes or a snapshot that no longer exist, and does not need them, so its
        // outcome is looked up first. Other repeated transactions are recognized within their commit.
        let isLookedUp = consent != nil || call.recalls || hasBytes || hasSnapshot
        if let key, isLookedUp, let known = try await store.read({ try $0.history.outcome(key) }) {
            let isUnchecked = call.recalls && call.requests.isEmpty && call.requestDigest == nil
            return try known.reply(for: isUnchecked ? known.digest : digest, key)
        }
        guard !call.recalls else {
            throw CatalogError.transactionNotFound(call.transaction ?? "")
        }
        if let consent { try await requireConsent(consent, to: call, key, digest, context) }
        let makeWrite = { (prepared: [PreparedChange]) in
            makeWriteRequest(prepared, of: call, key, digest, permission, context)
        }
        if hasBytes { return try await performWithBytes(call, permission, context, makeWrite) }
        var prepared = call.requests.map { PreparedChange($0) }
        if hasSnapshot { try await addSnapshots(to: &prepared, identity: context.identity) }
        do throws(WriteFailure) {
            return try await commit(makeWrite(prepared)).reply
        } catch {
            throw error.clientError
        }
    }

    /// Returns the transaction for the writer.
    private func makeWriteRequest(
        _ prepared: [PreparedChange],
        of call: PerformChanges,
        _ key: OutcomeKey?,
        _ digest: [UInt8],
        _ permission: Permission,
        _ context: RequestContext
    ) -> WriteRequest {
        var origin = ChangeOrigin(identity: context.identity)
        origin.client = call.client.isEmpty ? nil : call.client
        origin.transaction = call.transaction
        origin.onBehalfOf = call.onBehalfOf
        var write = WriteRequest(prepared: prepared, origin: origin, key: key, digest: digest)
        write.source = WorkSource(of: context, onBehalfOf: call.onBehalfOf)
        write.reportsSameImage = permission.seesEverything
        write.uploadsAgain = !permission.seesEverything
        if permission.role == .addOnly {
            write.addOnly = grants.addOnlyClient(call.onBehalfOf ?? context.identity)
        }
        if permission.role == .limited {
            write.limited = grants.registry.grant(of: call.onBehalfOf ?? context.identity)
        }
        // The access of the user who runs the services cannot be withdrawn.
        guard permission.role != .host else { return write }
        write.checkAccess = { () throws(RPCError) in
            let current = try self.permission(for: call, context)
            guard current.role == permission.role else {
                throw CatalogErrorMapping.rpcError(GrantError.viewChanged(context.identity))
            }
        }
        return write
    }

    /// Commits a transaction, together with others that wait.
    private func commit(_ write: WriteRequest) async throws(WriteFailure) -> PerformedWrite {
        let performed = try await writer.perform(write)
        // The new assets of a client with limited access have joined the list of its grant.
        if performed.grant != nil { grants.review(performed) }
        return performed
    }

    private func addSnapshots(to prepared: inout [PreparedChange], identity: String) async throws {
        let snapshots = try await fetches.snapshots(for: prepared.map(\.request), identity: identity)
        for (index, snapshot) in snapshots { prepared[index].snapshot = snapshot }
    }

    // MARK: Consent

    /// Waits until the owner has consented to a transaction.
    private func requireConsent(
        _ summary: ConsentSummary,
        to call: PerformChanges,
        _ key: OutcomeKey?,
        _ digest: [UInt8],
        _ context: RequestContext
    ) async throws {
        // A service passes the digest of its client's request, because its own requests differ if it repeats them.
        var consentDigest = digest
        if key != nil, call.onBehalfOf == nil {
            consentDigest = RequestDigest.consentDigest(
                of: call,
                context.attachments,
                uploads: try await uploadDigests(call.requests, context.identity)
            )
        }
        try await grants.consent.require(
            summary,
            of: call,
            key,
            consentDigest,
            identity: call.onBehalfOf ?? context.identity,
            context
        )
    }

    /// Returns the digests of the uploads that requests name, by their names.
    ///
    /// - Throws: the refusal of a request whose upload does not exist or is not finished, with its index
    private func uploadDigests(_ requests: [ChangeRequest], _ identity: String) async throws -> [String: String] {
        var digests: [String: String] = [:]
        for (index, request) in requests.enumerated() {
            for name in request.uploads {
                do {
                    digests[name] = try await uploads.digest(of: name, identity: identity)
                } catch {
                    throw CatalogErrorMapping.rpcError(error).about(request: index)
                }
            }
        }
        return digests
    }

    // MARK: Access

    /// Returns the permission of the client of a transaction.
    ///
    /// - Throws: the refusal if the client may not even add assets
    private func permission(for call: PerformChanges, _ context: RequestContext) throws(RPCError) -> Permission {
        // Only requests from connections have a cached permission; changes of the catalog itself need none.
        let own = context.cachedPermission.map { Permission(byte: $0.value) } ?? Permission(.host)
        let permission = call.onBehalfOf.map { grants.registry.permission(onBehalfOf: $0) } ?? own
        let identity = call.onBehalfOf ?? context.identity
        // A service may always record that an edit of a client has failed.
        let isEnding = call.onBehalfOf != nil && call.requests.allSatisfy(\.isFailure)
        if !isEnding, let error = permission.refusal(of: PerformChanges.method, needing: .add, for: identity) {
            throw error
        }
        return permission
    }

    /// Returns the transaction with the restrictions of a permission.
    ///
    /// An identity that may only add creates assets and nothing else; one that sees a list of assets may also change
    /// the assets on its list, one by one. Neither learns anything about other assets: bytes that the library already
    /// has become a second asset, and no property is changed that concerns other frames of a burst.
    ///
    /// - Throws: the refusal of a request that the identity may not make, with its index
    private static func restrict(
        _ call: PerformChanges,
        to permission: Permission,
        _ context: RequestContext
    ) throws(RPCError) -> PerformChanges {
        guard !permission.seesEverything else { return call }
        let isLimited = permission.role == .limited
        let identity = call.onBehalfOf ?? context.identity
        var call = call
        for (index, request) in call.requests.enumerated() {
            guard case .createAsset(var create) = request else {
                if call.onBehalfOf != nil, request.isFailure { continue }
                if isLimited, request.isOfListedAssets { continue }
                let error: GrantError =
                    isLimited
                    ? .notInLimitedView(identity, request.name) : .onlyAdds(identity, request: request.name)
                throw CatalogErrorMapping.rpcError(error).about(request: index)
            }
            guard create.burst == nil, !create.set.concernsBurst else {
                throw CatalogErrorMapping.rpcError(GrantError.onlyAddsNoFrames(identity)).about(request: index)
            }
            create.ifDuplicate = .create
            call.requests[index] = .createAsset(create)
        }
        return call
    }

    // MARK: Bytes

    /// Stores the bytes of a transaction and commits it; does so once more if the metadata of known bytes turns out to
    /// be needed.
    private func performWithBytes(
        _ call: PerformChanges,
        _ permission: Permission,
        _ context: RequestContext,
        _ makeWrite: ([PreparedChange]) -> WriteRequest
    ) async throws -> Bytes {
        let uncommitted = UncommittedResources()
        do {
            let reply = try await commitWithBytes(call, context, uncommitted, makeWrite)
            // Most transactions have no uploads and need not wait for the actor.
            if !uncommitted.uploads.isEmpty {
                await uploads.noteCommitted(uncommitted.uploads, identity: context.identity)
            }
            if !uncommitted.isEmpty {
                let followUp = Task { [healed = uncommitted.healed] in await healing.removeMarks(of: healed) }
                // To other clients, the time of the reply would reveal that the library had the file.
                if permission.seesEverything { await followUp.value }
            }
            // Up to here the stored bytes must not be collected.
            return try Self.reply(reply, healed: permission.seesEverything ? uncommitted.healed : [])
        } catch {
            // If an asset may have the bytes of an upload, they must not be removed when the upload expires.
            if uncommitted.isMaybeCommitted {
                await uploads.noteCommitted(uncommitted.uploads, identity: context.identity)
            }
            await healing.removeMarks(of: uncommitted.healed)
            await collector.discard(uncommitted.release())
            throw error
        }
    }

    private func commitWithBytes(
        _ call: PerformChanges,
        _ context: RequestContext,
        _ uncommitted: UncommittedResources,
        _ makeWrite: ([PreparedChange]) -> WriteRequest
    ) async throws -> Bytes {
        var alwaysReads = false
        while true {
            var prepared = try await ingestor.prepare(call.requests, context, uncommitted, alwaysReads: alwaysReads)
            if call.requests.contains(where: \.hasSnapshot) {
                try await addSnapshots(to: &prepared, identity: context.identity)
            }
            try await ingestor.makeDurable(uncommitted)
            do throws(WriteFailure) {
                let performed = try await commit(makeWrite(prepared))
                await ingestor.removeMoved(call.requests, prepared, context)
                if let restored = try? await restoredFiles(performed.reply, call.requests, prepared) {
                    uncommitted.noteRestored(restored)
                }
                return performed.reply
            } catch {
                switch error {
                case .refused(let refusal): throw refusal
                case .unknown(let refusal):
                    uncommitted.noteUnknownCommit()
                    throw refusal
                case .metadataNeeded:
                    guard !alwaysReads else { throw ChangeError.noMetadata }
                    alwaysReads = true
                }
            }
        }
    }

    /// Returns the original files of existing assets that were lost, and that the requests have stored again. A file
    /// that is only referenced, or only in remote storage, was not lost.
    private func restoredFiles(
        _ reply: Bytes,
        _ requests: [ChangeRequest],
        _ prepared: [PreparedChange]
    ) async throws -> [ResourceDigest] {
        guard prepared.contains(where: { $0.resources.contains { $0.type.isOriginal && !$0.wasPresent } }),
            let duplicates = try JSON(parsing: reply)["duplicates"]?.arrayValue?.compactMap(\.stringValue)
        else { return [] }
        var digests: [ResourceDigest] = []
        for (request, change) in zip(requests, prepared) {
            guard case .createAsset(let create) = request, let ref = create.ref, duplicates.contains(ref),
                let original = change.resources.first(where: \.type.isOriginal), !original.wasPresent,
                let digest = ResourceDigest(original.digest),
                (try? ingestor.resources.reference(of: digest)) == nil,
                try await store.read({ try $0.uploadStates.readableSize(of: digest) }) == nil
            else { continue }
            digests.append(digest)
        }
        return digests
    }

    /// Returns the reply with the digests of healed files.
    private static func reply(_ reply: Bytes, healed: [ResourceDigest]) throws -> Bytes {
        guard !healed.isEmpty, case .object(var members) = try JSON(parsing: reply) else { return reply }
        members["healed"] = JSON(healed.map(\.text))
        return JSON.object(members).bytes
    }
}

extension ChangeRequest {
    /// True if the request changes nothing but the assets that it names.
    fileprivate var isOfListedAssets: Bool {
        switch self {
        case .updateAsset(let request): !request.set.concernsBurst
        case .deleteAssets, .trashAssets, .restoreAssets, .editAsset, .revertAsset: true
        // Only services send it; the transaction checks that its asset is on the list.
        case .acceptEdit: true
        default: false
        }
    }

    /// True if the request only records that a published edit was not applied.
    fileprivate var isFailure: Bool {
        if case .failEdit = self { return true }
        return false
    }
}

extension AssetPatch {
    /// True if other frames of a burst change too.
    fileprivate var concernsBurst: Bool { representsBurst != nil || isUserPick != nil }
}
