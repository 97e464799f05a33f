import Basics
import Synchronization

/// Delays imports under the policy `optimize` while uploads are behind, so that local files exceed their budget only a
/// little: a local file can be removed only after the store has it.
///
/// A delay is short and cancels no request. There is none while the store cannot be used, or if all local files have to
/// stay.
final class ImportThrottle: Sendable {
    /// The local bytes above which an import is delayed; nil for no limit.
    private let mostBytes: Int64?
    private let state = Mutex(State())

    private struct State {
        /// The bytes of the latest listing, with those that arrived and left since it began.
        var localBytes: Int64 = 0
        /// The bytes that arrived since the latest listing began.
        var arrivedBytes: Int64 = 0
        /// True while files are uploaded and removed.
        var isWorking = false
        var next = 0
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    /// The bytes above the budget from which on imports are delayed: a part of the budget, and a minimum.
    private static let (part, leastSlack): (Int64, Int64) = (8, 256 << 20)
    /// The maximum delay of one transaction, for all of its files together. Clients wait for 30 s by default.
    static let longestDelay = Duration.seconds(5)

    init(_ options: RemoteStorageOptions) {
        let budget = options.localBytes
        let slack = max(Self.leastSlack, budget / Self.part)
        mostBytes = options.policy == .optimize ? budget.addingClamped(slack) : nil
    }

    /// Returns when an import may store the next bytes.
    ///
    /// - Parameter latest: the end of the delay, also if uploads are still behind
    func wait(until latest: ContinuousClock.Instant) async {
        guard isBehind else { return }
        let (stream, waiter) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.next += 1
            state.waiters[state.next] = waiter
            return state.next
        }
        // Changes may have happened before the registration.
        waiter.yield()
        _ = await TaskDelay.withTimeout(max(.zero, latest - .now)) { [self] in
            for await _ in stream where !isBehind { return }
        }
        state.withLock { _ = $0.waiters.removeValue(forKey: number) }
    }

    /// True while imports are delayed.
    var isBehind: Bool {
        guard let mostBytes else { return false }
        return state.withLock { $0.isWorking && $0.localBytes > mostBytes }
    }

    /// Begins or ends a time in which files are uploaded and removed.
    func setWorking(_ isWorking: Bool) { change { $0.isWorking = isWorking } }

    /// Records that local bytes were stored.
    func arrived(_ bytes: Int64) {
        state.withLock { state in
            state.localBytes += bytes
            state.arrivedBytes += bytes
        }
    }

    /// Records that local bytes were removed.
    func left(_ bytes: Int64) { change { $0.localBytes -= bytes } }

    /// Begins a listing of the local files. Bytes that arrive meanwhile may be counted twice, until the next one.
    func beginListing() { state.withLock { $0.arrivedBytes = 0 } }

    func endListing(_ bytes: Int64) { change { $0.localBytes = bytes + $0.arrivedBytes } }

    private func change(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.yield() }
    }
}
