import Basics
import Contracts
import Messaging
import PhotoModel

/// Implements `edits.status` and `edits.pending`: the states of published edits.
struct EditReader: Sendable {
    let store: LibraryStore
    let services: ServiceIdentities
    let tail: ChangeLogTail
    let claims: EditClaims
    let clock: MonotonicClock
    /// The maximum size of the contents in one page of pending edits, in bytes.
    private let pageBytes = 4 << 20

    init(_ store: LibraryStore, _ services: ServiceIdentities, _ tail: ChangeLogTail, clock: MonotonicClock) {
        self.store = store
        self.services = services
        self.tail = tail
        self.clock = clock
        claims = EditClaims(clock: clock)
    }

    /// Returns the states of edits; with `wait`, as soon as one of them changes.
    func status(_ request: EditsStatus, _ context: RequestContext) async throws -> EditsStatus.Result {
        if request.onBehalfOf != nil { try services.check(context.identity, for: "onBehalfOf") }
        let publisher = request.onBehalfOf ?? context.identity
        var head = tail.head
        let first = try await states(of: request.ids, publisher)
        guard request.wait > 0 else { return first }
        let end = end(ofWaiting: request.wait, context)
        while true {
            let rest = end - clock.nowMicroseconds()
            let next = head + 1
            let hasChanged = await TaskDelay.withTimeout(.microseconds(max(0, rest))) { await tail.wait(for: next) }
            guard hasChanged == true else { return first }
            // Many changes in a short time are read once, and a long list rarely, so that many waiting requests do not
            // keep the database's readers busy.
            await TaskDelay.debounce(.microseconds(max(10_000, 200 * request.ids.count)))
            head = tail.head
            let states = try await states(of: request.ids, publisher)
            if states.edits.map(\.sequence) != first.edits.map(\.sequence) { return states }
        }
    }

    /// Returns the time until which a request waits.
    private func end(ofWaiting milliseconds: Int, _ context: RequestContext) -> Int64 {
        let now = clock.nowMicroseconds()
        return now + min(Int64(milliseconds) * 1000, context.microsecondsToAnswer(at: now))
    }

    private func states(of ids: [String], _ publisher: String) async throws -> EditsStatus.Result {
        try await store.read { reader in
            var result = EditsStatus.Result(edits: [], unknown: [])
            for id in ids {
                guard let edit = try reader.edits.edit(id, of: publisher) else {
                    result.unknown.append(id)
                    continue
                }
                result.edits.append(EditStatus(edit: edit.published, sequence: edit.sequence, digest: edit.digest))
            }
            return result
        }
    }

    /// Returns accepted edits that are not finished; for an editor, those that it may apply, which it then has claimed.
    func pending(_ request: EditsPending, _ context: RequestContext) async throws -> EditsPending.Result {
        try services.check(context.identity, for: "edits.pending")
        guard let editor = request.editor else { return try await page(request) }
        claims.registerEditor(editor, context.connection)
        let end = end(ofWaiting: request.wait, context)
        while true {
            // Created before the edits are read, so that an editor that disconnects in between is noticed.
            let change = claims.nextChange
            let result = try await claim(request, for: editor, context.connection)
            let rest = end - clock.nowMicroseconds()
            guard result.edits.isEmpty, rest > 0 else { return result }
            let timeout = min(rest, claims.timeUntilFree ?? rest)
            await TaskDelay.withTimeout(.microseconds(timeout)) { await change.waitUnlessCancelled() }
            try Task.checkCancellation()
        }
    }

    /// Claims edits of the first page that has edits to claim.
    private func claim(
        _ request: EditsPending,
        for editor: String,
        _ connection: ConnectionID
    ) async throws -> EditsPending.Result {
        var request = request
        while true {
            var result = try await page(request)
            result.edits = claims.claim(result.edits, for: editor, connection)
            guard result.edits.isEmpty, let next = result.next else { return result }
            request.after = next
        }
    }

    private func page(_ request: EditsPending) async throws -> EditsPending.Result {
        let pageBytes = pageBytes
        return try await store.read { reader in
            let page = try reader.edits.pending(after: request.after ?? 0, limit: request.limit, bytes: pageBytes)
            return EditsPending.Result(
                edits: try page.edits.map { try $0.pending },
                next: page.isCut ? page.edits.last?.accepted : nil
            )
        }
    }
}

extension StoredEdit {
    /// The edit in the form that editors receive.
    fileprivate var pending: PendingEdit {
        get throws {
            PendingEdit(
                publisher: publisher,
                sequence: accepted,
                accepted: ChangeRequest.AcceptEdit(
                    id: id,
                    asset: asset,
                    predecessor: predecessor,
                    digest: digest,
                    content: try parsedContent()
                )
            )
        }
    }
}
