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

/// A change in a message of the live feed.
struct LiveChange: Sendable, Hashable {
    let token: ChangeToken
    /// The topic has no message after this sequence and before this message.
    let previous: Int64
    /// The part of the record that the topic carries; nil if the message was truncated and history must be requested.
    let record: ChangeRecord?

    var sequence: Int64 { token.sequence }

    init(token: ChangeToken, previous: Int64, record: ChangeRecord?) {
        self.token = token
        self.previous = previous
        self.record = record
    }

    init(topic: String, json: JSON) throws(JSONProblem) {
        guard let sequence = json["sequence"]?.intValue, sequence > 0, let library = json["library"]?.stringValue,
            let previous = json["previous"]?.intValue, previous >= 0, previous < sequence
        else { throw JSONProblem("a live message has sequence, library and a smaller previous") }
        self.token = ChangeToken(library: library, sequence: sequence)
        self.previous = previous
        guard json["truncated"]?.boolValue != true else {
            self.record = nil
            return
        }
        guard topic != FeedTopic.changes else {
            self.record = try ChangeRecord(json: json)
            return
        }
        // The message of an entity's topic is decoded as a record with that entity alone.
        guard let family = topic.split(separator: ".", maxSplits: 1).first, let change = json["change"],
            let date = json["date"], let origin = json["origin"]
        else { throw JSONProblem("a message about one entity has date, origin and change") }
        let member =
            switch family {
            case "asset": "assets"
            case "collection": "collections"
            case "list": "lists"
            case "edit": "edits"
            case "grants": change["state"] == nil ? "grants" : "questions"
            default: throw JSONProblem("no such topic: \(topic.prefix(FeedTopic.maxBytes))")
            }
        self.record = try ChangeRecord(json: [
            "sequence": .int(sequence), "library": .string(library), "date": date, "origin": origin,
            member: .array([change]),
        ])
    }
}
