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

    /// - Returns: the encoded result
    /// - Throws: `id_reused` if the transaction id was used for other requests; the refusal of a request, with its index
    func perform(_ asked: PerformChanges, _ context: RequestContext) async throws -> Bytes {
        if asked.onBehalfOf != nil { try services.check(context.identity, for: "onBehalfOf") }
        guard !asked.recall || asked.transaction != nil else {
            throw ChangeError.recallWithoutTransaction
        }
        let permission = try permission(for: asked, context)
        let changes = try Self.allowed(asked, permission, context)
        // The digest is compared only if the request is repeated, which is impossible without an id.
        let digest =
            changes.transaction == nil ? [] : RequestDigest.digest(of: changes, context.attachments)
        let key = changes.transaction.map {
            OutcomeKey(
                identity: changes.onBehalfOf ?? context.identity,
                client: changes.client,
                transaction: $0
            )
        }
        // A repeated request may use bytes or a snapshot that no longer exist, and does not need them, so its outcome is
        // looked up first. Other repeated requests are recognized within their commit.
        let consent = ConsentSummary(changes.requests, askedBy: permission.consent)
        let isLookedUp =
            consent != nil || changes.recall || changes.requests.contains { $0.hasBytes || $0.hasSnapshot }
        if let key, isLookedUp, let known = try await store.read({ try $0.history.outcome(key) }) {
            let isUnchecked = changes.recall && changes.requests.isEmpty && changes.requestDigest == nil
            return try known.reply(for: isUnchecked ? known.digest : digest, key)
        }
        guard !changes.recall else {
            throw CatalogError.transactionNotFound(changes.transaction ?? "")
        }
        if let consent {
            let identity = changes.onBehalfOf ?? context.identity
            // A service passes the digest of its client's request; its own requests differ if it repeats them.
            var consentDigest = digest
            if key != nil, changes.onBehalfOf == nil {
                consentDigest = RequestDigest.consentDigest(
                    of: changes,
                    context.attachments,
                    uploads: try await uploadDigests(changes.requests, context.identity)
                )
            }
            try await grants.questions.require(
                consent,
                of: changes,
                key,
                consentDigest,
                identity: identity,
                context
            )
        }
        var origin = ChangeOrigin(identity: context.identity)
        origin.client = changes.client.isEmpty ? nil : changes.client
        origin.transaction = changes.transaction
        origin.onBehalfOf = changes.onBehalfOf
        let uncommitted = UncommittedResources()
        do {
            let reply = try await write(changes, context, uncommitted) { prepared in
                var write = WriteRequest(changes: prepared, origin: origin, key: key, digest: digest)
                write.source = WorkSource(of: context, onBehalfOf: changes.onBehalfOf)
                write.reportsSameImage = permission.seesEverything
                write.uploadsAgain = !permission.seesEverything
                if permission.role == .addOnly {
                    write.addOnly = grants.addOnlyClient(changes.onBehalfOf ?? context.identity)
                }
                if permission.role == .limited {
                    write.limited = grants.registry.grant(of: changes.onBehalfOf ?? context.identity)
                }
                // The access of the user who runs the services cannot be withdrawn.
                guard permission.role != .host else { return write }
                write.checkAccess = { () throws(RPCError) in
                    let now = try self.permission(for: changes, context)
                    guard now.role == permission.role else {
                        throw CatalogErrorMapping.rpcError(GrantError.viewChanged(context.identity))
                    }
                }
                return write
            }
            // Most transactions have no uploads and need not wait for the actor.
            if !uncommitted.uploads.isEmpty {
                await uploads.noteCommitted(uncommitted.uploads, identity: context.identity)
            }
            if !uncommitted.isEmpty {
                let followUp = Task { [healed = uncommitted.healed] in await healing.healed(healed) }
                // To other clients, the time of the reply would reveal that the library had the file.
                if permission.seesEverything { await followUp.value }
            }
            // Up to here the stored bytes must not be collected.
            return try Self.reply(reply, healed: permission.seesEverything ? uncommitted.healed : [])
        } catch {
            // The bytes of an upload that an asset may have are not removed when the upload expires.
            if uncommitted.isMaybeCommitted {
                await uploads.noteCommitted(uncommitted.uploads, identity: context.identity)
            }
            await healing.healed(uncommitted.healed)
            await collector.discard(uncommitted.release())
            throw error
        }
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
    /// - Throws: the refusal if it may not even add
    private func permission(for changes: PerformChanges, _ context: RequestContext) throws(RPCError) -> Permission {
        // Only requests from connections have a cached permission; what the catalog itself does needs no permission.
        let own = context.cachedPermission.map { Permission(byte: $0.value) } ?? Permission(.host)
        let permission = changes.onBehalfOf.map { grants.registry.permission(onBehalfOf: $0) } ?? own
        let identity = changes.onBehalfOf ?? context.identity
        // A service may always record that it did not do something for a client.
        let isEnding = changes.onBehalfOf != nil && changes.requests.allSatisfy(\.isFailure)
        if !isEnding, let error = permission.refusal(of: PerformChanges.method, needing: .add, for: identity) {
            throw error
        }
        return permission
    }

    /// Returns the transaction as an identity may make it.
    ///
    /// An identity that may only add creates assets and nothing else; one that sees a list of assets may also change
    /// the assets on its list, one by one. Neither learns anything about other assets: bytes that the library already
    /// has become a second asset, and no property is changed that concerns other frames of a burst.
    private static func allowed(
        _ changes: PerformChanges,
        _ permission: Permission,
        _ context: RequestContext
    ) throws(RPCError) -> PerformChanges {
        guard !permission.seesEverything else { return changes }
        let isLimited = permission.role == .limited
        let identity = changes.onBehalfOf ?? context.identity
        var changes = changes
        for (index, request) in changes.requests.enumerated() {
            guard case .createAsset(var create) = request else {
                if changes.onBehalfOf != nil, request.isFailure { continue }
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
            changes.requests[index] = .createAsset(create)
        }
        return changes
    }

    /// Prepares and commits the transaction; does so once more if the metadata of known bytes turns out to be needed.
    private func write(
        _ changes: PerformChanges,
        _ context: RequestContext,
        _ uncommitted: UncommittedResources,
        _ makeWriteRequest: ([PreparedChange]) -> WriteRequest
    ) async throws -> Bytes {
        let hasBytes = changes.requests.contains(where: \.hasBytes)
        var alwaysReads = false
        while true {
            var prepared = changes.requests.map { PreparedChange($0) }
            if hasBytes {
                prepared = try await ingestor.prepare(changes.requests, context, uncommitted, alwaysReads: alwaysReads)
            }
            if changes.requests.contains(where: \.hasSnapshot) {
                let snapshots = try await fetches.snapshots(for: changes.requests, identity: context.identity)
                for (index, snapshot) in snapshots { prepared[index].snapshot = snapshot }
            }
            if hasBytes { try await ingestor.makeDurable(uncommitted) }
            do throws(WriteFailure) {
                let performed = try await writer.perform(makeWriteRequest(prepared))
                grants.review(performed)
                guard hasBytes else { return performed.reply }
                await ingestor.removeMoved(changes.requests, prepared, context)
                if let lost = try? await restored(performed.reply, changes.requests, prepared) {
                    uncommitted.noteRestored(lost)
                }
                return performed.reply
            } catch {
                switch error {
                case .refused(let refusal): throw refusal
                case .unknown(let refusal):
                    uncommitted.noteUnknownCommit()
                    throw refusal
                case .factsNeeded:
                    guard !alwaysReads else { throw ChangeError.noMetadata }
                    alwaysReads = true
                }
            }
        }
    }

    /// Returns the original files of existing assets that were lost, and that the requests have stored again. A file
    /// that is only referenced, or only in remote storage, was not lost.
    private func restored(
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
                try await store.read({ try $0.remoteObjects.readableSize(of: digest) }) == nil
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
        // Only services send it; whether its asset is on the list is checked where it is applied.
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
