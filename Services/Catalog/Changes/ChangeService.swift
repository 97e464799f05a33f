import Contracts
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
    let fetches: FetchEngine
    let uploads: UploadRegistry
    let healing: ResourceHealing
    let collector: ResourceCollector
    let services: ServiceIdentities

    /// - Throws: `id_reused` if the transaction id was used for other requests; the refusal of a request, with its index
    func perform(_ changes: PerformChanges, _ context: RequestContext) async throws -> JSON {
        if changes.onBehalfOf != nil { try services.check(context.identity, for: "onBehalfOf") }
        guard !changes.recall || changes.transaction != nil else {
            throw ChangeError.recallWithoutTransaction
        }
        // Compared only if the request is repeated, which it cannot be without an id.
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
        let isLookedUp = changes.recall || changes.requests.contains { $0.hasBytes || $0.hasSnapshot }
        if let key, isLookedUp, let known = try await store.read({ try $0.history.outcome(key) }) {
            let isUnchecked = changes.recall && changes.requests.isEmpty && changes.requestDigest == nil
            return try known.result(for: isUnchecked ? known.digest : digest, key)
        }
        guard !changes.recall else {
            throw CatalogError.transactionNotFound(changes.transaction ?? "")
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
            // Most transactions wait for no actor.
            if !taken.uploads.isEmpty { await uploads.taken(taken.uploads, owner: context.identity) }
            if !taken.isEmpty { await healing.healed(taken.healed) }
            // Up to here the stored bytes must not be collected.
            return Self.result(result, healed: taken.healed)
        } catch {
            await healing.healed(taken.healed)
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
            var prepared = try await ingestor.prepare(changes.requests, context, taken, alwaysReads: alwaysReads)
            for (index, request) in changes.requests.enumerated() where request.hasSnapshot {
                do {
                    prepared[index].snapshot = try await fetches.snapshot(for: request, owner: context.identity)
                } catch {
                    throw CatalogErrorMapping.rpcError(error).about(request: index)
                }
            }
            try await ingestor.makeDurable(taken)
            do throws(WriteFailure) {
                let result = try await writer.perform(request(prepared)).result
                await ingestor.removeMoved(changes.requests, prepared, context)
                return result
            } catch {
                switch error {
                case .refused(let refusal): throw refusal
                case .factsNeeded:
                    guard !alwaysReads else { throw ChangeError.noMetadata }
                    alwaysReads = true
                }
            }
        }
    }

    private static func result(_ result: JSON, healed: [ResourceDigest]) -> JSON {
        guard !healed.isEmpty, case .object(var members) = result else { return result }
        members["healed"] = JSON(healed.map(\.text))
        return .object(members)
    }
}
