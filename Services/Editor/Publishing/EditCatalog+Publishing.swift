import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// What the editor tells the catalog of published edits, and asks it. All of it may be said again.
extension EditCatalog {
    /// - Throws: `id_reused` where the id has other content
    func accept(_ queued: QueuedEdit, content: JSON) async throws(RPCError) -> PerformChanges.Result {
        let request = ChangeRequest.AcceptEdit(
            id: queued.key.id,
            asset: queued.edit.asset,
            predecessor: queued.edit.predecessor,
            digest: queued.digest,
            content: content
        )
        return try await perform(
            [.acceptEdit(request)],
            EditTransaction(identity: queued.key.publisher, client: EditDesk.publishing)
        )
    }

    /// Ends an edit, once for each content of its id.
    ///
    /// - Throws: `conflict` where it was applied
    func fail(
        _ key: EditKey,
        asset: ObjectID,
        after predecessor: String?,
        digest: String,
        _ error: RPCError
    ) async throws(RPCError) {
        let request = ChangeRequest.FailEdit(
            id: key.id,
            asset: asset,
            predecessor: predecessor,
            digest: digest,
            errorName: error.name.cut(to: 64),
            errorMessage: error.message.cut(to: PublishedEdit.maxMessageBytes)
        )
        // Under an id with other content nothing is kept but the record: the name keeps a repeat from making another.
        let transaction = EditTransaction(
            identity: key.publisher,
            client: EditDesk.publishing,
            transaction: "failed \(key.id) \(digest.prefix(32))",
            digest: digest
        )
        _ = try await perform([.failEdit(request)], transaction)
    }

    /// Where an edit stands; nil where the catalog does not know it.
    func state(of key: EditKey) async throws(RPCError) -> PublishedEditState? {
        let request = EditsStatus(ids: [key.id], onBehalfOf: key.publisher)
        return try await library.catalog.ask(request).result.edits.first?.edit.state
    }

    /// A page of what was accepted and is not finished.
    func pending(after position: Int64?) async throws(RPCError) -> EditsPending.Result {
        try await library.catalog.ask(EditsPending(after: position)).result
    }
}

extension String {
    /// The beginning, of at most so many bytes of UTF-8.
    func cut(to bytes: Int) -> String {
        guard utf8.count > bytes else { return self }
        var end = utf8.index(startIndex, offsetBy: bytes)
        while end > startIndex, end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end])
    }
}
