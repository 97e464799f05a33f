import Contracts
import JSONValue
import PhotoModel

/// The topic `jobs`: uploads and downloads that clients have asked for. It is no part of the change log.
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
