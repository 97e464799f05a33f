import CZeroMQ
import Foundation
import JSONValue
import TestSupport
import Testing

/// The examples of `Shared/docs/protocol.md`, executed against running services by plain ZeroMQ sockets.
///
/// `make docs` sets `SAFELIGHT_RECORD_EXAMPLES`: then the test writes the requests and replies into
/// `Shared/docs/protocol-examples.json` instead of comparing them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ProtocolExampleTests {
    /// One request and what came back for it.
    private struct Exchange {
        let request: JSON
        let reply: JSON
        let attachments: [[UInt8]]

        var result: JSON { reply["result"] ?? .null }
    }

    /// Sends requests to the services and keeps each with its reply.
    private final class Session {
        let services: SafelightFixture
        private(set) var exchanges: [Exchange] = []
        private var sockets: [String: ScriptSocket] = [:]

        init(_ services: SafelightFixture) { self.services = services }

        /// Sends a request to a service and waits for its response; notifications before it are passed over.
        @discardableResult
        func call(_ service: String, _ method: String, _ params: JSON) throws -> JSON {
            let socket = sockets[service] ?? ScriptSocket(ZMQ_DEALER, services, service)
            sockets[service] = socket
            let request: JSON = [
                "jsonrpc": "2.0", "id": JSON(exchanges.count + 1), "method": .string(method), "params": params,
            ]
            socket.send(request.text)
            while true {
                let frames = try #require(socket.receive(milliseconds: 30_000), "\(method): no reply")
                let reply = try JSON(parsing: frames[0])
                guard reply["method"] == nil else { continue }
                try #require(reply["error"] == nil, "\(method): \(reply.text)")
                exchanges.append(Exchange(request: request, reply: reply, attachments: Array(frames.dropFirst())))
                return reply["result"] ?? .null
            }
        }
    }

    private static let file = TestPaths.package + "/Shared/docs/protocol-examples.json"

    @Test func `the examples of the protocol page have the shape that the services answer with`() throws {
        let services = try SafelightFixture("examples")
        let photo = try services.folder.write(
            TestImages.jpeg(width: 640, height: 480, date: "2024:06:01 12:00:00", seed: 1),
            to: "photos/summit.jpg"
        )
        try services.start()
        let session = Session(services)
        try run(session, photo: photo)
        let examples = JSON.array(session.exchanges.map { json($0, folder: services.folder.file("photos")) })
        if ProcessInfo.processInfo.environment["SAFELIGHT_RECORD_EXAMPLES"] != nil {
            try (examples.prettyText + "\n").write(toFile: Self.file, atomically: true, encoding: .utf8)
        }
        let committed = try JSON(parsing: String(contentsOfFile: Self.file, encoding: .utf8))
        #expect(committed.arrayValue?.count == session.exchanges.count, "run `make docs`")
        for (old, new) in zip(committed.arrayValue ?? [], examples.arrayValue ?? []) {
            let method = new["request"]?["method"]?.stringValue ?? ""
            #expect(Self.shape(old) == Self.shape(new), "\(method): run `make docs`")
        }
        #expect(services.stop() == [])
    }

    /// The requests, in the order in which a client would send them.
    private func run(_ session: Session, photo: String) throws {
        try session.call("catalog", "health", [:])
        let start = try session.call("catalog", "changes.token", [:])["token"] ?? .null
        let made = try session.call(
            "catalog",
            "changes.perform",
            [
                "client": "example", "transaction": "import-1",
                "requests": [
                    [
                        "type": "asset.create", "ref": "photo",
                        "resources": [["type": "photo", "path": .string(photo)]],
                    ],
                    ["type": "collection.create", "ref": "album", "title": "Alps", "add": [["ref": "photo"]]],
                ],
            ]
        )
        let asset = try #require(made["placeholders"]?["photo"])
        let album = try #require(made["placeholders"]?["album"])
        let newest: JSON = [
            "kind": "assets", "predicate": "isFavorite == FALSE AND pixelWidth >= 640",
            "sort": [["key": "creationDate", "ascending": false]], "limit": 20,
        ]
        let page = try session.call("catalog", "fetch.assets", ["fetch": newest, "count": 1])
        let token = page["token"] ?? .null
        try session.call("catalog", "fetch.collections", ["fetch": ["kind": "collections", "type": "album"]])
        try session.call(
            "catalog",
            "fetch.counts",
            ["fetches": [["kind": "assets"], ["kind": "assets", "in": album]]]
        )
        try session.call("catalog", "fetch.find", ["fetch": newest, "token": token, "ids": [asset]])
        try session.call("catalog", "fetch.keyAssets", ["collection": album])
        try session.call("catalog", "transient.create", ["ids": [asset], "title": "Selected"])
        try session.call("catalog", "resource.supports", ["types": ["photo", "alternatePhoto"]])
        try session.call("catalog", "resource.read", ["asset": asset, "type": "photo", "length": 1024])
        try session.call("catalog", "resource.export", ["asset": asset, "type": "photo"])
        try session.call("catalog", "upload.begin", ["size": 1_048_576])
        try session.call(
            "thumbnailer",
            "image.request",
            [
                "asset": asset, "targetSize": ["width": 256, "height": 256], "contentMode": "aspectFill",
                "resizeMode": "exact", "deliveryMode": "highQualityFormat", "format": "webp", "quality": 80,
            ]
        )
        try session.call("thumbnailer", "image.data", ["asset": asset])
        try session.call("thumbnailer", "cache.open", [:])
        let observed = try session.call("change-broker", "fetch.observe", ["fetch": newest, "token": token])
        try session.call(
            "editor",
            "edits.apply",
            [
                "asset": asset, "client": "example", "transaction": "edit-1",
                "adjustments": ["version": 1, "operations": [["operation": "exposure", "value": 0.5]]],
            ]
        )
        try session.call("editor", "edits.history", ["asset": asset])
        try session.call("editor", "edits.describe", ["asset": asset, "as": "cube"])
        try session.call(
            "editor",
            "editing.begin",
            ["asset": asset, "skipsInput": true, "skipsDisplaySizeImage": true]
        )
        try session.call("editor", "edits.revert", ["asset": asset])
        try session.call("catalog", "changes.details", ["from": token, "fetch": newest])
        try session.call(
            "catalog",
            "details.diff",
            ["from": ["fetch": newest, "token": token], "to": ["fetch": newest]]
        )
        let now = try session.call("catalog", "changes.token", [:])["token"] ?? .null
        try waitForBroker(session, token: now)
        try session.call("change-broker", "feed.head", [:])
        try session.call("change-broker", "feed.since", ["token": start, "limit": 1])
        try session.call(
            "change-broker",
            "fetch.details",
            ["observation": try #require(observed["observation"]), "token": token]
        )
        try session.call(
            "catalog",
            "session.open",
            ["client": "example", "purpose": "shows photos in the hall", "access": "readWrite"]
        )
        let visitor: JSON = "uid:4242"
        let decision: JSON = ["identity": visitor, "access": "addOnly", "purpose": "uploads from the camera"]
        try session.call("catalog", "grants.approve", decision)
        try session.call("catalog", "grants.list", [:])
        try session.call("catalog", "grants.pending", [:])
        try session.call("catalog", "grants.revoke", ["identity": visitor])
        try session.call("catalog", "grants.history", ["identity": visitor, "count": 1])
    }

    /// Waits until the broker answers for the last change; these requests are no examples.
    private func waitForBroker(_ session: Session, token: JSON) throws {
        let socket = ScriptSocket(ZMQ_DEALER, session.services, "change-broker")
        for _ in 0..<200 {
            socket.send(#"{"jsonrpc":"2.0","id":1,"method":"feed.head"}"#)
            let frames = try #require(socket.receive())
            let head = try JSON(parsing: frames[0])["result"]?["sequence"]?.intValue ?? 0
            if let wanted = token.stringValue?.split(separator: ".").last, head >= Int64(wanted) ?? 0 { return }
        }
        Issue.record("the broker did not reach \(token.text)")
    }

    private func json(_ exchange: Exchange, folder: String) -> JSON {
        let types: [([UInt8], String)] = [([0xFF, 0xD8], "JPEG"), (Array("RIFF".utf8), "WebP")]
        let attachments = exchange.attachments.map { bytes -> JSON in
            let type = types.first { bytes.starts(with: $0.0) }?.1
            return .string(type.map { "\(bytes.count) bytes (\($0))" } ?? "\(bytes.count) bytes")
        }
        var example: JSON = ["request": exchange.request, "reply": exchange.reply]
        if !attachments.isEmpty, var members = example.objectValue {
            members["attachments"] = .array(attachments)
            example = .object(members)
        }
        // Paths of this run become a path that reads well.
        let text = example.text.replacing(folder.replacing("/", with: "\\/"), with: "/photos")
            .replacing(folder, with: "/photos")
        return (try? JSON(parsing: text)) ?? example
    }

    /// The names of members and the kinds of values, without the values themselves.
    private static func shape(_ json: JSON) -> JSON {
        switch json {
        case .object(let object):
            // Members are compared by name: their order is that of the tables.
            let members = object.members.sorted { $0.0 < $1.0 }.map { JSON.array([.string($0.0), shape($0.1)]) }
            return .array([.string("object")] + members)
        case .array(let items): return .array([.string("array")] + items.map(shape))
        case .string: return "string"
        case .bool: return "boolean"
        case .int, .double: return "number"
        case .null: return "null"
        @unknown default: return "other"
        }
    }
}
