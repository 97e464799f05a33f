import CZeroMQ
import Foundation
import JSONValue
import TestSupport
import Testing

/// Observed fetches and change details by plain ZeroMQ sockets, without the project's own clients.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ObservationRowTests {
    /// A DEALER socket that sends one request at a time.
    private final class Script {
        private let socket: ScriptSocket
        private var last = 0

        init(_ services: SafelightFixture, _ service: String) {
            socket = ScriptSocket(ZMQ_DEALER, services, service)
        }

        func reply(_ method: String, _ params: JSON) throws -> JSON {
            last += 1
            let request: JSON = ["jsonrpc": "2.0", "id": JSON(last), "method": .string(method), "params": params]
            socket.send(request.text)
            while true {
                let frames = try #require(socket.receive(milliseconds: 30_000), "\(method): no reply")
                let reply = try JSON(parsing: frames[0])
                if reply["id"]?.intValue == Int64(last), reply["method"] == nil { return reply }
            }
        }

        @discardableResult
        func call(_ method: String, _ params: JSON) throws -> JSON {
            let reply = try reply(method, params)
            return try #require(reply["result"], "\(method): \(reply.text)")
        }

        func error(_ method: String, _ params: JSON) throws -> String? {
            try reply(method, params)["error"]?["data"]?["name"]?.stringValue
        }
    }

    /// Collects what a subscriber receives up to a head.
    private func messages(_ feed: ScriptSocket, through token: JSON) throws -> [(topic: String, json: JSON)] {
        let sequence = try #require(token.stringValue?.split(separator: ".").last.flatMap { Int64($0) })
        var found: [(String, JSON)] = []
        while true {
            let frames = try #require(feed.receive(milliseconds: 30_000), "no head \(sequence)")
            let (topic, json) = (String(decoding: frames[0], as: UTF8.self), try JSON(parsing: frames[1]))
            if topic == "head" {
                if json["sequence"]?.intValue ?? 0 >= sequence { return found }
            } else {
                found.append((topic, json))
            }
        }
    }

    private struct Library {
        let services: SafelightFixture
        let catalog: Script
        let assets: [JSON]

        func perform(_ requests: JSON...) throws -> JSON {
            try catalog.call("changes.perform", ["requests": .array(requests)])
        }
    }

    private func withLibrary(_ body: (Library) throws -> Void) throws {
        let services = try SafelightFixture("observed")
        try services.generateLibrary(assets: 40)
        try services.start([.catalog, .changeBroker])
        let catalog = Script(services, "catalog")
        let page = try catalog.call("fetch.assets", ["count": 12])
        let assets = (page["assets"]?.arrayValue ?? []).compactMap { $0["id"] }
        try #require(assets.count == 12)
        try body(Library(services: services, catalog: catalog, assets: assets))
        #expect(services.stop() == [])
    }

    private func subscriber(_ services: SafelightFixture, _ topics: JSON?...) -> ScriptSocket {
        let feed = ScriptSocket(ZMQ_SUB, services, "feed")
        for topic in topics.compactMap({ $0?.stringValue }) + ["head"] { feed.subscribe(topic) }
        // A new subscriber of head is sent one.
        _ = feed.receive(milliseconds: 30_000)
        return feed
    }

    private func ids(_ places: JSON?) -> [JSON] { (places?.arrayValue ?? []).compactMap { $0["id"] } }

    @Test(.spec("S-65", "S-66", "S-67", "D7"))
    func `catalog and broker say of a deleted album and an emptied moment what is removed, and that they are deleted`()
        throws
    {
        try withLibrary { library in
            let (catalog, broker) = (library.catalog, Script(library.services, "change-broker"))
            let made = try library.perform([
                "type": "collection.create", "ref": "album", "title": "A",
                "add": .array(Array(library.assets.prefix(3))),
            ])
            let album = try #require(made["placeholders"]?["album"])
            // A moment of its own: nothing else was taken on that day.
            let moved = try library.perform([
                "type": "asset.update", "id": library.assets[5], "set": ["creationDate": 34_430_400_000_000],
            ])
            let moments = try catalog.call(
                "fetch.collections",
                ["fetch": ["kind": "collections", "type": "moment", "containing": library.assets[5]]]
            )
            let moment = try #require(moments["collections"]?.arrayValue?.first?["id"])
            let start = try #require(moved["token"])
            let objects = [(album, Array(library.assets.prefix(3))), (moment, [library.assets[5]])]
            var observed: [JSON] = []
            for (id, _) in objects {
                observed.append(try broker.call("fetch.observe", ["fetch": ["in": id], "token": start]))
            }
            let feed = subscriber(library.services, observed[0]["topic"], observed[1]["topic"])
            _ = try library.perform(["type": "collection.delete", "ids": [album]])
            let end = try #require(
                try library.perform(["type": "asset.update", "id": library.assets[5], "set": ["isHidden": true]])[
                    "token"
                ]
            )
            let live = try messages(feed, through: end)
            #expect(live.count == 2)
            for (index, (id, members)) in objects.enumerated() {
                let fetch: JSON = ["kind": "assets", "in": id]
                let told = try catalog.call("changes.details", ["from": start, "fetch": fetch, "ids": [id]])
                #expect(ids(told["details"]?["removed"]) == members && told["objectWasDeleted"] == true)
                let object = told["objects"]?.arrayValue?.first
                #expect(object?["id"] == id && object?["objectWasDeleted"] == true && object?["after"] == nil)
                let since = try broker.call(
                    "fetch.details",
                    ["observation": try #require(observed[index]["observation"]), "token": start]
                )
                #expect(ids(since["details"]?["removed"]) == members && since["objectWasDeleted"] == true)
                let message = live.first { $0.topic == observed[index]["topic"]?.stringValue }?.json
                #expect(ids(message?["details"]?["removed"]) == members && message?["objectWasDeleted"] == true)
                // A client that was away observes from its old token; one without a token finds nothing.
                let late: JSON = ["kind": "assets", "in": id, "limit": 100]
                let again = try broker.call("fetch.observe", ["fetch": late, "token": start])
                #expect(ids(again["details"]?["removed"]) == members && again["objectWasDeleted"] == true)
                #expect(try catalog.error("changes.details", ["from": end, "fetch": fetch]) == "identifier_not_found")
            }
        }
    }

    @Test(.spec("S-64"))
    func `unobserve ends only one's own observation, and after the last nothing more arrives, even at an open SUB`()
        throws
    {
        try withLibrary { library in
            let (one, other) = (Script(library.services, "change-broker"), Script(library.services, "change-broker"))
            let fetch: JSON = ["fetch": ["predicate": "caption BEGINSWITH \"now\""]]
            let first = try one.call("fetch.observe", fetch)
            let second = try other.call("fetch.observe", fetch)
            let observation = try #require(first["observation"])
            #expect(second["observation"] == observation)
            let feed = subscriber(library.services, first["topic"])
            func caption(_ text: String, _ number: Int) throws -> JSON {
                let done = try library.perform([
                    "type": "asset.update", "id": library.assets[number], "set": ["caption": .string(text)],
                ])
                return try #require(done["token"])
            }
            #expect(try messages(feed, through: caption("now 1", 1)).count == 1)
            try one.call("fetch.unobserve", ["observation": observation])
            // The other still has it, with details and messages, and the first cannot end it again.
            let name = try one.error("fetch.unobserve", ["observation": observation])
            #expect(name == "handle_expired")
            #expect(try messages(feed, through: caption("now 2", 2)).count == 1)
            let token = try #require(second["token"])
            let details = try other.call("fetch.details", ["observation": observation, "token": token])
            #expect(details["details"]?["inserted"]?.arrayValue?.count == 2)
            try other.call("fetch.unobserve", ["observation": observation])
            #expect(try messages(feed, through: caption("now 3", 3)).isEmpty, "nobody observes any more")
            #expect(try messages(feed, through: caption("then", 3)).isEmpty)
            // A connection that ended leaves what it held to the next one of its identity.
            try Script(library.services, "change-broker").call("fetch.observe", fetch)
            var isEnded = false
            for _ in 0..<200 where !isEnded {
                isEnded = try one.reply("fetch.unobserve", ["observation": observation])["result"] != nil
            }
            #expect(isEnded)
            #expect(try messages(feed, through: caption("now 4", 4)).isEmpty)
        }
    }

    @Test(.spec("P-19"))
    func `the assets of a folder and the collections of an asset can be observed, also when an album moves`() throws {
        try withLibrary { library in
            let broker = Script(library.services, "change-broker")
            let assets = library.assets
            let made = try library.perform(
                ["type": "list.create", "ref": "folder", "title": "F"],
                [
                    "type": "collection.create", "ref": "inside", "title": "I", "add": [assets[0], assets[1]],
                    "parent": ["ref": "folder"],
                ],
                ["type": "collection.create", "ref": "outside", "title": "O", "add": [assets[1], assets[2]]]
            )
            let names = try #require(made["placeholders"])
            let (folder, outside) = (try #require(names["folder"]), try #require(names["outside"]))
            let inside = try #require(names["inside"])
            let start = try #require(made["token"])
            let fetches: [JSON] = [
                ["kind": "assets", "in": folder],
                ["kind": "collections", "type": "album", "containing": assets[2]],
                ["kind": "lists", "containing": outside],
            ]
            let observed = try fetches.map { try broker.call("fetch.observe", ["fetch": $0, "token": start]) }
            #expect(observed.map { $0["count"]?.intValue } == [2, 1, 1])
            let feed = subscriber(library.services, observed[0]["topic"], observed[1]["topic"], observed[2]["topic"])
            func live(_ token: JSON?) throws -> [String: JSON] {
                let found = try messages(feed, through: try #require(token))
                return Dictionary(found.map { ($0.topic, $0.json["details"] ?? .null) }) { first, _ in first }
            }
            func topic(_ index: Int) -> String { observed[index]["topic"]?.stringValue ?? "" }
            // An album comes into the folder: its assets are in no record.
            var told = try live(
                library.perform([
                    "type": "list.update", "id": folder, "edits": [["op": "add", "members": [outside]]],
                ])["token"]
            )
            #expect(ids(told[topic(0)]?["inserted"]) == [assets[2]])
            #expect(ids(told[topic(2)]?["inserted"]) == [folder] && ids(told[topic(2)]?["removed"]).count == 1)
            // One album less, but the asset is still in the other one.
            told = try live(
                library.perform(["type": "collection.update", "id": inside, "remove": [assets[1]]])["token"]
            )
            #expect(ids(told[topic(0)]?["removed"]) == [])
            told = try live(
                library.perform(["type": "collection.update", "id": inside, "add": [assets[2], assets[7]]])["token"]
            )
            #expect(ids(told[topic(0)]?["inserted"]) == [assets[7]])
            #expect(ids(told[topic(1)]?["inserted"]) == [inside])
            let end = try library.perform(["type": "list.delete", "ids": [folder]])["token"]
            told = try live(end)
            #expect(ids(told[topic(0)]?["removed"]).count == 4)
            #expect(ids(told[topic(1)]?["removed"]).count == 2)
            // From the start, by the broker and by the catalog.
            for (index, fetch) in fetches.enumerated() {
                let since = try broker.call(
                    "fetch.details",
                    ["observation": try #require(observed[index]["observation"]), "token": start]
                )
                let catalog = try library.catalog.call("changes.details", ["from": start, "fetch": fetch])
                #expect(ids(since["details"]?["removed"]) == ids(catalog["details"]?["removed"]))
                #expect(ids(since["details"]?["removed"]) != [])
                #expect(since["objectWasDeleted"] == catalog["objectWasDeleted"])
            }
        }
    }

    @Test(.spec("S-67")) func `details.diff answers for two results`() throws {
        try withLibrary { library in
            let before = try library.catalog.call("fetch.assets", ["count": 1])["token"] ?? .null
            let liked: JSON = ["kind": "assets", "predicate": "rating == 5 AND caption == \"liked\""]
            _ = try library.perform([
                "type": "asset.update", "id": library.assets[3], "set": ["rating": 5, "caption": "liked"],
            ])
            let found = try library.catalog.call(
                "details.diff",
                ["from": ["fetch": liked, "token": before], "to": ["fetch": liked], "form": "rice"]
            )
            #expect(ids(found["details"]?["inserted"]) == [library.assets[3]])
            #expect(found["rice"]?["insertedIndexes"] == [0])
            let error = try library.catalog.error(
                "details.diff",
                ["from": ["fetch": liked], "to": ["fetch": ["kind": "collections"]]]
            )
            #expect(error == "invalid_options")
        }
    }
}
