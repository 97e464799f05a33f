import Synchronization

/// A value that several tasks of a test write to.
public final class Recording<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    public init(_ value: Value) { self.value = Mutex(value) }

    public func withLock<Result: Sendable>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try value.withLock { try body(&$0) }
    }

    public var current: Value { value.withLock { $0 } }
}
