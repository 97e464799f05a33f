import Basics
import Contracts
import JSONValue
import PhotoModel
import Synchronization

/// A change record as it passes through the broker: the parsed members that the broker needs, and the original bytes.
///
/// The broker forwards records without decoding them completely. That is fast, and a record of a newer catalog keeps
/// members that this broker does not know. At the end of this file, ``LiveFrames`` encodes the messages of a record,
/// and ``SubscribedTopics`` lists the topics that have a subscriber.
struct BrokerRecord: Sendable {
    /// One entity's part of the record, under the topic that carries it.
    struct Part: Sendable {
        /// The record's member: `assets`, `collections`, `lists`, `edits`, `grants` or `questions`.
        let member: String
        let topic: String
        let id: String
        /// The range of the entity's JSON in the record's bytes.
        fileprivate let range: Range<Int>
    }

    let sequence: Int64
    let library: String
    /// The record as the catalog wrote it; forwarded byte for byte.
    let bytes: Bytes
    /// The entities that the record touches.
    let parts: [Part]
    private let date: Int64
    private let origin: Range<Int>

    /// The beginning of each member's topics, which the entity's identifier follows.
    private static let topics = [
        "assets": ChangeRecord.TopicPrefix.asset, "collections": ChangeRecord.TopicPrefix.collection,
        "lists": ChangeRecord.TopicPrefix.list, "edits": ChangeRecord.TopicPrefix.edit,
    ]
    /// Members whose entities share one topic. A record has at most one entity in both together.
    private static let grantMembers: Set<String> = ["grants", "questions"]

    /// Scans the text of a record.
    ///
    /// - Throws: the reason why the text is not a change record
    init(_ bytes: Bytes) throws(JSONProblem) {
        var (sequence, library, date): (Int64?, String?, Int64?)
        var origin: Range<Int>?
        var parts: [Part] = []
        var nameless: String?
        do throws(JSONError) {
            try JSONCursor.read(bytes) { (cursor) throws(JSONError) in
                try cursor.enterObject()
                while let name = try cursor.nextMember() {
                    switch name {
                    case "sequence": sequence = try cursor.parseInteger()
                    case "library":
                        let isText = try cursor.peek() == UInt8(ascii: "\"")
                        if isText { library = try cursor.parseString() } else { try cursor.skip() }
                    case "date": date = try cursor.parseInteger()
                    case "origin":
                        let isObject = try cursor.peek() == UInt8(ascii: "{")
                        let range = try cursor.skip()
                        if isObject { origin = range }
                    default:
                        let shared = Self.grantMembers.contains(name) ? FeedTopic.grants : nil
                        guard let topic = Self.topics[name] ?? shared else {
                            try cursor.skip()
                            continue
                        }
                        if try !Self.read(&cursor, name, topic, into: &parts) { nameless = name }
                    }
                }
            }
        } catch {
            throw JSONProblem("is not JSON: \(error)")
        }
        guard let sequence, sequence > 0 else { throw JSONProblem("has no sequence") }
        guard let library, library.utf8.count <= 32 else { throw JSONProblem("has no library") }
        guard let date, let origin else { throw JSONProblem("has no date or no origin") }
        if let nameless { throw JSONProblem("has an entity without an identifier", path: [nameless]) }
        self.sequence = sequence
        self.library = library
        self.bytes = bytes
        self.parts = parts
        self.date = date
        self.origin = origin
    }

    /// Reads a list of entities.
    ///
    /// - Returns: false if the value is not a list, or if an entity has no identifier
    private static func read(
        _ cursor: inout JSONCursor,
        _ member: String,
        _ topic: String,
        into parts: inout [Part]
    ) throws(JSONError) -> Bool {
        guard try cursor.peek() == UInt8(ascii: "[") else {
            try cursor.skip()
            return false
        }
        var isComplete = true
        try cursor.enterArray()
        while try cursor.nextElement() {
            guard try cursor.peek() == UInt8(ascii: "{") else {
                try cursor.skip()
                isComplete = false
                continue
            }
            let start = cursor.offset
            // An edit has its id at the top level; an entity has it in the state before or after.
            var (own, before, after): (String?, String?, String?)
            try cursor.enterObject()
            while let name = try cursor.nextMember() {
                switch name {
                case "id": own = try identifier(&cursor)
                case "before": before = try identifierOfState(&cursor)
                case "after": after = try identifierOfState(&cursor)
                default: try cursor.skip()
                }
            }
            guard let id = own ?? after ?? before else {
                isComplete = false
                continue
            }
            let name = grantMembers.contains(member) ? topic : topic + id
            parts.append(Part(member: member, topic: name, id: id, range: start..<cursor.offset))
        }
        return isComplete
    }

    private static func identifier(_ cursor: inout JSONCursor) throws(JSONError) -> String? {
        if try cursor.peek() == UInt8(ascii: "\"") { return try cursor.parseString() }
        try cursor.skip()
        return nil
    }

    private static func identifierOfState(_ cursor: inout JSONCursor) throws(JSONError) -> String? {
        guard try cursor.peek() == UInt8(ascii: "{") else {
            try cursor.skip()
            return nil
        }
        try cursor.enterObject()
        while let name = try cursor.nextMember() {
            guard name == "id" else {
                try cursor.skip()
                continue
            }
            let id = try identifier(&cursor)
            try cursor.leave()
            return id
        }
        return nil
    }

    var token: ChangeToken { ChangeToken(library: library, sequence: sequence) }

    /// The identifiers of the touched entities, grouped by the record's members.
    var identifiers: [(member: String, ids: [String])] {
        var found: [(member: String, ids: [String])] = []
        for part in parts {
            if found.last?.member == part.member {
                found[found.count - 1].ids.append(part.id)
            } else {
                found.append((part.member, [part.id]))
            }
        }
        return found
    }

    /// The members with which every message about the record begins.
    var header: JSONObject {
        var header: JSONObject = ["sequence": .int(sequence), "library": .string(library), "date": .int(date)]
        header["origin"] = value(at: origin)
        return header
    }

    /// The grant after the record; nil if it changes none. A record changes at most one.
    var grant: Grant? {
        guard let part = parts.first(where: { $0.member == "grants" }) else { return nil }
        return change(part)["after"].flatMap { try? Grant(json: $0) }
    }

    /// Returns the decoded change of one entity.
    func change(_ part: Part) -> JSON { value(at: part.range) }

    /// Returns the decoded value at a range; null if the catalog sent malformed JSON.
    private func value(at range: Range<Int>) -> JSON { (try? JSON(parsing: bytes[range])) ?? .null }
}

extension BrokerRecord {
    /// Returns PhotoKit's additional details of a changed object (S-66) and the names of the changed members; empty for
    /// an edit, which is not an object.
    static func details(of change: JSON) -> JSONObject {
        guard change["before"] != nil || change["after"] != nil, !isGrant(change) else { return [:] }
        let (before, after) = (change["before"]?.objectValue, change["after"]?.objectValue)
        var details: JSONObject = ["assetContentChanged": false, "objectWasDeleted": .bool(after == nil)]
        guard let before, let after else { return details }
        details["assetContentChanged"] = .bool(before["contentRevision"] != after["contentRevision"])
        let names = before.members.map(\.name) + after.members.map(\.name).filter { before[$0] == nil }
        let changed = names.filter { !revisions.contains($0) && before[$0] != after[$0] }
        details["changedProperties"] = JSON(changed.sorted())
        return details
    }

    /// Returns true for the change of a grant, which is not an object of the library.
    private static func isGrant(_ change: JSON) -> Bool {
        (change["after"] ?? change["before"])?["statusNumber"] != nil
    }

    /// The members that change with every other member and so are not listed.
    private static let revisions: Set<String> = ["revision", "contentRevision"]
}

// MARK: - Messages

/// Encodes the JSON frames of the live feed.
enum LiveFrames {
    /// Returns the frame of topic `changes`: the whole record with `previous` and its `token`. Above the limit it has
    /// only the identifiers and `truncated`.
    static func changes(_ record: BrokerRecord, previous: Int64, limit: Int) -> [UInt8] {
        let ending = Array(",\"previous\":\(previous),\"token\":\"\(record.token)\"}".utf8)
        let size = record.bytes.count - 1 + ending.count
        guard size > limit else {
            var frame: [UInt8] = []
            frame.reserveCapacity(size + 1)
            frame += record.bytes
            // The added members replace the closing brace.
            frame.removeLast()
            frame.append(contentsOf: ending)
            return frame
        }
        var message = start(record, previous: previous)
        message["truncated"] = true
        let bare = message
        for (member, ids) in record.identifiers { message[member] = JSON(ids) }
        let frame = JSON.object(message).bytes
        return frame.count <= limit ? frame : JSON.object(bare).bytes
    }

    /// Returns the frame of an entity's own topic: its `change` and the details, or `truncated` above the limit.
    static func part(_ part: BrokerRecord.Part, of record: BrokerRecord, previous: Int64, limit: Int) -> [UInt8] {
        var message = start(record, previous: previous)
        let bare = message
        let change = record.change(part)
        message["change"] = change
        for (name, value) in BrokerRecord.details(of: change).members { message[name] = value }
        let frame = JSON.object(message).bytes
        guard frame.count > limit else { return frame }
        message = bare
        message["truncated"] = true
        return JSON.object(message).bytes
    }

    /// Returns the frame of an observed fetch: the transaction's effect on the result, or `truncated` above the limit.
    static func fetch(_ message: ObservedFetches.Message, of record: BrokerRecord, limit: Int) -> [UInt8] {
        var frame = start(record, previous: message.previous)
        let bare = frame
        frame["details"] = message.details.json
        if message.objectWasDeleted { frame["objectWasDeleted"] = true }
        let bytes = JSON.object(frame).bytes
        guard bytes.count > limit else { return bytes }
        frame = bare
        frame["truncated"] = true
        if message.objectWasDeleted { frame["objectWasDeleted"] = true }
        return JSON.object(frame).bytes
    }

    static func head(_ head: FeedHead) -> [UInt8] { head.json.bytes }

    private static func start(_ record: BrokerRecord, previous: Int64) -> JSONObject {
        var message = record.header
        message["previous"] = .int(previous)
        message["token"] = .string(record.token.description)
        return message
    }
}

// MARK: - Subscribed topics

/// The topics with at least one subscriber, as reported by the publishing sockets. Messages of other topics are not
/// encoded.
///
/// libzmq matches topics by prefix, so a subscription to `asset.` receives every topic that begins so, and one to the
/// empty topic receives all.
final class SubscribedTopics: Sendable {
    private struct State {
        /// The publishers that have a subscription to each topic, as a bit set.
        var topics: [String: UInt8] = [:]
        /// The number of subscribed topics of each length, in UTF-8 bytes.
        var lengths: [Int: Int] = [:]
        /// True if there are more topics than the limit: every message is then encoded.
        var exceedsLimit = false

        /// Returns true if a topic, or a prefix of it, has a subscriber.
        func matches(_ topic: String) -> Bool {
            exceedsLimit
                || lengths.keys.contains { length in
                    topic.utf8.count >= length
                        && topics[String(decoding: topic.utf8.prefix(length), as: UTF8.self)] != nil
                }
        }
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: the maximum number of topics
    init(limit: Int = 200_000) { self.limit = limit }

    var count: Int { state.withLock { $0.topics.count } }

    /// Records that a topic has got its first subscriber at a publishing socket, or has lost its last one.
    ///
    /// - Parameter publisher: the index of the publishing socket, 0 to 7
    func note(_ topic: String, isSubscribed: Bool, at publisher: Int = 0) {
        let bit = UInt8(1) << publisher
        let length = topic.utf8.count
        state.withLock { state in
            if !isSubscribed {
                guard let publishers = state.topics[topic] else { return }
                let rest = publishers & ~bit
                state.topics[topic] = rest == 0 ? nil : rest
                guard rest == 0 else { return }
                let count = (state.lengths[length] ?? 1) - 1
                state.lengths[length] = count > 0 ? count : nil
            } else if let publishers = state.topics[topic] {
                state.topics[topic] = publishers | bit
            } else if state.topics.count >= limit {
                state.exceedsLimit = true
            } else {
                state.topics[topic] = bit
                state.lengths[length, default: 0] += 1
            }
        }
    }

    /// Returns true if a topic, or a prefix of it, has a subscriber.
    func hasSubscriber(_ topic: String) -> Bool { state.withLock { $0.matches(topic) } }

    /// Returns true if there is a subscription to exactly this topic; true for every topic if there are more than the
    /// limit.
    func isSubscribed(exactly topic: String) -> Bool {
        state.withLock { $0.exceedsLimit || $0.topics[topic] != nil }
    }

    /// Returns the parts whose topic has a subscriber.
    func filter(_ parts: [BrokerRecord.Part]) -> [BrokerRecord.Part] {
        state.withLock { state in
            if state.exceedsLimit { return parts }
            if state.topics.isEmpty { return [] }
            return parts.filter { state.matches($0.topic) }
        }
    }
}
