import Contracts
import JSONValue
import PhotoModel
import Testing

@testable import ChangeBroker

func brokerRecord(_ sequence: Int64, _ ids: [ObjectID] = [assetID(1)], caption: String? = nil) throws -> BrokerRecord {
    var record = ChangeRecord(
        sequence: sequence,
        library: testLibrary,
        date: sequence,
        origin: ChangeOrigin(identity: "uid:1")
    )
    record.assets = ids.map { id in
        var asset = Asset(id: id, revision: Revision(sequence))
        asset.caption = caption
        return EntityChange(before: nil, after: asset)
    }
    return try BrokerRecord(record.json.bytes)
}

extension BrokerRecord {
    var json: JSON { get throws { try JSON(parsing: bytes) } }
}

/// Tests of the ring of the newest records.
@Suite(.timeLimit(.minutes(5)))
struct RecordRingTests {
    private func ring(after sequence: Int64 = 10, count: Int = 100, bytes: Int = 1 << 20) -> RecordRing {
        RecordRing(after: ChangeToken(library: testLibrary, sequence: sequence), maxCount: count, maxBytes: bytes)
    }

    private func append(_ sequences: ClosedRange<Int64>, to ring: inout RecordRing, _ ids: [ObjectID] = [assetID(1)])
        throws
    {
        for sequence in sequences {
            let record = try brokerRecord(sequence, ids)
            ring.append(record, topics: record.parts.map(\.topic))
        }
    }

    private func sequences(_ page: RecordRing.Page?) -> [Int64]? {
        page?.records.compactMap { (try? JSON(parsing: $0))?["sequence"]?.intValue }
    }

    private func page(
        _ ring: RecordRing,
        after sequence: Int64,
        limit: Int = 1000,
        topics: Set<String> = [],
        bytes: Int = 1 << 20
    ) -> RecordRing.Page? {
        ring.page(after: sequence, limit: limit, filter: FeedTopicFilter(topics), maxBytes: bytes)
    }

    @Test func `an empty ring has a page only after its start`() {
        let ring = ring()
        #expect(ring.head == 10)
        #expect(sequences(page(ring, after: 10)) == [])
        #expect(page(ring, after: 9) == nil)
        #expect(page(ring, after: 11) == nil)
    }

    @Test func `a page holds the records after a sequence, within the limits`() throws {
        var ring = ring()
        try append(11...20, to: &ring)
        #expect(sequences(page(ring, after: 17)) == [18, 19, 20])
        #expect(sequences(page(ring, after: 20)) == [])
        let two = page(ring, after: 10, limit: 2)
        #expect(sequences(two) == [11, 12])
        #expect(two?.sequence == 12)
        // A single record is returned even if it is larger than the page limit.
        #expect(sequences(page(ring, after: 10, bytes: 1)) == [11])
    }

    @Test func `the ring counts the bytes after each sequence for which it is complete`() throws {
        var ring = ring(count: 4)
        #expect(ring.bytes(after: 10) == 0)
        try append(11...20, to: &ring)
        let sizes = try (11...20).map { try brokerRecord($0).bytes.count }
        #expect(ring.bytes(after: 20) == 0)
        #expect(ring.bytes(after: 19) == sizes[9])
        #expect(ring.bytes(after: 16) == sizes.suffix(4).reduce(0, +))
        // Only the catalog has older records.
        #expect(ring.bytes(after: 15) == nil)
    }

    @Test func `a filtered page advances if nothing matches`() throws {
        var ring = ring()
        try append(11...13, to: &ring)
        try append(14...14, to: &ring, [assetID(2)])
        try append(15...16, to: &ring)
        let found = page(ring, after: 10, topics: ["asset.\(assetID(2))"])
        #expect(sequences(found) == [14])
        #expect(found?.sequence == 16)
        let nothing = page(ring, after: 14, topics: ["asset.\(assetID(3))"])
        #expect(sequences(nothing) == [])
        #expect(nothing?.sequence == 16)
    }

    @Test func `the oldest records are dropped, and the oldest complete sequence rises with them`() throws {
        var ring = ring(count: 3)
        try append(11...15, to: &ring)
        #expect(ring.count == 3)
        #expect(ring.oldestComplete == 12)
        #expect(page(ring, after: 11) == nil)
        #expect(sequences(page(ring, after: 12)) == [13, 14, 15])
    }

    @Test func `the bytes are limited, and a record above the limit leaves an empty ring`() throws {
        var ring = ring(bytes: 10_000)
        try append(11...30, to: &ring)
        #expect(ring.bytes <= 10_000)
        #expect(ring.head == 30)
        let large = try brokerRecord(31, caption: String(repeating: "x", count: 20_000))
        ring.append(large, topics: large.parts.map(\.topic))
        #expect(ring.count == 0)
        #expect(ring.bytes == 0)
        #expect(ring.oldestComplete == 31)
        #expect(ring.head == 31)
    }

    @Test func `previous is the topic's last sequence if the ring has it, else the oldest complete one`() throws {
        var ring = ring(count: 3)
        #expect(ring.previous("asset.\(assetID(1))") == 10)
        try append(11...11, to: &ring, [assetID(1)])
        try append(12...13, to: &ring, [assetID(2)])
        #expect(ring.previous("asset.\(assetID(1))") == 11)
        #expect(ring.previous("asset.\(assetID(2))") == 13)
        #expect(ring.previous("asset.\(assetID(3))") == 10)
        try append(14...14, to: &ring, [assetID(2)])
        #expect(ring.previous("asset.\(assetID(1))") == 11)
        #expect(ring.oldestComplete == 11)
        try append(15...16, to: &ring, [assetID(2)])
        #expect(ring.previous("asset.\(assetID(1))") == 13)
    }
}

/// Tests of the frames of live messages, and of the record parser.
@Suite(.timeLimit(.minutes(5)))
struct LiveFramesTests {
    private func json(_ frame: [UInt8]) throws -> JSON { try JSON(parsing: frame) }

    @Test func `a change message carries the whole record and previous`() throws {
        let record = try brokerRecord(9)
        let frame = LiveFrames.changes(record, previous: 8, limit: 1 << 18)
        var expected = try #require(record.json.objectValue)
        expected["previous"] = 8
        expected["token"] = .string("\(testLibrary).9")
        #expect(frame == JSON.object(expected).bytes)
    }

    @Test func `a large change message carries identifiers, and if those are too large only its position`() throws {
        let ids = (0..<100).map { assetID($0) }
        let record = try brokerRecord(9, ids)
        let truncated = try json(LiveFrames.changes(record, previous: 8, limit: 5000))
        #expect(truncated["truncated"] == true)
        #expect(truncated["previous"] == 8)
        #expect(truncated["library"]?.stringValue == testLibrary)
        #expect(truncated["assets"] == JSON(ids.map(\.text)))
        let bare = try json(LiveFrames.changes(record, previous: 8, limit: 500))
        #expect(bare["truncated"] == true)
        #expect(bare["assets"] == nil)
        #expect(LiveFrames.changes(record, previous: 8, limit: 5000).count <= 5000)
    }

    @Test func `an entity's message carries its change, its position and its origin`() throws {
        let record = try brokerRecord(9, [assetID(1), assetID(2)])
        let part = try #require(record.parts.last)
        #expect(part.topic == "asset.\(assetID(2))")
        let message = try json(LiveFrames.part(part, of: record, previous: 4, limit: 1 << 18))
        #expect(message["sequence"] == 9)
        #expect(message["previous"] == 4)
        #expect(message["token"]?.stringValue == "\(testLibrary).9")
        #expect(message["library"]?.stringValue == testLibrary)
        #expect(message["origin"]?["identity"] == "uid:1")
        #expect(message["date"] == 9)
        #expect(try message["change"] == record.json["assets"]?.arrayValue?.last)
        let small = try json(LiveFrames.part(part, of: record, previous: 4, limit: 300))
        #expect(small["truncated"] == true)
        #expect(small["change"] == nil)
    }

    @Test(arguments: [
        "{}", "[]", "{\"sequence\":0,\"library\":\"x\",\"date\":1,\"origin\":{}}",
        "{\"sequence\":1,\"library\":\"x\",\"date\":1}",
        "{\"sequence\":1,\"library\":\"x\",\"date\":1,\"origin\":{},\"assets\":[{}]}",
        "{\"sequence\":1,\"library\":\"x\",\"date\":1,\"origin\":{},\"edits\":{}}",
    ])
    func `text that is not a change record is refused`(text: String) throws {
        let json = try JSON(parsing: text)
        #expect(throws: JSONProblem.self) { try BrokerRecord(json.bytes) }
    }

    @Test func `unknown members of a newer catalog are passed on`() throws {
        var object = try #require(try brokerRecord(9).json.objectValue)
        object["weather"] = "fine"
        let message = try json(
            LiveFrames.changes(try BrokerRecord(JSON.object(object).bytes), previous: 8, limit: 1 << 18)
        )
        #expect(message["weather"] == "fine")
    }
}

/// Tests of the set of subscribed topics.
@Suite(.timeLimit(.minutes(5)))
struct SubscribedTopicsTests {
    private func selectedTopics(_ topics: SubscribedTopics, _ ids: [ObjectID]) throws -> [String] {
        topics.filter(try brokerRecord(1, ids).parts).map(\.topic)
    }

    @Test func `only subscribed topics are selected`() throws {
        let topics = SubscribedTopics()
        #expect(try selectedTopics(topics, [assetID(1)]) == [])
        topics.note("asset.\(assetID(2))", isSubscribed: true)
        #expect(try selectedTopics(topics, [assetID(1), assetID(2)]) == ["asset.\(assetID(2))"])
        topics.note("asset.\(assetID(2))", isSubscribed: false)
        #expect(try selectedTopics(topics, [assetID(1), assetID(2)]) == [])
    }

    @Test(arguments: ["", "asset.", "as"])
    func `a subscription to a prefix selects every topic with this prefix`(beginning: String) throws {
        let topics = SubscribedTopics()
        topics.note(beginning, isSubscribed: true)
        #expect(try selectedTopics(topics, [assetID(1), assetID(2)]).count == 2)
    }

    @Test func `a subscription to a prefix does not count as one to a topic`() {
        let topics = SubscribedTopics(limit: 3)
        for prefix in ["", "fetch."] { topics.note(prefix, isSubscribed: true) }
        #expect(topics.hasSubscriber("fetch.a") && !topics.isSubscribed(exactly: "fetch.a"))
        topics.note("fetch.a", isSubscribed: true)
        #expect(topics.isSubscribed(exactly: "fetch.a") && !topics.isSubscribed(exactly: "fetch.b"))
        topics.note("fetch.b", isSubscribed: true)
        #expect(topics.isSubscribed(exactly: "fetch.b"), "beyond the limit every topic counts as subscribed")
    }

    @Test func `a topic of the change log has no zero byte`() {
        #expect(FeedTopicFilter.problem(with: "asset.\u{0}")?.contains("is not a topic") == true)
        #expect(FeedTopicFilter.problem(with: "asset.a") == nil)
    }

    @Test func `all topics are selected if there are more subscriptions than the limit`() throws {
        let topics = SubscribedTopics(limit: 2)
        for number in 5..<9 { topics.note("asset.\(assetID(UInt64(number)))", isSubscribed: true) }
        #expect(topics.count == 2)
        #expect(try selectedTopics(topics, [assetID(1)]).count == 1)
    }
}
