import Contracts
import JSONValue
import Messaging
import PhotoModel
import Synchronization

/// One edit of an asset at a time; different assets side by side.
///
/// It saves renders: two edits of one asset at the same time would be rendered from the same revision, and the second
/// would be refused by the catalog and rendered again. The catalog stays the one that decides.
final class Turns: Sendable {
    private let state: Mutex<State>

    private struct State {
        var table: TurnTable<ObjectID>
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        var nextWaiter: UInt64 = 0
    }

    init(limitPerAsset: Int, limit: Int) {
        state = Mutex(State(table: TurnTable(limitPerKey: limitPerAsset, limit: limit)))
    }

    /// Those who work or wait, and the assets they are about.
    var figures: (count: Int, assets: Int) { state.withLock { ($0.table.count, $0.table.keys) } }

    /// Does something when the asset's turn has come.
    ///
    /// - Throws: what `body` throws; `busy` where too many wait; `user_cancelled` for who is cancelled while waiting.
    func take<Value: Sendable>(
        _ asset: ObjectID,
        _ body: () async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let (waiter, entering) = state.withLock { state in
            state.nextWaiter += 1
            return (state.nextWaiter, state.table.enter(asset, waiter: state.nextWaiter))
        }
        switch entering {
        case .full:
            throw Refusal.busy.error(
                "too many edits are under way or wait for their turn; ask again a little later",
                ["asset": .string(asset.text)]
            )
        case .waits:
            guard await turn(waiter, asset) else {
                throw Refusal.userCancelled.error("the request was cancelled before its turn came; nothing was changed")
            }
        case .itsTurn:
            break
        }
        defer { leave(waiter, asset) }
        return try await body()
    }

    /// Waits; false for who is cancelled, and then has left already.
    private func turn(_ waiter: UInt64, _ asset: ObjectID) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    // The turn may have come, and the request may have been cancelled, before this line.
                    if Task.isCancelled { return false }
                    if state.table.isFirst(asset, waiter: waiter) { return true }
                    state.waiters[waiter] = continuation
                    return nil
                }
                guard let answer else { return }
                if !answer { leave(waiter, asset) }
                continuation.resume(returning: answer)
            }
        } onCancel: {
            let continuation = state.withLock { $0.waiters.removeValue(forKey: waiter) }
            guard let continuation else { return }
            leave(waiter, asset)
            continuation.resume(returning: false)
        }
    }

    private func leave(_ waiter: UInt64, _ asset: ObjectID) {
        let next = state.withLock { state in
            state.table.leave(asset, waiter: waiter).flatMap { state.waiters.removeValue(forKey: $0) }
        }
        next?.resume(returning: true)
    }
}
