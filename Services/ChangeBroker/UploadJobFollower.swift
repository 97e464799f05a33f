import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Follows the jobs of the catalog, for the topic `jobs`.
struct UploadJobFollower: Sendable {
    let catalog: ServiceClient
    let feed: RecordFeed
    /// The delay before the catalog is asked again after an error.
    let retryDelay: Duration

    /// The time that one request waits for a change.
    private static let deadline = Duration.seconds(20)
    /// The time between two messages.
    private static let spacing = Duration.milliseconds(200)

    /// Asks the catalog until cancelled. Each request waits for a change, so that the broker learns of it at once.
    func run() async {
        var known: Int64?
        while !Task.isCancelled {
            do throws(RPCError) {
                guard let version = known else {
                    known = try await catalog.ask(ListUploadJobs(after: .max)).result.version
                    continue
                }
                let page = try await catalog.ask(ListUploadJobs(changedAfter: version), deadline: Self.deadline).result
                known = page.version
                guard !page.jobs.isEmpty else { continue }
                await feed.publish(page)
                await TaskDelay.debounce(Self.spacing)
            } catch {
                if Task.isCancelled { return }
                // The version stays the same, so that no change is missed while the catalog is restarted.
                await TaskDelay.retryDelay(retryDelay)
            }
        }
    }
}

// MARK: - Publishing

/// The topic `jobs`: uploads and downloads that clients have requested. It is not part of the change log.
extension RecordFeed {
    /// Publishes jobs that have changed.
    func publish(_ page: UploadJobPage) {
        guard subscribedTopics.hasSubscriber(FeedTopic.jobs) else { return }
        var page = page
        // Texts of failures may be long; the name of the problem stays.
        for index in page.jobs.indices { page.jobs[index].message = nil }
        send(FeedTopic.jobs, page.json.bytes)
    }
}
