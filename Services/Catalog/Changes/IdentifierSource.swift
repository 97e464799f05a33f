import PhotoModel
import Synchronization

/// New identifiers, each after the ones before: assets taken in together stand in the order in which they came.
final class IdentifierSource: Sendable {
    private let now: @Sendable () -> Int64
    private let last = Mutex<(milliseconds: Int64, counter: UInt16)>((0, 0))

    /// `now` gives microseconds since 1970.
    init(now: @escaping @Sendable () -> Int64) { self.now = now }

    func make(_ kind: ObjectKind) -> ObjectID {
        let time = max(0, now() / 1000)
        let (milliseconds, counter) = last.withLock { last in
            if time > last.milliseconds {
                // Half of the numbers are left for further ones within this millisecond.
                last = (time, UInt16.random(in: 0..<(1 << 15)))
            } else if last.counter == .max {
                last = (last.milliseconds + 1, 0)
            } else {
                last.counter += 1
            }
            return last
        }
        var numbers = CountedRandom(first: UInt64(counter))
        return ObjectID(kind, milliseconds: milliseconds, using: &numbers)
    }
}

/// The number that stands behind the time in an identifier, then random ones.
private struct CountedRandom: RandomNumberGenerator {
    var first: UInt64?
    var system = SystemRandomNumberGenerator()

    mutating func next() -> UInt64 {
        defer { first = nil }
        return first ?? system.next()
    }
}
