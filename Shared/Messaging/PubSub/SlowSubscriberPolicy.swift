import Basics

/// The policy of a publisher for subscribers whose queue is full: how long it waits for them before it sends without
/// them.
///
/// libzmq reports that *some* queue is full, not whose. A subscriber that keeps up but was not scheduled for a moment
/// has space again soon and should lose nothing; one that has stopped reading should not delay the others. So the
/// publisher waits briefly; if that does not help, it does not wait at all for a hundred times as long.
struct SlowSubscriberPolicy {
    /// The minimum of the longest wait.
    let minimumWait: Duration
    /// When the current wait began, and the earliest start of the next, in microseconds.
    private var began: Int64?
    private var noWaitUntil = Int64.min
    /// How many messages were sent without at least one subscriber.
    private(set) var skippedCount = 0

    init(minimumWait: Duration) { self.minimumWait = minimumWait }

    /// Returns the longest wait in microseconds for a number of subscriptions; each adds its share of CPU time.
    func longest(subscriptions: Int) -> Int64 {
        minimumWait.microseconds.addingClamped(500 * Int64(min(max(subscriptions, 0), 360)))
    }

    /// Decides about a message that found a full queue.
    ///
    /// - Returns: whether to wait; otherwise the message is sent to those subscribers that have space
    mutating func shouldWait(at now: Int64, subscriptions: Int) -> Bool {
        guard now >= noWaitUntil else {
            skippedCount += 1
            return false
        }
        let start = began ?? now
        began = start
        let longest = longest(subscriptions: subscriptions)
        guard now - start > longest else { return true }
        began = nil
        noWaitUntil = now.addingClamped(longest * 100)
        skippedCount += 1
        return false
    }

    /// Ends the current wait: a message was sent to all subscribers.
    mutating func didSend() { began = nil }
}
