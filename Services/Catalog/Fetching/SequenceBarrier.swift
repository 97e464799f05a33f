import Basics
import Contracts
import Messaging
import PhotoModel

/// Waits until the catalog has reached the sequence of a token that the client received elsewhere, for requests with
/// `atLeast`.
struct SequenceBarrier: Sendable {
    let store: LibraryStore
    let tail: ChangeLogTail
    let clock: MonotonicClock

    /// Waits for a token.
    ///
    /// - Throws: `behind` if the catalog does not reach it in time, `token_expired` if it is of another history
    func wait(for token: ChangeToken, _ context: RequestContext) async throws {
        guard token.library == store.historyID else {
            throw CatalogError.tokenExpired(token, try await store.read { try $0.head() })
        }
        let timeout = timeout(of: context)
        var isReached = await store.database.wait(for: token.sequence, milliseconds: timeout / 1000)
        if isReached == nil { isReached = await waitUntilReceived(token.sequence, within: timeout) }
        guard isReached == true else { throw behind(token) }
    }

    /// Waits until the grants in memory include a change: a standby applies the grants of a record before the record
    /// counts as received. A request that names assets also waits for the database, which stores the list.
    ///
    /// A token of another history is ignored: it comes from a service that has not detected yet that the library was
    /// restored.
    func wait(for request: GrantStatus, _ context: RequestContext) async throws {
        guard let token = request.atLeast, token.library == store.historyID else { return }
        let timeout = timeout(of: context)
        guard await waitUntilReceived(token.sequence, within: timeout) else { throw behind(token) }
        guard request.wantsList || !request.assets.isEmpty else { return }
        let isReplayed = await store.database.wait(for: token.sequence, milliseconds: timeout / 1000)
        guard isReplayed != false else { throw behind(token) }
    }

    private func timeout(of context: RequestContext) -> Int64 {
        min(context.microsecondsToAnswer(at: clock.nowMicroseconds()), 30_000_000)
    }

    /// Waits until a sequence is received; returns false if that takes longer than a timeout in microseconds.
    private func waitUntilReceived(_ sequence: Int64, within timeout: Int64) async -> Bool {
        guard sequence > tail.head else { return true }
        let tail = tail
        return await TaskDelay.withTimeout(.microseconds(timeout)) { await tail.wait(for: sequence) } ?? false
    }

    private func behind(_ token: ChangeToken) -> CatalogError {
        .behind(
            head: ChangeToken(library: store.historyID, sequence: store.database.replayedSequence ?? tail.head),
            requested: token.sequence
        )
    }
}
