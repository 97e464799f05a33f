import Contracts
import DequeModule
import JSONValue
import Messaging
import Synchronization

/// Lets one write at a time onto the thread of the connection that writes, in the order in which they came.
///
/// Transactions are committed in groups, and after each group whatever waits for the thread goes first. There is at most
/// one of these writes, so that the two kinds alternate and neither can keep the other out.
final class WriteTurns: Sendable {
    /// Writes that may wait; the next one is refused as busy.
    static let limit = 1024

    private struct State {
        var isTaken = false
        var waiting: Deque<CheckedContinuation<Bool, Never>> = []
    }

    private let state = Mutex(State())

    /// Runs a write when the ones before it are done.
    ///
    /// - Throws: `busy` where too many wait; what the write throws
    func run<Value>(_ write: () async throws -> Value) async throws -> Value {
        try await begin()
        defer { end() }
        return try await write()
    }

    private func begin() async throws(RPCError) {
        let isTurn: Bool = await withCheckedContinuation { continuation in
            enum Outcome { case now, later, never }
            let outcome = state.withLock { state -> Outcome in
                guard state.isTaken else {
                    state.isTaken = true
                    return .now
                }
                guard state.waiting.count < Self.limit else { return .never }
                state.waiting.append(continuation)
                return .later
            }
            switch outcome {
            case .now: continuation.resume(returning: true)
            case .later: break
            case .never: continuation.resume(returning: false)
            }
        }
        guard isTurn else {
            throw Refusal.busy.error(
                "\(Self.limit) writes are waiting already; ask again later",
                ["limit": JSON(Self.limit)]
            )
        }
    }

    private func end() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.isTaken = false }
            return next
        }
        next?.resume(returning: true)
    }
}
