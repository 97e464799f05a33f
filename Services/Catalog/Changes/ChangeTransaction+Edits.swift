import Contracts
import JSONValue
import Messaging
import PhotoModel

/// A published edit as the catalog keeps it.
///
/// Publishers do not see each other: an edit is known by its publisher's identity and the publisher's own name for it.
/// Topics of the feed carry the name alone; who published it is the record's `onBehalfOf`.
struct StoredEdit: Sendable, Equatable {
    var publisher: String
    var id: String
    var asset: ObjectID
    var state: PublishedEditState
    var predecessor: String?
    var digest: String
    /// What was published; empty once the edit is finished.
    var content: [UInt8]
    var errorName: String?
    var errorMessage: String?
    /// The transaction that accepted it, or ended it where it was never accepted.
    var accepted: Int64
    /// The transaction that brought it to its state, and when, in microseconds since 1970.
    var sequence: Int64
    var date: Int64

    /// As records and answers have it.
    var published: PublishedEdit {
        PublishedEdit(
            id: id,
            asset: asset,
            state: state,
            predecessor: predecessor,
            errorName: errorName,
            errorMessage: errorMessage
        )
    }
}

/// Bounds of published edits.
enum EditLimits {
    /// Accepted edits that are not finished, of all publishers.
    static let pending = 100_000
    /// Finished edits that are kept, for as long as change records are; beyond this the oldest are forgotten earlier.
    static let finished = 1_000_000
}

extension ChangeTransaction {
    /// Takes on a published edit, once.
    mutating func accept(_ request: ChangeRequest.AcceptEdit) throws {
        let publisher = try requirePublisher()
        if let known = try publishedEdit(request.id) {
            guard known.digest == request.digest else {
                throw Refusal.idReused.error(
                    "the edit \(request.id) was published with other content; take a new id for each edit",
                    ["id": .string(request.id)]
                )
            }
            return
        }
        let content = request.content.canonical.bytes
        guard content.count <= ChangeRequest.AcceptEdit.maxContentBytes else {
            throw Refusal.limitExceeded.error(
                "an edit has at most \(ChangeRequest.AcceptEdit.maxContentBytes) bytes, this one has \(content.count)"
            )
        }
        guard try state.pendingEdits() < EditLimits.pending else {
            throw Refusal.busy.error("\(EditLimits.pending) edits are accepted and not finished; publish more later")
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

    /// Ends a published edit, accepted or not, once.
    mutating func fail(_ request: ChangeRequest.FailEdit) throws {
        let publisher = try requirePublisher()
        var failed = StoredEdit(
            publisher: publisher,
            id: request.id,
            asset: request.asset,
            state: .failed,
            predecessor: request.predecessor,
            digest: request.digest,
            content: [],
            errorName: request.errorName,
            errorMessage: request.errorMessage,
            accepted: sequence,
            sequence: sequence,
            date: now
        )
        guard let known = try publishedEdit(request.id) else { return set(failed) }
        guard known.digest == request.digest else {
            // Told, and not kept: the edit that has the id goes on undisturbed.
            failed.errorName = Refusal.idReused.rawValue
            var told = failed.published
            told.refusedDigest = request.digest
            return tell(told)
        }
        switch known.state {
        case .accepted:
            failed.accepted = known.accepted
            set(failed)
        case .failed: return
        case .applied: throw finished(known)
        }
    }

    /// The edit is applied with the transaction that carries its render; never twice.
    mutating func apply(publishedEdit id: String, to asset: ObjectID) throws {
        _ = try requirePublisher()
        guard var edit = try publishedEdit(id), edit.asset == asset else {
            throw Refusal.identifierNotFound.error("no edit \(id) of \(asset) was accepted", ["edit": .string(id)])
        }
        guard edit.state == .accepted else { throw finished(edit) }
        edit.state = .applied
        edit.content = []
        edit.sequence = sequence
        edit.date = now
        set(edit)
    }

    private func finished(_ edit: StoredEdit) -> RPCError {
        Refusal.conflict.error(
            "the edit \(edit.id) is finished: \(edit.state.rawValue) by #\(edit.sequence)",
            ["edit": .string(edit.id), "state": .string(edit.state.rawValue), "sequence": .int(edit.sequence)]
        )
    }

    private func requirePublisher() throws(RPCError) -> String {
        guard let publisher else {
            throw Refusal.accessDenied.error(
                "published edits are kept by services, onBehalfOf their publisher; push edits.publish to the edits"
                    + " endpoint"
            )
        }
        guard edits.isEmpty else {
            throw Refusal.invalidParams.error("a transaction is about one published edit; each state is its own record")
        }
        return publisher
    }

    private func publishedEdit(_ id: String) throws -> StoredEdit? {
        if let touched = editRows[id] { return touched }
        guard let publisher else { return nil }
        return try state.publishedEdit(id, of: publisher)
    }
}
