import Contracts
import Basics
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import Storage

/// Dispatches the catalog's requests, one line per method.
struct CatalogHandler: RequestHandler {
    let store: LibraryStore
    let writer: TransactionWriter
    let tail: ChangeLogTail
    let fetches: FetchEngine
    let history: HistoryReader
    let intake: ResourceIngestor
    let collector: ResourceCollector
    let delivery: ResourceDelivery
    let uploads: UploadRegistry
    let quarantine: Quarantine
    let backups: BackupService
    let rescans: RescanService
    let services: ServiceIdentities
    let edits: EditReader
    let state: ServiceState
    let clock: MonotonicClock
    let logger: Logger

    func limits(of method: String) -> MethodLimits { CatalogRequest.limits(of: method) }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        do {
            return try await answer(CatalogRequest(method: request.method, params: request.params), context)
        } catch {
            if CatalogErrorMapping.isFault(error) {
                logger.error("a request failed", metadata: ["method": "\(request.method)", "error": "\(error)"])
            }
            throw CatalogErrorMapping.rpcError(error)
        }
    }

    private func answer(
        _ request: CatalogRequest,
        _ context: RequestContext
    ) async throws -> Reply {
        switch request {
        case .fetchAssets(let fetch):
            try await catchUp(with: fetch.atLeast, context)
            return Reply(try await fetches.assets(fetch, owner: context.identity).json)
        case .fetchCollections(let fetch):
            try await catchUp(with: fetch.atLeast, context)
            return Reply(try await fetches.collections(fetch, owner: context.identity).json)
        case .fetchLists(let fetch):
            try await catchUp(with: fetch.atLeast, context)
            return Reply(try await fetches.lists(fetch).json)
        case .counts(let counts):
            try await catchUp(with: counts.atLeast, context)
            return Reply(try await fetches.counts(counts, owner: context.identity).json)
        case .find(let find):
            try await catchUp(with: find.atLeast, context)
            return Reply(try await fetches.find(find, owner: context.identity).json)
        case .objects(let objects):
            try await catchUp(with: objects.atLeast, context)
            return Reply(try await fetches.objects(objects, owner: context.identity).json)
        case .keyAssets(let covers):
            try await catchUp(with: covers.atLeast, context)
            return Reply(try await fetches.keyAssets(covers, owner: context.identity).json)
        case .can(let can): return Reply(try await fetches.can(can).json)
        case .createTransient(let transient):
            return Reply(try await fetches.createTransient(transient, owner: context.identity).json)
        case .releaseTransient(let transient):
            fetches.transients.release(transient.id, owner: context.identity)
            return Reply(EmptyResult().json)
        case .details(let details): return Reply(try await fetches.details(details, owner: context.identity).json)
        case .fetchKeys(let keys): return try await KeyDelivery(store: store).keys(keys, context)
        case .perform(let changes): return Reply(try await perform(changes, context))
        case .since(let page): return Reply(encoded: try await history.since(page).encoded)
        case .follow(let stream): return try await history.follow(stream, context)
        case .token: return Reply(try await history.token().json)
        case .editsStatus(let status): return Reply(try await edits.status(status, for: context.identity).json)
        case .editsPending(let page): return Reply(try await edits.pending(page, for: context.identity).json)
        case .supports(let question):
            return Reply(SupportsResources.Result(isSupported: ResourceRules.supports(question.types)).json)
        case .readResource(let read): return try await delivery.read(read, context)
        case .beginUpload(let upload): return Reply(try await uploads.begin(upload, owner: context.identity).json)
        case .appendUpload(let upload):
            return Reply(
                try await uploads.append(upload, context.attachments, owner: context.identity).json
            )
        case .finishUpload(let upload):
            let finished = try await uploads.finish(upload, owner: context.identity)
            if finished.isHealed, let digest = ResourceDigest(finished.digest) { await intake.healing.healed([digest]) }
            return Reply(finished.json)
        case .cancelUpload(let upload):
            try await uploads.cancel(upload, owner: context.identity)
            return Reply(EmptyResult().json)
        case .reportHarm(let harm):
            try services.check(context.identity, for: ReportWorkerFault.method)
            return Reply(try await quarantine.report(harm).json)
        case .listQuarantine(let list): return Reply(try await quarantine.list(list).json)
        case .liftQuarantine(let lift):
            try services.check(context.identity, for: LiftQuarantine.method)
            return Reply(try await quarantine.lift(lift).json)
        case .backup(let backup): return Reply(try await backups.backup(backup, context).json)
        case .rescan(let rescan): return Reply(try await rescans.rescan(rescan, context).json)
        case .collect(let collect): return Reply(try await collector.collect(collect, identity: context.identity).json)
        case .discover: return Reply(state.document)
        case .health: return Reply(await state.health().json)
        case .figures: return Reply(await state.counts())
        }
    }

    // MARK: Writing

    private func perform(_ changes: PerformChanges, _ context: RequestContext) async throws -> JSON {
        if changes.onBehalfOf != nil { try services.check(context.identity, for: "onBehalfOf") }
        let digest = Self.digest(of: changes, context.attachments)
        let key = changes.transaction.map {
            OutcomeKey(
                identity: changes.onBehalfOf ?? context.identity,
                client: changes.client,
                transaction: $0
            )
        }
        // A repeated request may use bytes or a snapshot that no longer exist, and does not need them, so its outcome
        // is looked up first. Other repeated requests are recognized within their commit.
        let leans = changes.recall || changes.requests.contains { $0.hasBytes || $0.hasSnapshot }
        if let key, leans, let known = try await store.read({ try $0.history.outcome(key) }) {
            return try known.result(for: digest, key)
        }
        guard !changes.recall else {
            throw ErrorCode.identifierNotFound.error("no transaction \"\(changes.transaction ?? "")\" was committed")
        }
        var origin = ChangeOrigin(identity: context.identity)
        origin.client = changes.client.isEmpty ? nil : changes.client
        origin.transaction = changes.transaction
        origin.onBehalfOf = changes.onBehalfOf
        let taken = TakenResources()
        do {
            let result = try await write(changes, context, taken) { prepared in
                var write = WriteRequest(changes: prepared, origin: origin, key: key, digest: digest)
                write.source = WriteSource(connection: context.connection, client: changes.onBehalfOf)
                return write
            }
            await uploads.taken(taken.uploads, owner: context.identity)
            // Up to here the stored bytes must not be collected.
            return await Self.result(result, healed: healed(taken))
        } catch {
            _ = await healed(taken)
            await collector.discard(taken.release())
            throw error
        }
    }

    /// Prepares and commits; repeats it once if the metadata of known bytes turns out to be needed.
    private func write(
        _ changes: PerformChanges,
        _ context: RequestContext,
        _ taken: TakenResources,
        _ request: ([PreparedChange]) -> WriteRequest
    ) async throws -> JSON {
        var alwaysReads = false
        while true {
            var prepared = try await intake.prepare(changes.requests, context, taken, alwaysReads: alwaysReads)
            for (index, request) in changes.requests.enumerated() {
                do {
                    prepared[index].snapshot = try await fetches.snapshot(for: request, owner: context.identity)
                } catch {
                    throw CatalogErrorMapping.rpcError(error).about(request: index)
                }
            }
            do throws(WriteFailure) {
                let result = try await writer.perform(request(prepared)).result
                await intake.removeMoved(changes.requests, prepared, context)
                return result
            } catch {
                switch error {
                case .refused(let refusal): throw refusal
                case .factsNeeded:
                    guard !alwaysReads else { throw ErrorCode.internalError.error("the bytes have no metadata") }
                    alwaysReads = true
                }
            }
        }
    }

    /// Removes damage marks of files that the request's bytes replaced.
    ///
    /// - Returns: the digests of these files
    private func healed(_ taken: TakenResources) async -> [ResourceDigest] {
        let digests = taken.healed
        if !digests.isEmpty { await intake.healing.healed(digests) }
        return digests
    }

    private static func result(_ result: JSON, healed: [ResourceDigest]) -> JSON {
        guard !healed.isEmpty, case .object(var members) = result else { return result }
        members["healed"] = JSON(healed.map(\.text))
        return .object(members)
    }

    /// Returns a digest of the request, 32 bytes: of the digest that a service passes for its client's request or else
    /// of the parameters in canonical form and every attachment.
    private static func digest(of changes: PerformChanges, _ attachments: [Bytes]) -> [UInt8] {
        if let asked = changes.requestDigest { return SHA256.hash(data: Array("request:\(asked)".utf8)).bytes }
        var hash = SHA256()
        hash.update(data: SHA256.hash(data: changes.json.canonical.bytes).bytes)
        for attachment in attachments { hash.update(data: SHA256.hash(data: attachment).bytes) }
        return hash.finalize().bytes
    }

    // MARK: Catching up

    /// Waits until the catalog has reached the sequence of a token that the client received elsewhere.
    ///
    /// - Throws: `behind` if that does not happen in time, `token_expired` if the token is of another history
    private func catchUp(with token: ChangeToken?, _ context: RequestContext) async throws {
        guard let token else { return }
        let head = try await store.read { try $0.head() }
        guard token.library == head.library else { throw CatalogErrorMapping.tokenExpired(token, head) }
        guard token.sequence > tail.head else { return }
        // Stops a little before the deadline, so that the client receives the reason.
        let left = context.deadlineMicroseconds.subtractingReportingOverflow(clock.nowMicroseconds())
        let patience = min(left.overflow ? .max : left.partialValue / 4 * 3, 30_000_000)
        let tail = tail
        let isReached = await TaskDelay.withTimeout(.microseconds(max(0, patience))) {
            await tail.wait(for: token.sequence)
        }
        guard isReached == true else {
            throw ErrorCode.behind.error(
                "the catalog is at \(tail.head) and has not reached \(token.sequence); try again later",
                ["head": .string(ChangeToken(library: head.library, sequence: tail.head).description)]
            )
        }
    }
}
