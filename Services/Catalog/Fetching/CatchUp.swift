import Contracts
import Basics
import Messaging
import PhotoModel

/// Waits until the catalog has reached the sequence of a token that the client received elsewhere, for requests with
/// `atLeast`.
struct CatchUp: Sendable {
    let store: LibraryStore
    let tail: ChangeLogTail
    let clock: MonotonicClock

    /// Waits for the token of a request, if it has one.
    ///
    /// - Throws: `behind` if the catalog does not reach it in time, `token_expired` if it is of another history
    func wait(for request: CatalogRequest, _ context: RequestContext) async throws {
        guard let token = request.atLeast else { return }
        guard token.library == store.history else {
            throw CatalogError.tokenExpired(token, try await store.read { try $0.head() })
        }
        let timeout = min(context.microsecondsToAnswer(at: clock.nowMicroseconds()), 30_000_000)
        var isReached = await store.database.wait(for: token.sequence, milliseconds: timeout / 1000)
        if isReached == nil {
            guard token.sequence > tail.head else { return }
            let tail = tail
            isReached = await TaskDelay.withTimeout(.microseconds(timeout)) { await tail.wait(for: token.sequence) }
        }
        guard isReached == true else {
            throw CatalogError.behind(
                head: ChangeToken(library: store.history, sequence: store.database.shownSequence ?? tail.head),
                wanted: token.sequence
            )
        }
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
