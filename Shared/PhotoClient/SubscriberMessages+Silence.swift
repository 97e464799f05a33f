import Messaging

extension SubscriberMessages {
    /// Silence is noticed after one to two of these, so after five seconds at most. A head is published every second: the feed
    /// does not reach this client then, and the broker is asked. That is also the delay of changes for a client with limited
    /// access, whose subscription the broker refuses.
    private static let silenceInterval = Duration.milliseconds(2500)

    /// Ends calls of ``nextArrival()`` after five seconds of silence at most, until the task is cancelled.
    func watchSilence() -> Task<Void, Never> { watchSilence(every: Self.silenceInterval) }
}
