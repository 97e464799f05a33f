import JSONValue
import PhotoModel

/// Limits of published edits.
enum EditLimits {
    /// The maximum number of accepted, unfinished edits of all publishers.
    static let pending = 100_000
    /// The number of finished edits that are kept as long as change records; beyond it the oldest are deleted earlier.
    static let finished = 1_000_000
}

extension ChangeTransaction {
    /// Accepts a published edit; repeating it has no effect.
    ///
    /// - Throws: `id_reused` if the id has other content, `limit_exceeded`, `busy`, `access_denied`
    mutating func accept(_ request: ChangeRequest.AcceptEdit) throws {
        let publisher = try requirePublisher()
        if let known = try publishedEdit(request.id) {
            guard known.digest == request.digest else {
                throw ChangeError.editIDReused(request.id)
            }
            return
        }
        let content = request.content.canonical.bytes
        guard content.count <= ChangeRequest.AcceptEdit.maxContentBytes else {
            throw ChangeError.editTooLarge(bytes: content.count, limit: ChangeRequest.AcceptEdit.maxContentBytes)
        }
        guard try state.pendingEdits() < EditLimits.pending else {
            throw ChangeError.tooManyEdits(limit: EditLimits.pending)
        }
        set(
            StoredEdit(
                publisher: publisher,
                id: request.id,
                asset: request.asset,
                state: .accepted,
                predecessor: request.predecessor,
                digest: request.digest,
                content: content,
                accepted: sequence,
                sequence: sequence,
                date: now
            )
        )
    }

    /// Ends a published edit as failed, accepted or not; repeating it has no effect.
    ///
    /// - Throws: `conflict` if the edit is applied already
    mutating func fail(_ request: ChangeRequest.FailEdit) throws {
        let publisher = try requirePublisher()
        // The message may quote a name of the edit. Not every database can store U+0000.
        let message = request.errorMessage.replacing("\0", with: "?")
        var failed = StoredEdit(
            publisher: publisher,
            id: request.id,
            asset: request.asset,
            state: .failed,
            predecessor: request.predecessor,
            digest: request.digest,
            content: [],
            errorName: request.errorName,
            errorMessage: message,
            accepted: sequence,
            sequence: sequence,
            date: now
        )
        guard let known = try publishedEdit(request.id) else { return set(failed) }
        guard known.digest == request.digest else {
            // Reported but not stored: the existing edit with this id is not affected, and the report has its state, so
            // that no subscriber is notified that an applied edit has failed.
            failed.errorName = CatalogErrorMapping.rpcError(ChangeError.editIDReused(request.id)).name
            var reported = failed.published
            reported.state = known.state
            reported.asset = known.asset
            reported.predecessor = known.predecessor
            reported.refusedDigest = request.digest
            return record(reported)
        }
        switch known.state {
        case .accepted:
            failed.accepted = known.accepted
            set(failed)
        case .failed: return
        case .applied: throw finishedError(known)
        }
    }

    /// Marks an edit as applied, in the transaction that carries its render; an edit is never applied twice.
    ///
    /// - Throws: `identifier_not_found` if no such edit was accepted, `conflict` if it is finished
    mutating func apply(publishedEdit id: String, to asset: ObjectID) throws {
        _ = try requirePublisher()
        guard var edit = try publishedEdit(id), edit.asset == asset else {
            throw ChangeError.editNotFound(id, asset: asset)
        }
        guard edit.state == .accepted else { throw finishedError(edit) }
        edit.state = .applied
        edit.content = []
        edit.sequence = sequence
        edit.date = now
        set(edit)
    }

    private func finishedError(_ edit: StoredEdit) -> ChangeError {
        .editFinished(edit.id, state: edit.state.rawValue, sequence: edit.sequence)
    }

    private func requirePublisher() throws(ChangeError) -> String {
        guard let publisher else {
            throw .noPublisher
        }
        guard edits.isEmpty else {
            throw .severalPublishedEdits
        }
        return publisher
    }

    private func publishedEdit(_ id: String) throws -> StoredEdit? {
        if let touched = editRows[id] { return touched }
        guard let publisher else { return nil }
        return try state.publishedEdit(id, of: publisher)
    }
}
