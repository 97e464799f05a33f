import Dispatch
import Synchronization

/// A few threads for what blocks on the disk: copying, hashing and syncing files never holds a thread of Swift's.
final class FileCrew: Sendable {
    private let queues: [DispatchQueue]
    private let next = Atomic<Int>(0)

    init(count: Int = 4) {
        queues = (0..<max(1, count)).map { DispatchQueue(label: "files.\($0)") }
    }

    /// Does something on one of the threads.
    func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        let queue = queues[Int(UInt(bitPattern: number) % UInt(queues.count))]
        return try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try work() }) }
        }
    }
}
