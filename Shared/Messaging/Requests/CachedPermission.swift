import Synchronization

/// The access of one identity as far as a service knows it, shared by the identity's connections: one byte, whose
/// meaning is the handler's. It is read without a lock.
public final class CachedPermission: Sendable {
    private let byte: Atomic<UInt8>

    public init(_ value: UInt8 = 0) { byte = Atomic(value) }

    public var value: UInt8 {
        get { byte.load(ordering: .acquiring) }
        set { byte.store(newValue, ordering: .releasing) }
    }
}
