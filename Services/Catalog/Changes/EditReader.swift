import Contracts
import PhotoModel

/// Implements `edits.status` and `edits.pending`: the states of published edits.
struct EditReader: Sendable {
    let store: LibraryStore
    let services: ServiceIdentities
    /// The maximum size of the contents in one page of pending edits, in bytes.
    private let pageBytes = 4 << 20

    func status(_ request: EditsStatus, for identity: String) async throws -> EditsStatus.Result {
        if request.onBehalfOf != nil { try services.check(identity, for: "onBehalfOf") }
        let publisher = request.onBehalfOf ?? identity
        return try await store.read { reader in
            var result = EditsStatus.Result(edits: [], unknown: [])
            for id in request.ids {
                guard let edit = try reader.edits.edit(id, of: publisher) else {
                    result.unknown.append(id)
                    continue
                }
                result.edits.append(EditStatus(edit: edit.published, sequence: edit.sequence, digest: edit.digest))
            }
            return result
        }
    }

    func pending(_ request: EditsPending, for identity: String) async throws -> EditsPending.Result {
        try services.check(identity, for: "edits.pending")
        let pageBytes = pageBytes
        return try await store.read { reader in
            let page = try reader.edits.pending(after: request.after ?? 0, limit: request.limit, bytes: pageBytes)
            let edits = try page.edits.map { edit in
                PendingEdit(
                    publisher: edit.publisher,
                    sequence: edit.accepted,
                    accepted: ChangeRequest.AcceptEdit(
                        id: edit.id,
                        asset: edit.asset,
                        predecessor: edit.predecessor,
                        digest: edit.digest,
                        content: try edit.parsedContent()
                    )
                )
            }
            return EditsPending.Result(edits: edits, next: page.isCut ? page.edits.last?.accepted : nil)
        }
    }
}
