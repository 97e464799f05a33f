/// A value that the closures of a test share, which use it one after the other.
///
/// `@unchecked Sendable` for that reason. Closures that run at the same time share an ``AwaitableValue``.
public final class Box<Value: Sendable>: @unchecked Sendable {
    /// The value.
    public var value: Value

    /// Creates the box with its first value.
    public init(_ value: Value) { self.value = value }
}
