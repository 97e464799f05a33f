import Synchronization

/// A value that is provided once and awaited by one task; the first of several values counts.
///
/// It separates registering a waiter, which happens under a lock, from suspending, which must not. The cancellation of
/// the awaiting task may come before, while or after the value is provided.
public final class Promise<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case awaited(CheckedContinuation<Value, Never>)
        case fulfilled(Value)
        /// The value was provided and has been returned.
        case taken
    }

    private let state = Mutex(State.empty)

    /// Creates a promise without a value.
    public init() {}

    /// Provides the value.
    ///
    /// - Returns: false if there was one already; then this one is dropped
    @discardableResult
    public func fulfill(_ value: Value) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            switch state {
            case .fulfilled, .taken: return (false, nil)
            case .empty:
                state = .fulfilled(value)
                return (true, nil)
            case .awaited(let continuation):
                state = .taken
                return (true, continuation)
            }
        }
        continuation?.resume(returning: value)
        return isFirst
    }

    /// Suspends until the value is provided, whether or not the task is cancelled. May be called once.
    public func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                switch state {
                case .empty:
                    state = .awaited(continuation)
                    return nil
                case .fulfilled(let value):
                    state = .taken
                    return value
                case .awaited, .taken: preconditionFailure("a promise is awaited once")
                }
            }
            if let value { continuation.resume(returning: value) }
        }
    }

    /// Suspends until the value is provided or the task is cancelled. May be called once.
    ///
    /// - Parameter onCancel: called at once when the task is cancelled; it may provide a value, or leave it to others
    public func value(onCancel: @escaping @Sendable () -> Void) async -> Value {
        await withTaskCancellationHandler {
            await value()
        } onCancel: {
            onCancel()
        }
    }

    /// Suspends until the value is provided; the cancellation of the task provides the given one. May be called once.
    public func value(ifCancelled value: Value) async -> Value {
        await self.value { self.fulfill(value) }
    }
}
