import Basics
import Storage
import Synchronization

/// The progress of the transfers for jobs, and the requests that wait for a change of a job.
final class UploadJobChanges: Sendable {
    private struct State {
        var progress: [ResourceDigest: Double] = [:]
        var waiters: [UInt64: (identity: String, promise: Promise<Void>)] = [:]
        var lastWaiter: UInt64 = 0
    }

    /// The maximum number of requests of one identity that wait for a change.
    static let maxWaiters = 1000
    /// The smallest progress that is reported.
    private static let step = 0.01

    private let state = Mutex(State())

    /// The transferred fractions, 0…1, of the running transfers.
    var progress: [ResourceDigest: Double] { state.withLock { $0.progress } }

    // MARK: Changes

    /// Records that the state of a job may have changed.
    func noteChange() { wake { _ in true } }

    /// Records that transfers have begun.
    func begin(_ digests: [ResourceDigest]) {
        state.withLock { state in
            for digest in digests { state.progress[digest] = 0 }
        }
    }

    /// Records the progress of a transfer.
    func advance(_ digest: ResourceDigest, to fraction: Double) {
        wake { state in
            guard fraction - state.progress[digest, default: -1] >= Self.step else { return false }
            state.progress[digest] = min(1, fraction)
            return true
        }
    }

    /// Records that transfers have ended.
    func end(_ digests: [ResourceDigest]) {
        state.withLock { state in
            for digest in digests { state.progress[digest] = nil }
        }
    }

    private func wake(_ change: (inout State) -> Bool) {
        let waiters = state.withLock { state -> [Promise<Void>] in
            guard change(&state) else { return [] }
            defer { state.waiters = [:] }
            return state.waiters.values.map { $0.promise }
        }
        for waiter in waiters { waiter.fulfill(()) }
    }

    // MARK: Waiting

    /// Calls `read` until it returns an answer, each time after another change.
    ///
    /// - Parameters:
    ///   - interval: the maximum time between two reads, in microseconds
    ///   - read: returns nil to wait for a change; the flag is true at the last call, when the time has expired
    /// - Returns: the answer; nil if the time has expired without one
    /// - Throws: `limit_exceeded` if too many requests of the identity wait
    func answer<Answer: Sendable>(
        for identity: String,
        within microseconds: Int64,
        _ clock: MonotonicClock,
        every interval: Int64 = .max,
        _ read: (_ isLast: Bool) async throws -> Answer?
    ) async throws -> Answer? {
        let end = clock.nowMicroseconds() + microseconds
        while true {
            // Registered before the state is read, so that no change in between is missed.
            let promise = Promise<Void>()
            let number = try state.withLock { (state) throws(CatalogError) -> UInt64 in
                guard state.waiters.values.count(where: { $0.identity == identity }) < Self.maxWaiters else {
                    throw .tooManyWaiting(limit: Self.maxWaiters, parameter: "changedAfter", topic: "jobs")
                }
                state.lastWaiter += 1
                state.waiters[state.lastWaiter] = (identity: identity, promise: promise)
                return state.lastWaiter
            }
            defer { state.withLock { $0.waiters[number] = nil } }
            let rest = end - clock.nowMicroseconds()
            if let answer = try await read(rest <= 0) { return answer }
            guard rest > 0 else { return nil }
            await TaskDelay.withTimeout(.microseconds(min(rest, interval))) { await promise.value(ifCancelled: ()) }
            try Task.checkCancellation()
        }
    }
}
