import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker
@testable import PhotoClient

/// A simulation of a broker and its readers without sockets: live messages are lost at random, the broker restarts at
/// random, and history is always available.
private struct Simulation {
    struct Reader {
        let topics: [String]
        var state: FeedStateMachine
        var inbox: [(topic: String, frame: [UInt8])] = []
        var reported: [FeedEvent] = []
    }

    var random: SeededRandom
    var log: [ChangeRecord] = []
    var ring: RecordRing
    var instance = 0
    var readers: [Reader] = []
    var now: Int64 = 0
    let loss: Double
    let token0 = ChangeToken(library: testLibrary, sequence: 0)

    init(random: SeededRandom, loss: Double) {
        self.random = random
        ring = RecordRing(after: token0, maxCount: 8, maxBytes: 1 << 20)
        self.loss = loss
        let topics = (0..<4).map { FeedTopic.object(assetID($0)) }
        for topics in [[], [FeedTopic.changes, topics[0]], [topics[0]], [topics[1]], [topics[0], topics[2]], topics] {
            readers.append(Reader(topics: topics, state: FeedStateMachine(since: token0, topics: topics)))
        }
    }

    /// Returns true with a probability.
    mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &random) < probability }

    mutating func commit() {
        var record = ChangeRecord(
            sequence: Int64(log.count + 1),
            library: testLibrary,
            date: now,
            origin: ChangeOrigin(identity: "uid:1")
        )
        let sequence = record.sequence
        record.assets = (0..<4).filter { _ in chance(0.3) }.map {
            EntityChange(before: nil, after: Asset(id: assetID($0), revision: Revision(sequence)))
        }
        log.append(record)
    }

    /// Lets the broker receive and publish the records that it does not have yet.
    mutating func follow() throws {
        for record in log where record.sequence > ring.head {
            let record = try BrokerRecord(record.json.bytes)
            // Sometimes a message is too large and is truncated.
            let limit = chance(0.05) ? 10 : 1 << 20
            send(FeedTopic.changes, LiveFrames.changes(record, previous: ring.head, limit: limit))
            for part in record.parts {
                let previous = ring.previous(part.topic)
                send(part.topic, LiveFrames.part(part, of: record, previous: previous, limit: limit))
            }
            ring.append(record, topics: record.parts.map(\.topic))
        }
    }

    mutating func publishHead() {
        let head = FeedHead(sequence: ring.head, oldest: 0, library: testLibrary, instance: "i\(instance)")
        send(FeedTopic.head, LiveFrames.head(head))
    }

    /// Kills the broker; the next one begins at the catalog's head.
    mutating func restartBroker() {
        instance += 1
        let head = ChangeToken(library: testLibrary, sequence: Int64(log.count))
        ring = RecordRing(after: head, maxCount: 8, maxBytes: 1 << 20)
    }

    private mutating func send(_ topic: String, _ frame: [UInt8]) {
        for index in readers.indices where !chance(loss) {
            let topics = readers[index].topics
            let filter = FeedTopicFilter(topics)
            let isSubscribed =
                topic == FeedTopic.head
                || (filter.isEverything ? topic == FeedTopic.changes : filter.topics.contains(topic))
            if isSubscribed { readers[index].inbox.append((topic, frame)) }
        }
    }

    /// Performs one step of one reader.
    mutating func step(_ index: Int) throws {
        switch readers[index].state.nextAction {
        case .live:
            guard !readers[index].inbox.isEmpty else { return }
            let (topic, frame) = readers[index].inbox.removeFirst()
            switch try LiveMessage(topic: topic, frames: [frame]) {
            case .head(let head): readers[index].state.handleHead(head, now: now)
            case .change(let change):
                if let event = readers[index].state.handleLive(change) { readers[index].reported.append(event) }
            }
        case .page(let token):
            // The broker is sometimes unreachable.
            if chance(0.2) { return }
            readers[index].reported += readers[index].state.handlePage(try page(after: token, readers[index].topics))
        case .head: Issue.record("this reader has a token")
        }
    }

    private func page(after token: ChangeToken, _ topics: [String]) throws -> FeedStateMachine.Page {
        let limit = 3
        if let page = ring.page(after: token.sequence, limit: limit, filter: FeedTopicFilter(topics), maxBytes: 1 << 20)
        {
            let records = try page.records.map { try ChangeRecord(json: JSON(parsing: $0)) }
            let reached = ChangeToken(library: testLibrary, sequence: page.sequence)
            return .init(records: records, token: reached, head: ring.token)
        }
        // The catalog's response.
        let later = log.filter { $0.sequence > token.sequence }
        let found = later.filter { FeedTopicFilter(topics).includes($0.topics) }.prefix(limit)
        let head = ChangeToken(library: testLibrary, sequence: Int64(log.count))
        let reached = found.count == limit ? found.last?.token ?? head : head
        return .init(records: Array(found), token: reached, head: head)
    }

    /// Lets all readers catch up: publishes heads while the time advances.
    mutating func catchUp() throws {
        try follow()
        for _ in 0..<200 {
            now += 1_000_000
            publishHead()
            for index in readers.indices {
                for _ in 0..<40 { try step(index) }
            }
        }
    }

    func expected(_ topics: [String]) -> [ChangeRecord] {
        let filter = FeedTopicFilter(topics)
        return filter.isEverything ? log : log.map { $0.restricted(to: filter) }.filter { !$0.isEmpty }
    }
}

/// Tests of the rules of the broker together with those of its readers.
@Suite(.timeLimit(.minutes(5)))
struct GaplessRuleTests {
    @Test(arguments: [0, 0.05, 0.5, 1])
    func `a reader that follows the rules receives every change once and in order`(loss: Double) throws {
        var simulation = Simulation(random: SeededRandom(named: "gapless rules, loss \(loss)"), loss: loss)
        for _ in 0..<TestEnvironment.rounds(400) {
            simulation.now += 100_000
            switch Int.random(in: 0..<20, using: &simulation.random) {
            case 0..<9: simulation.commit()
            case 9..<14: try simulation.follow()
            case 14..<16: simulation.publishHead()
            case 16: if simulation.chance(0.3) { simulation.restartBroker() }
            default: break
            }
            try simulation.step(Int.random(in: simulation.readers.indices, using: &simulation.random))
        }
        try simulation.catchUp()
        guard loss < 1 else {
            // Without live messages, only the first changes were read; they must be in order and without duplicates.
            for reader in simulation.readers { #expect(isOrdered(reader.reported)) }
            return
        }
        for reader in simulation.readers {
            #expect(changes(reader.reported) == simulation.expected(reader.topics), "\(reader.topics)")
            #expect(reader.state.position?.sequence == Int64(simulation.log.count))
        }
    }

    private func changes(_ events: [FeedEvent]) -> [ChangeRecord] {
        events.compactMap { if case .change(let record) = $0 { record } else { nil } }
    }

    private func isOrdered(_ events: [FeedEvent]) -> Bool {
        let sequences = changes(events).map(\.sequence)
        return zip(sequences, sequences.dropFirst()).allSatisfy(<)
    }
}
