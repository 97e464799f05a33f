import PhotoModel
import Synchronization

/// A source of new identifiers in ascending order: assets imported together sort in the order of their import.
final class IdentifierGenerator: Sendable {
    private let now: @Sendable () -> Int64
    private let last = Mutex<(milliseconds: Int64, counter: UInt16)>((0, 0))

    /// - Parameter now: returns the current time in microseconds since 1970
    init(now: @escaping @Sendable () -> Int64) { self.now = now }

    func make(_ kind: ObjectKind) -> ObjectID {
        let time = max(0, now() / 1000)
        let (milliseconds, counter) = last.withLock { last in
            if time > last.milliseconds {
                // The upper half of the counter is left for further identifiers within this millisecond.
                last = (time, UInt16.random(in: 0..<(1 << 15)))
            } else if last.counter == .max {
                last = (last.milliseconds + 1, 0)
            } else {
                last.counter += 1
            }
            return last
        }
        var numbers = SequentialRandomNumberGenerator(first: UInt64(counter))
        return ObjectID(kind, milliseconds: milliseconds, using: &numbers)
    }
}

/// A generator that returns the counter, which follows the time in an identifier, and then random numbers.
private struct SequentialRandomNumberGenerator: RandomNumberGenerator {
    var first: UInt64?
    var system = SystemRandomNumberGenerator()

    mutating func next() -> UInt64 {
        defer { first = nil }
        return first ?? system.next()
    }
}
