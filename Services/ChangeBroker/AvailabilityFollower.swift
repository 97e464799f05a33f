import Basics
import Contracts
import JSONValue
import PhotoClient

/// Follows the status of the library, for the topic `availability`.
struct AvailabilityFollower: Sendable {
    let catalog: ServiceClient
    let feed: RecordFeed
    /// The delay before the catalog is asked again after an error.
    let retryDelay: Duration

    /// The time for which one request waits for another status.
    private static let deadline = Duration.seconds(20)

    /// The delay before the catalog is asked again if it accepts no further waiting request.
    private static let limitRetryDelay = Duration.seconds(1)

    /// Asks the catalog until cancelled. Each request waits for a change, so that the broker learns of it at once.
    func run() async {
        var known: Int64?
        while !Task.isCancelled {
            do throws(RPCError) {
                let status = try await catalog.ask(LibraryStatus(after: known), deadline: Self.deadline).result
                known = status.since
                await feed.publish(status)
            } catch {
                if Task.isCancelled { return }
                known = nil
                // The catalog answers, but has the maximum number of waiting requests of this identity.
                guard error.errorCode != .limitExceeded else {
                    await TaskDelay.retryDelay(Self.limitRetryDelay)
                    continue
                }
                await feed.publishUnreachable(error.message, at: WallClock.nowMicroseconds())
                await TaskDelay.retryDelay(retryDelay)
            }
        }
    }
}

// MARK: - Publishing

/// The topic `availability`: the status of the library. It is not part of the change log.
extension RecordFeed {
    /// Publishes a status of the library if it differs from the last one.
    func publish(_ status: LibraryStatus.Result) {
        guard availability != status else { return }
        availability = status
        publishAvailability()
    }

    /// Publishes the status `unreachable`, because the catalog does not answer.
    func publishUnreachable(_ reason: String, at date: Int64) {
        guard availability?.state != .unreachable else { return }
        let problem = LibraryStatus.Problem(.unreachable, "the catalog does not answer: \(reason)")
        publish(LibraryStatus.Result(since: max(date, (availability?.since ?? 0) + 1), problems: [problem]))
    }

    /// Publishes the status. It is repeated with each head, because subscribers may lose messages.
    func publishAvailability() {
        guard let availability, subscribedTopics.hasSubscriber(FeedTopic.availability) else { return }
        send(FeedTopic.availability, availability.json.bytes)
    }
}
