public import Synchronization

/// A value that is provided once and awaited by one task; the first of several values counts.
///
/// It separates registering a waiter, which happens under a lock, from suspending, which must not. The cancellation of
/// the awaiting task may come before, while or after the value is provided.
///
/// Inlinable, so that other modules specialize it for their values: each request and each response uses one.
public final class Promise<Value: Sendable>: Sendable {
    @usableFromInline
    enum State {
        case empty
        /// Resumed once: by the call of `fulfill` that leaves this state.
        case awaited(UnsafeContinuation<Value, Never>)
        case fulfilled(Value)
        /// The value was provided and has been returned.
        case returned
    }

    @usableFromInline
    let state = Mutex(State.empty)

    /// Creates a promise without a value.
    @inlinable
    public init() {}

    /// Provides the value.
    ///
    /// - Returns: false if there was one already; then this one is dropped
    @inlinable
    @discardableResult
    public func fulfill(_ value: Value) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, UnsafeContinuation<Value, Never>?) in
            switch state {
            case .fulfilled, .returned: return (false, nil)
            case .empty:
                state = .fulfilled(value)
                return (true, nil)
            case .awaited(let continuation):
                state = .returned
                return (true, continuation)
            }
        }
        continuation?.resume(returning: value)
        return isFirst
    }

    /// Suspends until the value is provided, whether or not the task is cancelled. May be called once.
    @inlinable
    public func value() async -> Value {
        await withUnsafeContinuation { continuation in
            let value: Value? = state.withLock { state in
                switch state {
                case .empty:
                    state = .awaited(continuation)
                    return nil
                case .fulfilled(let value):
                    state = .returned
                    return value
                case .awaited, .returned: preconditionFailure("a promise is awaited once")
                }
            }
            if let value { continuation.resume(returning: value) }
        }
    }

    /// Suspends until the value is provided or the task is cancelled. May be called once.
    ///
    /// - Parameter onCancel: called at once when the task is cancelled; it may provide a value, or leave it to others
    @inlinable
    public func value(onCancel: @escaping @Sendable () -> Void) async -> Value {
        await withTaskCancellationHandler {
            await value()
        } onCancel: {
            onCancel()
        }
    }

    /// Suspends until the value is provided; the cancellation of the task provides the given one. May be called once.
    @inlinable
    public func value(ifCancelled value: Value) async -> Value {
        await self.value { self.fulfill(value) }
    }
}
