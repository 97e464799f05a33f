import Contracts
import JSONValue

/// The topic `availability`: whether the library can be used. It is no part of the change log.
extension RecordFeed {
    /// Publishes a status of the library if it is another one.
    func note(_ status: LibraryStatus.Result) {
        guard availability != status else { return }
        availability = status
        publishAvailability()
    }

    /// Notes that the catalog does not answer.
    func noteUnreachable(_ reason: String, at date: Int64) {
        guard availability?.state != .unreachable else { return }
        let problem = LibraryStatus.Problem(.unreachable, "the catalog does not answer: \(reason)")
        note(LibraryStatus.Result(since: max(date, (availability?.since ?? 0) + 1), problems: [problem]))
    }

    /// Publishes the status. It is repeated with each head, because subscribers lose messages.
    func publishAvailability() {
        guard let availability, subscribedTopics.hasSubscriber(FeedTopic.availability) else { return }
        send(FeedTopic.availability, availability.json.bytes)
    }
}
