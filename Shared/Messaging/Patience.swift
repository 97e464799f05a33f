/// How long a publisher waits for subscribers whose queue is full before it goes on without them.
///
/// libzmq says that *some* queue is full, not whose. A reader that keeps up but was not given a processor for a moment
/// has room again soon, and should lose nothing; one that stands still should cost the others nothing. So a full queue
/// is waited for a little; where that does not help, nobody is waited for a hundred times as long.
struct Patience {
    /// What a wait is at least.
    let shortest: Duration
    /// When the wait began that goes on now, and when the next may begin, in microseconds.
    private var began: Int64?
    private var restsUntil = Int64.min
    /// How often it went on without somebody.
    private(set) var lost = 0

    init(shortest: Duration) { self.shortest = shortest }

    /// How long a wait may be in microseconds, for so many subscriptions: each takes its share of the processors.
    func longest(subscriptions: Int) -> Int64 {
        shortest.microseconds.addingClamped(500 * Int64(min(max(subscriptions, 0), 360)))
    }

    /// Somebody's queue is full.
    ///
    /// - Returns: whether to wait; else the message goes to those who have room
    mutating func waits(at now: Int64, subscriptions: Int) -> Bool {
        guard now >= restsUntil else {
            lost += 1
            return false
        }
        let start = began ?? now
        began = start
        let longest = longest(subscriptions: subscriptions)
        guard now - start > longest else { return true }
        began = nil
        restsUntil = now.addingClamped(longest * 100)
        lost += 1
        return false
    }

    /// Everybody had room.
    mutating func moved() { began = nil }
}
