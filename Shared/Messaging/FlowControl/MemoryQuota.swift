import Synchronization

/// A count of bytes of memory with a limit, added also to the larger quota that it is a part of. Counting takes no
/// lock.
final class MemoryQuota: Sendable {
    private let bytes = Atomic(0)
    private let limit: Int
    /// The limit while a large message is added: it leaves memory for small ones.
    private let limitOfLarge: Int
    private let whole: MemoryQuota?

    init(limit: Int, limitOfLarge: Int = .max, partOf whole: MemoryQuota? = nil) {
        self.limit = limit
        self.limitOfLarge = min(limit, limitOfLarge)
        self.whole = whole
    }

    /// The bytes in use now.
    var bytesInUse: Int { bytes.load(ordering: .relaxed) }

    /// True if at most half of it is in use.
    var isHalfFree: Bool { bytesInUse <= limit / 2 }

    /// Adds bytes if they are within all limits.
    ///
    /// Several threads may add at the same time; near a limit one of them may be refused although there would be enough
    /// for it alone.
    ///
    /// - Parameters:
    ///   - isLarge: true for a large message
    ///   - own: the bytes that were added before for the same request; no limit applies while nothing else is in use
    func tryAdd(_ count: Int, isLarge: Bool = false, besides own: Int? = nil) -> Bool {
        let sum = bytes.wrappingAdd(count, ordering: .relaxed).newValue
        let isWithin = sum <= (isLarge ? limitOfLarge : limit) || sum - count == own
        guard isWithin, whole?.tryAdd(count, isLarge: isLarge, besides: own) ?? true else {
            bytes.wrappingSubtract(count, ordering: .relaxed)
            return false
        }
        return true
    }

    /// Adds bytes that exist already; a negative number removes bytes.
    func add(_ count: Int) {
        bytes.wrappingAdd(count, ordering: .relaxed)
        whole?.add(count)
    }
}
