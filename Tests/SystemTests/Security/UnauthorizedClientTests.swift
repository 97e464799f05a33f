import Basics
import CZeroMQ
import Contracts
import Foundation
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// CURVE clients that are not allowed, at every client-facing socket of the real services over TCP.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct UnauthorizedClientTests {
    /// A client-facing socket, with the list that its clients' keys must be on.
    private enum EntryPoint: String, CaseIterable, Sendable {
        case catalog, thumbnailer, editor, broker, feed, edits

        var list: String {
            switch self {
            case .feed: "feed"
            case .edits: "edits"
            default: "requests"
            }
        }
    }

    private static func address(_ entryPoint: EntryPoint, _ network: NetworkFixture) -> String {
        switch entryPoint {
        case .catalog: network.catalog
        case .thumbnailer: network.thumbnailer ?? ""
        case .editor: network.editor[0]
        case .broker: network.broker[0]
        case .feed: network.broker[1]
        case .edits: network.editor[1]
        }
    }

    private static func asset(_ library: PhotoLibrary) async throws -> ObjectID {
        try await library.createAsset(TestImages.jpeg(width: 64, height: 48, seed: 1))
    }

    private static func edit(_ id: String, of asset: ObjectID) -> Bytes {
        PublishEdit(id: id, asset: asset, adjustments: AdjustmentList(operations: [.exposure(0.5)])).frame
    }

    private static let request = Bytes(#"{"jsonrpc":"2.0","id":1,"method":"health"}"#.utf8)

    /// Returns the ids of all edits in the history.
    private static func edits(_ library: PhotoLibrary) async throws -> Set<String> {
        let records = try await library.changeBroker.ask(FeedSince(token: nil, limit: 500)).result.records
        return Set(try records.flatMap { try ChangeRecord(json: $0).edits.map(\.id) })
    }

    @Test func `no key, a wrong, a revoked or another list's key: no response, no feed, no edit`()
        async throws
    {
        let network = try NetworkFixture(withEditor: true, withThumbnailer: true)
        let services = network.services
        let began = Date()
        func create(_ name: String, _ lists: String) throws -> Keys {
            #expect(try services.safelight(["keys", "create", name, "--domain", lists]).status == 0)
            return try Keys(
                server: Certificate(readingPublic: network.keyFolder(name) + "/server.key").publicKey.text,
                pair: #require(KeyFolder.pair(network.keyFolder(name) + "/\(name).key_secret"))
            )
        }
        var clients: [String: (keys: Keys?, lists: Set<String>)] = ["nobody": (nil, [])]
        for list in ["requests", "feed", "edits"] {
            clients["only-\(list)"] = (try create("only-\(list)", list), [list])
        }
        let all = try create("everywhere", "requests,feed,edits")
        clients["everywhere"] = (all, ["requests", "feed", "edits"])
        clients["wrong-server"] = (Keys(server: try CurveKeyPair.generate().publicKey.text, pair: all.pair), [])
        clients["unlisted"] = (Keys(server: all.server, pair: try .generate()), [])
        clients["revoked"] = (try create("revoked", "requests,feed,edits"), [])
        #expect(try services.safelight(["keys", "revoke", "revoked"]).status == 0)

        let library = try services.library()
        let asset = try await Self.asset(library)
        let context = zmq_ctx_new()
        defer { zmq_ctx_term(context) }
        var sockets: [(client: String, entryPoint: EntryPoint, socket: KeyedSocket, isAllowed: Bool)] = []
        defer { for entry in sockets { entry.socket.close() } }
        for (name, client) in clients.sorted(by: { $0.key < $1.key }) {
            for entryPoint in EntryPoint.allCases {
                let kind = entryPoint == .feed ? ZMQ_SUB : entryPoint == .edits ? ZMQ_PUSH : ZMQ_DEALER
                let socket = KeyedSocket(context, kind, Self.address(entryPoint, network), client.keys)
                if kind == ZMQ_DEALER { socket.send(Self.request) }
                if kind == ZMQ_PUSH { socket.send(Self.edit(name, of: asset)) }
                sockets.append((name, entryPoint, socket, client.lists.contains(entryPoint.list)))
            }
        }
        // At least three seconds, with a change for the feed every tenth of a second, until every allowed client was
        // answered.
        var answered: Set<String> = []
        let allowed = Set(
            sockets.filter { $0.isAllowed && $0.entryPoint != .edits }.map { "\($0.client) \($0.entryPoint)" }
        )
        let publishers = Set(clients.filter { $0.value.lists.contains("edits") }.keys)
        var applied: Set<String> = []
        let start = ContinuousClock().now
        var changes = 0
        while ContinuousClock().now - start < .seconds(3) || answered != allowed || applied != publishers {
            changes += 1
            guard ContinuousClock().now - start < .seconds(40) else { break }
            _ = try await library.perform([
                .updateAsset(.init(id: .id(asset), set: AssetPatch(rating: changes % 6)))
            ])
            for entry in sockets where entry.entryPoint != .edits {
                if entry.socket.receive() != nil { answered.insert("\(entry.client) \(entry.entryPoint)") }
            }
            applied = try await Self.edits(library)
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(answered == allowed)
        #expect(applied == publishers)
        for entry in sockets where entry.entryPoint != .edits && !entry.isAllowed {
            #expect(entry.socket.receive() == nil, "\(entry.client) at \(entry.entryPoint)")
        }
        // Refused clients retried ten times a second; the log has at most one line a second for each list.
        let seconds = Int(Date().timeIntervalSince(began)) + 1
        var lines: [String: Int] = [:]
        for service in SafelightFixture.Service.allCases {
            for line in (services.program(service)?.errorText ?? "").split(separator: "\n") {
                #expect(
                    line.contains(" info ") || line.contains("connection refused") || line.contains("from the list"),
                    "\(line)"
                )
                guard line.contains("connection refused") else { continue }
                let list = line.firstMatch(of: /domain=([a-z]+)/).map { String($0.1) } ?? ""
                lines["\(service.rawValue) \(list)", default: 0] += 1
            }
        }
        TestPaths.report(
            "\(clients.count) clients at \(EntryPoint.allCases.count) sockets for \(seconds) s: log lines \(lines)"
        )
        #expect(lines.values.allSatisfy { $0 <= seconds + 1 })
        #expect(lines.count == 6, "each list of each service logs refusals")
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a key revoked while connected receives and does nothing more, and its successor works`()
        async throws
    {
        let network = try NetworkFixture(withEditor: true)
        let services = network.services
        func keys(_ name: String) throws -> Keys {
            #expect(try services.safelight(["keys", "create", name]).status == 0)
            return try Keys(
                server: Certificate(readingPublic: network.keyFolder(name) + "/server.key").publicKey.text,
                pair: #require(KeyFolder.pair(network.keyFolder(name) + "/\(name).key_secret"))
            )
        }
        let old = try keys("old")
        let library = try services.library()
        let asset = try await Self.asset(library)
        let context = zmq_ctx_new()
        defer { zmq_ctx_term(context) }
        let requests = KeyedSocket(context, ZMQ_DEALER, network.catalog, old)
        let feed = KeyedSocket(context, ZMQ_SUB, network.broker[1], old)
        let edits = KeyedSocket(context, ZMQ_PUSH, network.editor[1], old)
        defer { for socket in [requests, feed, edits] { socket.close() } }
        func receiveAnswer(_ socket: KeyedSocket) async throws -> JSON? {
            socket.send(Self.request)
            for _ in 0..<200 {
                if let frames = socket.receive() { return try JSON(parsing: frames[0]) }
                try await Task.sleep(for: .milliseconds(20))
            }
            return nil
        }
        #expect(try await receiveAnswer(requests)?["result"] != nil)
        edits.send(Self.edit("before", of: asset))
        while try await !Self.edits(library).contains("before") { try await Task.sleep(for: .milliseconds(20)) }
        while feed.receive() == nil { try await Task.sleep(for: .milliseconds(20)) }

        let revoked = ContinuousClock().now
        #expect(try services.safelight(["keys", "revoke", "old"]).status == 0)
        while try await receiveAnswer(requests)?["error"]?["data"]?["name"] != "access_denied" {
            guard ContinuousClock().now - revoked < .seconds(10) else { break }
        }
        TestPaths.report("a revoked key was refused after \(ContinuousClock().now - revoked)")
        #expect(ContinuousClock().now - revoked < .seconds(5), "two seconds, and a margin for a loaded machine")
        // The editor and the broker read their lists at the same interval.
        try await Task.sleep(for: .seconds(2))
        while feed.receive() != nil {}
        edits.send(Self.edit("after", of: asset))

        // Meanwhile the new key is accepted without a restart.
        let new = try keys("new")
        let newRequests = KeyedSocket(context, ZMQ_DEALER, network.catalog, new)
        let newEdits = KeyedSocket(context, ZMQ_PUSH, network.editor[1], new)
        let newFeed = KeyedSocket(context, ZMQ_SUB, network.broker[1], new)
        defer { for socket in [newRequests, newEdits, newFeed] { socket.close() } }
        #expect(try await receiveAnswer(newRequests)?["result"] != nil)
        newEdits.send(Self.edit("new", of: asset))
        while try await !Self.edits(library).contains("new") { try await Task.sleep(for: .milliseconds(20)) }
        while newFeed.receive() == nil { try await Task.sleep(for: .milliseconds(20)) }
        #expect(feed.receive() == nil)
        #expect(try await !Self.edits(library).contains("after"))
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a refused client gets its error at once, and a silent one is ended at the handshake timeout`() throws {
        let network = try NetworkFixture()
        #expect(try network.services.safelight(["keys", "create", "ann", "--domain", "requests"]).status == 0)
        let server = try Certificate(readingPublic: network.keyFolder("ann") + "/server.key").publicKey
        let ann = try #require(KeyFolder.pair(network.keyFolder("ann") + "/ann.key_secret"))
        let port = try #require(network.catalog.split(separator: ":").last.flatMap { UInt16($0) })
        func connect(_ server: CurvePublicKey, _ pair: CurveKeyPair) -> (isAccepted: Bool, time: Duration) {
            let began = ContinuousClock().now
            let peer = try? RawCurve(port: port, as: "DEALER", server: server, pair: pair)
            return (peer != nil, ContinuousClock().now - began)
        }
        let listed = connect(server, ann)
        let unlisted = try connect(server, .generate())
        let wrong = try connect(CurveKeyPair.generate().publicKey, ann)
        #expect(listed.isAccepted && !unlisted.isAccepted && !wrong.isAccepted)
        TestPaths.report("accepted after \(listed.time), refused after \(unlisted.time); wrong server \(wrong.time)")
        #expect(unlisted.time < .seconds(5) && wrong.time < .seconds(6))
        let began = ContinuousClock().now
        let keyless = try RawZMTP(port: port)
        keyless.greet()
        #expect(keyless.waitForEnd(seconds: 10))
        #expect(ContinuousClock().now - began < .seconds(7))
        #expect(network.services.stop() == [])
    }
}
