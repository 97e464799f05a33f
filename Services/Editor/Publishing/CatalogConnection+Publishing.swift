import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// The editor's requests to the catalog about published edits. All of them are idempotent.
extension CatalogConnection {
    /// Records a published edit as accepted.
    ///
    /// - Throws: `id_reused` if the id was used with other content
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
            EditTransaction(identity: queued.key.publisher, client: EditProcessor.publishing)
        )
    }

    /// Records the failure of an edit, once for each content of its id.
    ///
    /// - Parameter isAccepted: true if the catalog has accepted this content under the id
    /// - Throws: `conflict` if it was applied
    func fail(_ queued: QueuedEdit, isAccepted: Bool, _ error: RPCError) async throws(RPCError) {
        let request = ChangeRequest.FailEdit(
            id: queued.key.id,
            asset: queued.edit.asset,
            predecessor: queued.edit.predecessor,
            digest: queued.digest,
            errorName: error.name.cut(to: 64),
            errorMessage: error.message.cut(to: PublishedEdit.maxMessageBytes)
        )
        _ = try await perform([.failEdit(request)], queued.transactionOfFailure(isAccepted: isAccepted))
    }

    /// Returns the states of edits of a publisher once one of them has changed, or after a second.
    func nextStates(of ids: [String], _ publisher: String) async throws(RPCError) -> [PublishedEdit] {
        let request = EditsStatus(ids: ids, onBehalfOf: publisher, wait: 1000)
        return try await library.catalog.ask(request).result.edits.map(\.edit)
    }

    /// Returns the state of an edit; nil if the catalog does not know it.
    func state(of key: EditKey) async throws(RPCError) -> PublishedEditState? {
        let request = EditsStatus(ids: [key.id], onBehalfOf: key.publisher)
        return try await library.catalog.ask(request).result.edits.first?.edit.state
    }

    /// Claims a page of the accepted edits that no other editor has.
    func claim(after position: Int64?) async throws(RPCError) -> EditsPending.Result {
        try await library.catalog.ask(EditsPending(after: position, editor: editor)).result
    }

    /// Waits for the edits of another editor that has stopped, and claims them.
    func claimAbandoned() async throws(RPCError) -> [PendingEdit] {
        let request = EditsPending(editor: editor, wait: 20_000)
        return try await library.catalog.ask(request, deadline: .seconds(30)).result.edits
    }
}

extension QueuedEdit {
    /// Returns the transaction that records the edit's failure.
    ///
    /// For an id with other content only the change record is kept; a transaction id prevents a second record if the
    /// failure is sent again. An accepted edit needs no transaction id, and with one could get the outcome of an
    /// earlier edit with the same content.
    func transactionOfFailure(isAccepted: Bool) -> EditTransaction {
        var transaction = EditTransaction(identity: key.publisher, client: EditProcessor.publishing)
        if !isAccepted {
            transaction.transaction = "failed \(key.id) \(digest.prefix(32))"
            transaction.digest = digest
        }
        return transaction
    }
}

extension String {
    /// Returns the longest prefix of at most this many bytes of UTF-8.
    func cut(to bytes: Int) -> String {
        guard utf8.count > bytes else { return self }
        var end = utf8.index(startIndex, offsetBy: bytes)
        while end > startIndex, end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end])
    }
}
