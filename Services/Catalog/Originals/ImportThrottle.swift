import Basics
import Synchronization

/// Delays imports under the policy `optimize` while uploads are behind, so that local files exceed their budget only a
/// little: a local file can be removed only after the object store has it.
///
/// A delay is short and cancels no request. Imports are not delayed while the object store cannot be used, or under the
/// policy `all`.
final class ImportThrottle: Sendable {
    /// The local bytes above which an import is delayed; nil for no limit.
    private let maxBytes: Int64?
    private let state = Mutex(State())

    private struct State {
        /// The bytes of the latest listing, with the changes since it began.
        var localBytes: Int64 = 0
        /// The bytes that were stored since the latest listing began.
        var storedBytes: Int64 = 0
        /// True while files are uploaded and removed.
        var isWorking = false
        var next = 0
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    /// Imports are delayed if the local bytes exceed the budget by this fraction of it, and by the minimum.
    private static let (slackDivisor, minSlack): (Int64, Int64) = (8, 256 << 20)
    /// The maximum delay of one transaction, for all of its files together. Clients wait for 30 s by default.
    static let maxDelay = Duration.seconds(5)

    init(_ options: RemoteStorageOptions) {
        let budget = options.localBytes
        let slack = max(Self.minSlack, budget / Self.slackDivisor)
        maxBytes = options.policy == .optimize ? budget.addingClamped(slack) : nil
    }

    /// Waits until an import may store the next bytes.
    ///
    /// - Parameter latest: the end of the delay, even if uploads are still behind
    func wait(until latest: ContinuousClock.Instant) async {
        guard isBehind else { return }
        let (stream, waiter) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.next += 1
            state.waiters[state.next] = waiter
            return state.next
        }
        // A change may have happened before the waiter was added.
        waiter.yield()
        _ = await TaskDelay.withTimeout(max(.zero, latest - .now)) { [self] in
            for await _ in stream where !isBehind { return }
        }
        state.withLock { _ = $0.waiters.removeValue(forKey: number) }
    }

    /// True while imports are delayed.
    var isBehind: Bool {
        guard let maxBytes else { return false }
        return state.withLock { $0.isWorking && $0.localBytes > maxBytes }
    }

    /// Begins or ends a time in which files are uploaded and removed.
    func setWorking(_ isWorking: Bool) { change { $0.isWorking = isWorking } }

    /// Records that local bytes were stored.
    func noteStored(_ bytes: Int64) {
        state.withLock { state in
            state.localBytes += bytes
            state.storedBytes += bytes
        }
    }

    /// Records that local bytes were removed.
    func noteRemoved(_ bytes: Int64) { change { $0.localBytes -= bytes } }

    /// Begins a listing of the local files. Bytes that are stored meanwhile may be counted twice, until the next one.
    func beginListing() { state.withLock { $0.storedBytes = 0 } }

    /// Ends a listing that has found a number of bytes.
    func endListing(_ bytes: Int64) { change { $0.localBytes = bytes + $0.storedBytes } }

    private func change(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.yield() }
    }
}
