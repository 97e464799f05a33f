import Basics
import Contracts
import Hosting
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
        /// Fulfilled with true when the waiter is first.
        var waiters: [UInt64: Promise<Bool>] = [:]
        var nextWaiter: UInt64 = 0
    }

    init(limitPerAsset: Int, limit: Int) {
        state = Mutex(State(table: KeyedQueue(limitPerKey: limitPerAsset, limit: limit)))
    }

    /// The number of edits running or waiting, and of the assets they belong to.
    var metrics: (count: Int, assets: Int) { state.withLock { ($0.table.count, $0.table.keyCount) } }

    /// Runs the body when all earlier edits of the asset have ended.
    ///
    /// - Throws: the error of `body`; `busy` if too many edits wait; `user_cancelled` if the task is cancelled while
    ///   waiting
    func run<Value: Sendable>(
        _ asset: ObjectID,
        _ body: () async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let entry = Promise<Bool>()
        let (waiter, entering) = state.withLock { state in
            state.nextWaiter += 1
            let entering = state.table.enter(asset, waiter: state.nextWaiter, from: .current)
            if entering == .mustWait { state.waiters[state.nextWaiter] = entry }
            return (state.nextWaiter, entering)
        }
        switch entering {
        case .full:
            throw .tooManyEdits(asset)
        case .mustWait:
            guard await entry.value(ifCancelled: false) else {
                finish(waiter, asset)
                throw .cancelledWhileWaiting
            }
        case .mayStart:
            break
        }
        defer { finish(waiter, asset) }
        return try await body()
    }

    /// Removes a waiter that has finished or was cancelled. The next one becomes first; if it was cancelled meanwhile,
    /// it removes itself in the same way.
    private func finish(_ waiter: UInt64, _ asset: ObjectID) {
        let next = state.withLock { state in
            state.waiters[waiter] = nil
            return state.table.finish(asset, waiter: waiter).flatMap { state.waiters.removeValue(forKey: $0) }
        }
        next?.fulfill(true)
    }
}
