/// A value kept outside the value that contains it, for members that are large and rarely present.
///
/// Copies of the containing value share it.
public struct Indirect<Value: Sendable & Hashable>: Sendable, Hashable {
    private final class Storage: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private let storage: Storage

    public init(_ value: Value) { storage = Storage(value) }

    /// The value.
    public var value: Value { storage.value }

    public static func == (left: Indirect, right: Indirect) -> Bool {
        left.storage === right.storage || left.value == right.value
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
