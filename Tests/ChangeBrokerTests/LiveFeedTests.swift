import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests of the live messages of a real broker.
@Suite(.timeLimit(.minutes(5)), .serialized)
struct LiveFeedTests {
    @Test func `changes are published in order, each after its previous sequence`() async throws {
        try await BrokerFixture.with { fixture in
            await fixture.catalog.commit(times: 3)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let live = try await fixture.subscriber([FeedTopic.changes])
                    await fixture.catalog.commit(times: 20)
                    let changes = try await live.changes(20)
                    #expect(changes.map { $0.json["sequence"]?.intValue } == (4...23).map { $0 })
                    #expect(changes.map { $0.json["previous"]?.intValue } == (3...22).map { $0 })
                    var record = try #require(changes.last?.json.objectValue)
                    record["previous"] = nil
                    #expect(record["token"]?.stringValue == "\(testLibrary).23")
                    #expect(try await ChangeRecord(json: .object(record)) == fixture.catalog.records.last)
                    let head = try #require(try await live.head())
                    #expect(head.sequence == 23)
                    #expect(head.oldest == 0)
                }
            }
        }
    }

    @Test func `an entity's topic carries its changes only, each with the previous sequence`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let live = try await fixture.subscriber(["asset.\(assetID(2))", "edit.e7"])
                    await fixture.catalog.commit([assetID(1)])
                    await fixture.catalog.commit([assetID(1), assetID(2)])
                    await fixture.catalog.commit([assetID(1)])
                    await fixture.catalog.commit([assetID(2)])
                    let edit = PublishedEdit(id: "e7", asset: assetID(3), state: .accepted)
                    await fixture.catalog.commit([], edit: edit)
                    let changes = try await live.changes(3)
                    #expect(
                        changes.map(\.topic) == ["asset.\(assetID(2))", "asset.\(assetID(2))", "edit.e7"]
                    )
                    #expect(changes.map { $0.json["sequence"]?.intValue } == [2, 4, 5])
                    #expect(changes.map { $0.json["previous"]?.intValue } == [0, 2, 0])
                    #expect(changes.last?.json["change"] == edit.json)
                }
            }
        }
    }

    @Test(.spec("S-66"))
    func `an object's message lists the changed properties, and whether its content changed or it was deleted`()
        async throws
    {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let live = try await fixture.subscriber(["asset.\(assetID(1))"])
                    var first = Asset(id: assetID(1), revision: Revision(1))
                    first.contentRevision = Revision(1)
                    var renamed = first
                    renamed.caption = "a caption"
                    renamed.rating = 3
                    renamed.revision = Revision(2)
                    var edited = renamed
                    edited.pixelWidth = 640
                    edited.revision = Revision(3)
                    edited.contentRevision = Revision(3)
                    let states: [Asset?] = [nil, first, renamed, edited, nil]
                    for (before, after) in zip(states, states.dropFirst()) {
                        await fixture.catalog.commit([EntityChange(before: before, after: after)])
                    }
                    let changes = try await live.changes(4).map(\.json)
                    #expect(changes.map { $0["assetContentChanged"] } == [false, false, true, false])
                    #expect(changes.map { $0["objectWasDeleted"] } == [false, false, false, true])
                    #expect(
                        changes.map { $0["changedProperties"] } == [
                            nil, ["caption", "rating"], ["pixelWidth"], nil,
                        ]
                    )
                    #expect(changes[1]["change"] == ["before": first.json, "after": renamed.json])
                }
            }
        }
    }

    @Test func `after a restart of the broker, previous is the sequence at which its ring begins`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                var instances: Set<String> = []
                for round in 1...2 {
                    let instance = try await fixture.withBroker { _ in
                        try await fixture.waitUntilCaughtUp()
                        let live = try await fixture.subscriber(["asset.\(assetID(1))"])
                        await fixture.catalog.commit([assetID(1)])
                        let message = try #require(try await live.changes(1).first)
                        let sequence = Int64(round * 2 - 1)
                        #expect(message.json["sequence"]?.intValue == sequence)
                        #expect(message.json["previous"]?.intValue == sequence - 1)
                        return try #require(try await live.head()).instance
                    }
                    instances.insert(instance)
                    await fixture.catalog.commit([assetID(1)])
                }
                #expect(instances.count == 2)
            }
        }
    }

    @Test func `a large change is truncated live and complete in history`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let live = try await fixture.subscriber([FeedTopic.changes])
                    let text = String(repeating: "x", count: 1000)
                    let record = await fixture.catalog.commit((0..<300).map { assetID($0) }, caption: text)
                    let message = try #require(try await live.changes(1).first)
                    #expect(message.json["truncated"] == true)
                    #expect(message.json["assets"]?.arrayValue?.count == 300)
                    let page = try await fixture.library.changeBroker.ask(
                        FeedSince(token: ChangeToken(library: testLibrary, sequence: 0))
                    ).result
                    #expect(page.records == [record.json])
                }
            }
        }
    }

    @Test func `the broker reports an unreachable catalog and continues from its position`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withBroker { _ in
                _ = try await fixture.waitUntilUnhealthy()
                let refused = await #expect(throws: RPCError.self) {
                    try await fixture.library.changeBroker.ask(FeedHeadRequest())
                }
                #expect(refused?.errorCode == .unavailable)
                let live = try await fixture.withCatalog {
                    try await fixture.waitUntilCaughtUp()
                    let live = try await fixture.subscriber([FeedTopic.changes])
                    await fixture.catalog.commit(times: 2)
                    try await fixture.waitUntilCaughtUp()
                    return live
                }
                let health = try await fixture.waitUntilUnhealthy()
                #expect(health.problems.count == 1)
                #expect(health.sequence == 2)
                await fixture.catalog.commit(times: 3)
                try await fixture.withCatalog {
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.commit(times: 1)
                    try await fixture.waitUntilCaughtUp()
                }
                let changes = try await live.changes(6)
                #expect(changes.map { $0.json["sequence"]?.intValue } == [1, 2, 3, 4, 5, 6])
                #expect(changes.map { $0.json["previous"]?.intValue } == [0, 1, 2, 3, 4, 5])
            }
        }
    }

    @Test func `another history restarts the feed`() async throws {
        try await BrokerFixture.with { fixture in
            try await fixture.withBroker { _ in
                let live = try await fixture.withCatalog {
                    await fixture.catalog.commit(times: 5)
                    try await fixture.waitUntilCaughtUp()
                    return try await fixture.subscriber([FeedTopic.changes])
                }
                await fixture.catalog.restore(as: otherLibrary, keeping: 3)
                try await fixture.withCatalog {
                    try await fixture.waitUntilCaughtUp()
                    await fixture.catalog.commit()
                    let message = try #require(try await live.changes(1).first)
                    #expect(message.json["sequence"] == 4)
                    #expect(message.json["previous"] == 3)
                    #expect(message.json["library"]?.stringValue == otherLibrary)
                    let error = await #expect(throws: RPCError.self) {
                        try await fixture.library.changeBroker.ask(
                            FeedSince(token: ChangeToken(library: testLibrary, sequence: 3))
                        )
                    }
                    #expect(error?.errorCode == .tokenExpired)
                    #expect(error?.data["head"]?.stringValue == "\(otherLibrary).4")
                }
            }
        }
    }
}
