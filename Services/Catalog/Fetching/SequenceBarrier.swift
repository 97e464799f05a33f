import Contracts
import Basics
import Messaging
import PhotoModel

/// Waits until the catalog has reached the sequence of a token that the client received elsewhere, for requests with
/// `atLeast`.
struct SequenceBarrier: Sendable {
    let store: LibraryStore
    let tail: ChangeLogTail
    let clock: MonotonicClock

    /// Waits for the token of a request, if it has one.
    ///
    /// - Throws: `behind` if the catalog does not reach it in time, `token_expired` if it is of another history
    func wait(for request: CatalogRequest, _ context: RequestContext) async throws {
        if case .grantStatus(let question) = request { return try await wait(for: question, context) }
        guard let token = request.atLeast else { return }
        guard token.library == store.history else {
            throw CatalogError.tokenExpired(token, try await store.read { try $0.head() })
        }
        let timeout = timeout(of: context)
        var isReached = await store.database.wait(for: token.sequence, milliseconds: timeout / 1000)
        if isReached == nil { isReached = await isReceived(token.sequence, within: timeout) }
        guard isReached == true else { throw behind(token) }
    }

    /// Waits until the grants in memory include a change: a standby applies the grants of a record before the record
    /// counts as received. A question about a list of assets waits for the database too, which has the list.
    ///
    /// A token of another history is that of a service which has not noticed yet that the library was restored.
    private func wait(for question: GrantStatus, _ context: RequestContext) async throws {
        guard let token = question.atLeast, token.library == store.history else { return }
        let timeout = timeout(of: context)
        guard await isReceived(token.sequence, within: timeout) else { throw behind(token) }
        guard question.wantsList || !question.assets.isEmpty else { return }
        let isShown = await store.database.wait(for: token.sequence, milliseconds: timeout / 1000)
        guard isShown != false else { throw behind(token) }
    }

    private func timeout(of context: RequestContext) -> Int64 {
        min(context.microsecondsToAnswer(at: clock.nowMicroseconds()), 30_000_000)
    }

    private func isReceived(_ sequence: Int64, within timeout: Int64) async -> Bool {
        guard sequence > tail.head else { return true }
        let tail = tail
        return await TaskDelay.withTimeout(.microseconds(timeout)) { await tail.wait(for: sequence) } ?? false
    }

    private func behind(_ token: ChangeToken) -> CatalogError {
        .behind(
            head: ChangeToken(library: store.history, sequence: store.database.shownSequence ?? tail.head),
            wanted: token.sequence
        )
    }
}

extension CatalogRequest {
    /// The token that the catalog has to reach before it answers; nil if there is none.
    fileprivate var atLeast: ChangeToken? {
        switch self {
        case .fetchAssets(let request): request.atLeast
        case .fetchCollections(let request): request.atLeast
        case .fetchLists(let request): request.atLeast
        case .counts(let request): request.atLeast
        case .find(let request): request.atLeast
        case .objects(let request): request.atLeast
        case .keyAssets(let request): request.atLeast
        case .duplicates(let request): request.atLeast
        default: nil
        }
    }
}
