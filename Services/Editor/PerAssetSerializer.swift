import Contracts
import JSONValue
import PhotoModel
import Synchronization

/// Runs edits of one asset one at a time; different assets are independent.
///
/// This saves renders: two concurrent edits of one asset would be rendered from the same revision, and the catalog
/// would refuse the second, which would be rendered again. Correctness does not depend on it; the catalog decides.
final class PerAssetSerializer: Sendable {
    private let state: Mutex<State>

    private struct State {
        var table: KeyedQueue<ObjectID>
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        var nextWaiter: UInt64 = 0
    }

    init(limitPerAsset: Int, limit: Int) {
        state = Mutex(State(table: KeyedQueue(limitPerKey: limitPerAsset, limit: limit)))
    }

    /// The number of edits running or waiting, and of the assets they belong to.
    var metrics: (count: Int, assets: Int) { state.withLock { ($0.table.count, $0.table.keys) } }

    /// Runs the body when all earlier edits of the asset have ended.
    ///
    /// - Throws: the error of `body`; `busy` if too many edits wait; `user_cancelled` if the task is cancelled while
    ///   waiting
    func run<Value: Sendable>(
        _ asset: ObjectID,
        _ body: () async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let (waiter, entering) = state.withLock { state in
            state.nextWaiter += 1
            return (state.nextWaiter, state.table.enter(asset, waiter: state.nextWaiter))
        }
        switch entering {
        case .full:
            throw ErrorCode.busy.error(
                "too many edits are running or waiting; try again later",
                ["asset": .string(asset.text)]
            )
        case .mustWait:
            guard await waitForTurn(waiter, asset) else {
                throw ErrorCode.userCancelled.error("the request was cancelled while it waited; nothing was changed")
            }
        case .mayStart:
            break
        }
        defer { finish(waiter, asset) }
        return try await body()
    }

    /// Waits until the waiter is first. Returns false if cancelled; the waiter is then already removed.
    private func waitForTurn(_ waiter: UInt64, _ asset: ObjectID) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    // The waiter may have become first, or the request may have been cancelled, before the lock was
                    // acquired.
                    if Task.isCancelled { return false }
                    if state.table.isFirst(asset, waiter: waiter) { return true }
                    state.waiters[waiter] = continuation
                    return nil
                }
                guard let answer else { return }
                if !answer { finish(waiter, asset) }
                continuation.resume(returning: answer)
            }
        } onCancel: {
            let continuation = state.withLock { $0.waiters.removeValue(forKey: waiter) }
            guard let continuation else { return }
            finish(waiter, asset)
            continuation.resume(returning: false)
        }
    }

    private func finish(_ waiter: UInt64, _ asset: ObjectID) {
        let next = state.withLock { state in
            state.table.finish(asset, waiter: waiter).flatMap { state.waiters.removeValue(forKey: $0) }
        }
        next?.resume(returning: true)
    }
}
