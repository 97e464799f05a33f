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

/// CURVE clients that are not allowed, at every client-facing socket of the real services over TCP (fault F22).
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

    private static func address(_ entryPoint: EntryPoint, _ open: NetworkFixture) -> String {
        switch entryPoint {
        case .catalog: open.catalog
        case .thumbnailer: open.thumbnailer ?? ""
        case .editor: open.editor[0]
        case .broker: open.broker[0]
        case .feed: open.broker[1]
        case .edits: open.editor[1]
        }
    }

    private static func asset(_ library: PhotoLibrary) async throws -> ObjectID {
        let made = try await library.perform(
            [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
            attachments: [TestImages.jpeg(width: 64, height: 48, seed: 1)]
        )
        return try #require(made.id("a"))
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
        let open = try NetworkFixture(withEditor: true, withThumbnailer: true)
        let services = open.services
        let began = Date()
        func create(_ name: String, _ lists: String) throws -> Keys {
            #expect(try services.safelight(["keys", "create", name, "--domain", lists]).status == 0)
            return try Keys(
                server: Certificate(readingPublic: open.made(name) + "/server.key").publicKey.text,
                pair: #require(KeyFolder.pair(open.made(name) + "/\(name).key_secret"))
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
        var sockets: [(client: String, entryPoint: EntryPoint, socket: KeyedSocket, isWelcome: Bool)] = []
        defer { for entry in sockets { entry.socket.close() } }
        for (name, client) in clients.sorted(by: { $0.key < $1.key }) {
            for entryPoint in EntryPoint.allCases {
                let kind = entryPoint == .feed ? ZMQ_SUB : entryPoint == .edits ? ZMQ_PUSH : ZMQ_DEALER
                let socket = KeyedSocket(context, kind, Self.address(entryPoint, open), client.keys)
                if kind == ZMQ_DEALER { socket.send(Self.request) }
                if kind == ZMQ_PUSH { socket.send(Self.edit(name, of: asset)) }
                sockets.append((name, entryPoint, socket, client.lists.contains(entryPoint.list)))
            }
        }
        // At least three seconds, with a change for the feed every tenth of a second, until every allowed client was
        // answered.
        var heard: Set<String> = []
        let welcome = Set(
            sockets.filter { $0.isWelcome && $0.entryPoint != .edits }.map { "\($0.client) \($0.entryPoint)" }
        )
        let patient = Set(clients.filter { $0.value.lists.contains("edits") }.keys)
        var applied: Set<String> = []
        let start = ContinuousClock().now
        var changes = 0
        while ContinuousClock().now - start < .seconds(3) || heard != welcome || applied != patient {
            changes += 1
            guard ContinuousClock().now - start < .seconds(40) else { break }
            _ = try await library.perform([
                .updateAsset(.init(id: .id(asset), set: AssetPatch(rating: changes % 6)))
            ])
            for entry in sockets where entry.entryPoint != .edits {
                if entry.socket.receive() != nil { heard.insert("\(entry.client) \(entry.entryPoint)") }
            }
            applied = try await Self.edits(library)
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(heard == welcome)
        #expect(applied == patient)
        for entry in sockets where entry.entryPoint != .edits && !entry.isWelcome {
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
        let open = try NetworkFixture(withEditor: true)
        let services = open.services
        func keys(_ name: String) throws -> Keys {
            #expect(try services.safelight(["keys", "create", name]).status == 0)
            return try Keys(
                server: Certificate(readingPublic: open.made(name) + "/server.key").publicKey.text,
                pair: #require(KeyFolder.pair(open.made(name) + "/\(name).key_secret"))
            )
        }
        let old = try keys("old")
        let library = try services.library()
        let asset = try await Self.asset(library)
        let context = zmq_ctx_new()
        defer { zmq_ctx_term(context) }
        let requests = KeyedSocket(context, ZMQ_DEALER, open.catalog, old)
        let feed = KeyedSocket(context, ZMQ_SUB, open.broker[1], old)
        let edits = KeyedSocket(context, ZMQ_PUSH, open.editor[1], old)
        defer { for socket in [requests, feed, edits] { socket.close() } }
        func answer(_ socket: KeyedSocket) async throws -> JSON? {
            socket.send(Self.request)
            for _ in 0..<200 {
                if let frames = socket.receive() { return try JSON(parsing: frames[0]) }
                try await Task.sleep(for: .milliseconds(20))
            }
            return nil
        }
        #expect(try await answer(requests)?["result"] != nil)
        edits.send(Self.edit("before", of: asset))
        while try await !Self.edits(library).contains("before") { try await Task.sleep(for: .milliseconds(20)) }
        while feed.receive() == nil { try await Task.sleep(for: .milliseconds(20)) }

        let revoked = ContinuousClock().now
        #expect(try services.safelight(["keys", "revoke", "old"]).status == 0)
        while try await answer(requests)?["error"]?["data"]?["name"] != "access_denied" {
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
        let (asking, pushing) = (
            KeyedSocket(context, ZMQ_DEALER, open.catalog, new), KeyedSocket(context, ZMQ_PUSH, open.editor[1], new)
        )
        let hearing = KeyedSocket(context, ZMQ_SUB, open.broker[1], new)
        defer { for socket in [asking, pushing, hearing] { socket.close() } }
        #expect(try await answer(asking)?["result"] != nil)
        pushing.send(Self.edit("new", of: asset))
        while try await !Self.edits(library).contains("new") { try await Task.sleep(for: .milliseconds(20)) }
        while hearing.receive() == nil { try await Task.sleep(for: .milliseconds(20)) }
        #expect(feed.receive() == nil)
        #expect(try await !Self.edits(library).contains("after"))
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a refused client gets its error at once, and a silent one is ended at the handshake timeout`() throws {
        let open = try NetworkFixture()
        #expect(try open.services.safelight(["keys", "create", "ann", "--domain", "requests"]).status == 0)
        let server = try Certificate(readingPublic: open.made("ann") + "/server.key").publicKey
        let ann = try #require(KeyFolder.pair(open.made("ann") + "/ann.key_secret"))
        let port = try #require(open.catalog.split(separator: ":").last.flatMap { UInt16($0) })
        func knock(_ server: CurvePublicKey, _ pair: CurveKeyPair) -> (isIn: Bool, time: Duration) {
            let began = ContinuousClock().now
            let peer = try? RawCurve(port: port, as: "DEALER", server: server, pair: pair)
            return (peer != nil, ContinuousClock().now - began)
        }
        let welcome = knock(server, ann)
        let unlisted = try knock(server, .generate())
        let wrong = try knock(CurveKeyPair.generate().publicKey, ann)
        #expect(welcome.isIn && !unlisted.isIn && !wrong.isIn)
        TestPaths.report("accepted after \(welcome.time), refused after \(unlisted.time); wrong server \(wrong.time)")
        #expect(unlisted.time < .seconds(5) && wrong.time < .seconds(6))
        let began = ContinuousClock().now
        let keyless = try RawZMTP(port: port)
        keyless.greet()
        #expect(keyless.waitForEnd(seconds: 10))
        #expect(ContinuousClock().now - began < .seconds(7))
        #expect(open.services.stop() == [])
    }
}

/// The server key and key pair that a CURVE client needs.
struct Keys: Sendable {
    let server: String
    let pair: CurveKeyPair
}

extension KeyFolder {
    /// Returns the key pair in a file; nil if it has none.
    static func pair(_ path: String) -> CurveKeyPair? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        func key(_ name: String) -> String? {
            text.split(separator: "\n").first { $0.contains("\(name)-key = ") }?.split(separator: "\"").last
                .map(String.init)
        }
        guard let publicKey = key("public").flatMap({ CurvePublicKey($0) }),
            let secretKey = key("secret").flatMap({ CurveSecretKey($0) })
        else { return nil }
        return CurveKeyPair(publicKey: publicKey, secretKey: secretKey)
    }
}

extension RawCurve {
    convenience init(port: UInt16, as socketType: String, server: CurvePublicKey, pair: CurveKeyPair) throws {
        func bytes(_ text: String) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: 32)
            zmq_z85_decode(&bytes, text)
            return bytes
        }
        try self.init(
            port: port,
            as: socketType,
            server: bytes(server.text),
            publicKey: bytes(pair.publicKey.text),
            secretKey: bytes(pair.secretKey.text)
        )
    }
}

/// A socket of libzmq without the project's code, as other programs use it.
struct KeyedSocket {
    private let socket: UnsafeMutableRawPointer?

    /// Connects, over CURVE if there are keys; a subscriber subscribes to everything.
    init(_ context: UnsafeMutableRawPointer?, _ kind: Int32, _ address: String, _ keys: Keys?) {
        socket = zmq_socket(context, kind)
        var zero: Int32 = 0
        zmq_setsockopt(socket, ZMQ_LINGER, &zero, MemoryLayout<Int32>.size)
        if let keys {
            for (option, text) in [
                (ZMQ_CURVE_SERVERKEY, keys.server), (ZMQ_CURVE_PUBLICKEY, keys.pair.publicKey.text),
                (ZMQ_CURVE_SECRETKEY, keys.pair.secretKey.text),
            ] { zmq_setsockopt(socket, option, text, text.utf8.count + 1) }
        }
        if kind == ZMQ_SUB { zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) }
        zmq_connect(socket, address)
    }

    /// Passes a message to libzmq, which queues it until there is a connection.
    func send(_ bytes: Bytes) { zmq_send(socket, bytes, bytes.count, ZMQ_DONTWAIT) }

    /// Returns a message that has arrived; nil if there is none.
    func receive() -> [Bytes]? {
        var frames: [Bytes] = []
        while true {
            var frame = zmq_msg_t()
            zmq_msg_init(&frame)
            defer { zmq_msg_close(&frame) }
            guard zmq_msg_recv(&frame, socket, frames.isEmpty ? ZMQ_DONTWAIT : 0) >= 0 else { return nil }
            frames.append(Bytes(UnsafeRawBufferPointer(start: zmq_msg_data(&frame), count: zmq_msg_size(&frame))))
            if zmq_msg_more(&frame) == 0 { return frames }
        }
    }

    func close() { zmq_close(socket) }
}
