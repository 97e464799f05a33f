import DequeModule
import Synchronization

/// A queue that runs one write at a time on the thread of the writing connection, in the order of arrival.
///
/// Transactions are committed in groups, and after each group the work queued for the thread runs first. At most one of
/// these writes is queued there, so the two kinds alternate and neither can starve the other.
final class WriteSerializer: Sendable {
    /// The maximum number of waiting writes; further ones are refused.
    static let limit = 1024

    private struct State {
        var isWriting = false
        var waiting: Deque<CheckedContinuation<Bool, Never>> = []
    }

    private let state = Mutex(State())

    /// Runs a write after all earlier ones have ended.
    ///
    /// - Throws: ``CatalogError/tooManyWrites(limit:)``; the errors of `write`
    func run<Value>(_ write: () async throws -> Value) async throws -> Value {
        try await begin()
        defer { end() }
        return try await write()
    }

    private func begin() async throws(CatalogError) {
        let isAdmitted: Bool = await withCheckedContinuation { continuation in
            enum Outcome { case now, later, never }
            let outcome = state.withLock { state -> Outcome in
                guard state.isWriting else {
                    state.isWriting = true
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
        guard isAdmitted else { throw .tooManyWrites(limit: Self.limit) }
    }

    private func end() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.isWriting = false }
            return next
        }
        next?.resume(returning: true)
    }
}
