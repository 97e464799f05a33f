import Basics
import Contracts
import JSONValue
import PhotoModel

/// A message of the live feed.
enum LiveMessage: Sendable {
    case head(FeedHead)
    case change(LiveChange)

    /// Decodes the frames after the topic.
    ///
    /// - Throws: the problem; the subscriber then requests history instead
    init(topic: String, frames: [Bytes]) throws(JSONProblem) {
        guard let frame = frames.first else { throw JSONProblem("a live message has a topic and a JSON frame") }
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: frame)
        } catch {
            throw JSONProblem("not JSON: \(error)")
        }
        self =
            topic == FeedTopic.head
            ? .head(try FeedHead(json: json)) : .change(try LiveChange(topic: topic, json: json))
    }
}
