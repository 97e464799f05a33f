import CZeroMQ
import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

/// The examples of `Shared/docs/protocol.md`, executed against running services by plain ZeroMQ sockets.
///
/// `make docs` sets `SAFELIGHT_RECORD_EXAMPLES`: then the test writes the requests and replies into
/// `Shared/docs/protocol-examples.json` instead of comparing them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ProtocolExampleTests {
    /// One request and the messages that answered it.
    private struct Exchange {
        let request: JSON
        let reply: JSON
        let attachments: [[UInt8]]

        var result: JSON { reply["result"] ?? .null }
    }

    /// Sends requests to the services and records each with its reply.
    private final class Session {
        let services: SafelightFixture
        private(set) var exchanges: [Exchange] = []
        private var sockets: [String: ScriptSocket] = [:]

        init(_ services: SafelightFixture) { self.services = services }

        /// Sends a request to a service and waits for its response; notifications before it are ignored.
        ///
        /// - Parameter isExample: false to leave the request out of the page
        @discardableResult
        func call(
            _ service: String,
            _ method: String,
            _ params: JSON,
            attachments: [[UInt8]] = [],
            isExample: Bool = true
        ) throws -> JSON {
            let socket = sockets[service] ?? ScriptSocket(ZMQ_DEALER, services, service)
            sockets[service] = socket
            let request: JSON = [
                "jsonrpc": "2.0", "id": JSON(exchanges.count + 1), "method": .string(method), "params": params,
            ]
            #expect(socket.send([Array(request.text.utf8)] + attachments))
            while true {
                let frames = try #require(socket.receive(milliseconds: 30_000), "\(method): no reply")
                let reply = try JSON(parsing: frames[0])
                guard reply["method"] == nil else { continue }
                try #require(reply["error"] == nil, "\(method): \(reply.text)")
                guard isExample else { return reply["result"] ?? .null }
                exchanges.append(Exchange(request: request, reply: reply, attachments: Array(frames.dropFirst())))
                return reply["result"] ?? .null
            }
        }
    }

    private static let file = TestPaths.package + "/Shared/docs/protocol-examples.json"

    @Test func `the examples of the protocol page have the shape that the services answer with`() throws {
        let photos = try TemporaryFolder("examples-photos")
        let services = try SafelightFixture("examples", environment: ["SAFELIGHT_IMPORT_ROOTS": photos.path])
        let photo = try photos.write(
            TestImages.jpeg(width: 640, height: 480, date: "2024:06:01 12:00:00", seed: 1),
            to: "summit.jpg"
        )
        let video = photos.file("film.mp4")
        try FFmpegVideos.make(video, ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"])
        let motion = try photos.write(
            TestMotionPhotos.jpeg(.container, video: Array(try Data(contentsOf: URL(fileURLWithPath: video)))).bytes,
            to: "motion.jpg"
        )
        try services.start()
        let session = Session(services)
        try run(session, photo: photo)
        try runMore(session, video: video, motion: motion)
        try expectAll(session)
        let examples = JSON.array(
            session.exchanges.map { json($0, folder: photos.path, backup: services.folder.file("backup")) }
        )
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

    /// Sends the requests, in the order in which a client would send them.
    private func run(_ session: Session, photo: String) throws {
        try session.call("catalog", "health", [:])
        let start = try session.call("catalog", "changes.token", [:])["token"] ?? .null
        let result = try session.call(
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
        let asset = try #require(result["placeholders"]?["photo"])
        let album = try #require(result["placeholders"]?["album"])
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
        try session.call("catalog", "fetch.duplicates", ["limit": 100])
        try session.call("catalog", "transient.create", ["ids": [asset], "title": "Selected"])
        try session.call("catalog", "resource.supports", ["types": ["photo", "alternatePhoto"]])
        try session.call("catalog", "resource.read", ["asset": asset, "type": "photo", "length": 1024])
        try session.call("catalog", "resource.export", ["asset": asset, "type": "photo"])
        try session.call("catalog", "resource.download", ["asset": asset, "type": "photo"])
        try session.call("catalog", "storage.status", [:])
        try session.call("catalog", "jobs.list", ["action": "acknowledge"])
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

    /// Sends the requests of the other methods, for an album of its own with a video and a motion photo.
    private func runMore(_ session: Session, video: String, motion: String) throws {
        let result = try session.call(
            "catalog",
            "changes.perform",
            [
                "client": "example",
                "requests": [
                    [
                        "type": "asset.create", "ref": "video",
                        "resources": [["type": "video", "path": .string(video)]],
                    ],
                    [
                        "type": "asset.create", "ref": "motion",
                        "resources": [["type": "photo", "path": .string(motion)]],
                    ],
                ],
            ],
            isExample: false
        )
        let video = try #require(result["placeholders"]?["video"])
        let motion = try #require(result["placeholders"]?["motion"])
        let assets: JSON = ["kind": "assets", "sort": [["key": "creationDate", "ascending": true]]]

        try session.call("catalog", "fetch.objects", ["fetch": assets, "at": [0], "members": ["id", "mediaType"]])
        try session.call("catalog", "fetch.lists", ["fetch": ["kind": "lists"]])
        try session.call("catalog", "fetch.keys", ["fetch": assets, "maxCount": 100])
        try session.call("catalog", "fetch.can", ["ids": [motion]])
        try session.call("catalog", "changes.since", ["limit": 1])
        let cloud = try session.call("catalog", "ids.toCloud", ["ids": [motion]])
        let cloudID = try #require(cloud["mappings"]?.objectValue?.members.first?.1["id"])
        try session.call("catalog", "ids.toLocal", ["cloudIds": [cloudID]])
        try runResources(session)
        try runImages(session, video: video, motion: motion)
        try runEdits(session, motion)
        try runMaintenance(session, motion)
    }

    private func runResources(_ session: Session) throws {
        let selected = try session.call("catalog", "transient.create", ["ids": []], isExample: false)
        try session.call("catalog", "transient.release", ["id": selected["id"] ?? .null])
        let bytes = TestImages.jpeg(width: 64, height: 48, seed: 9)
        let upload = try session.call("catalog", "upload.begin", ["size": JSON(bytes.count)], isExample: false)
        let name = upload["upload"] ?? .null
        try session.call("catalog", "upload.append", ["upload": name, "offset": 0], attachments: [bytes])
        try session.call("catalog", "upload.finish", ["upload": name])
        try session.call("catalog", "upload.cancel", ["upload": name])
    }

    private func runImages(_ session: Session, video: JSON, motion: JSON) throws {
        try session.call("thumbnailer", "image.sheet", ["assets": [video, motion], "columns": 2, "cell": 128])
        try session.call("thumbnailer", "image.frames", ["asset": video, "count": 2])
        try session.call(
            "thumbnailer",
            "livePhoto.request",
            ["asset": motion, "targetSize": ["width": 256, "height": 256], "deliveryMode": "highQualityFormat"]
        )
        try session.call("thumbnailer", "video.asset", ["asset": video])
        let ticket = try session.call("thumbnailer", "video.playback", ["asset": video])
        try session.call(
            "thumbnailer",
            "video.read",
            ["asset": video, "stream": ticket["stream"] ?? .null, "offset": 0, "length": 1024]
        )
        let export = try session.call("thumbnailer", "video.export", ["asset": video, "preset": "640x480"])
        let name = export["export"] ?? .null
        let question: JSON = ["export": name, "wait": 20_000]
        var state: String?
        repeat {
            state = try session.call("thumbnailer", "video.exportStatus", question, isExample: false)["state"]?
                .stringValue
        } while state == "waiting" || state == "running"
        try session.call("thumbnailer", "video.exportStatus", question)
        try session.call("thumbnailer", "video.cancelExport", ["export": name])

        let cache = try session.call("thumbnailer", "cache.open", [:], isExample: false)["cache"] ?? .null
        let images: JSON = ["cache": cache, "assets": [motion], "targetSize": ["width": 256, "height": 256]]
        try session.call(
            "thumbnailer",
            "cache.configure",
            ["cache": cache, "allowsCachingHighQualityImages": true]
        )
        try session.call("thumbnailer", "cache.start", images)
        try session.call("thumbnailer", "cache.status", ["cache": cache])
        try session.call("thumbnailer", "cache.stop", images)
        try session.call("thumbnailer", "cache.stopAll", ["cache": cache])
        try session.call("thumbnailer", "cache.close", ["cache": cache])
    }

    private func runEdits(_ session: Session, _ asset: JSON) throws {
        let list: JSON = ["version": 1, "operations": [["operation": "exposure", "value": 0.5]]]
        try session.call("editor", "edits.preview", ["asset": asset, "adjustments": list, "maximumSide": 256])
        try session.call("editor", "edits.livePhoto", ["asset": asset, "adjustments": list, "audioVolume": 0.5])
        try session.call("editor", "edits.suggest", ["asset": asset])
        try session.call("editor", "edits.apply", ["asset": asset, "adjustments": list], isExample: false)
        try session.call("editor", "edits.compare", ["asset": asset, "maximumSide": 256])
        let photos = session.exchanges.compactMap { exchange in exchange.result["placeholders"]?["photo"] }
        let target = try #require(photos.first)
        try session.call("editor", "edits.copy", ["from": asset, "to": [target], "dryRun": true])
        try session.call("editor", "edits.undo", ["asset": asset])
        try session.call("catalog", "edits.status", ["ids": ["enhance-1"]])
        try session.call("catalog", "edits.pending", ["limit": 10])
    }

    private func runMaintenance(_ session: Session, _ asset: JSON) throws {
        let digest = String(repeating: "0", count: 64)
        let failure: JSON = [
            "digest": .string(digest), "name": "worker_crashed", "reason": "signal 11", "service": "thumbnailer",
            "failures": 2,
        ]
        try session.call("catalog", "quarantine.report", failure)
        try session.call("catalog", "quarantine.list", [:])
        try session.call("catalog", "quarantine.lift", ["digest": .string(digest)])
        try session.call("catalog", "library.status", [:])
        try session.call("catalog", "library.collect", ["dryRun": true])
        try session.call("catalog", "library.rescan", [:])
        let target = session.services.folder.file("backup")
        try session.call("catalog", "library.backup", ["target": .string(target)])
        let visitor: JSON = "uid:4243"
        try session.call("catalog", "grants.limit", ["identity": visitor, "assets": [asset]])
        try session.call("catalog", "grants.status", ["identity": visitor, "assets": [asset]])
        try session.call("catalog", "grants.deny", ["identity": visitor])
        let observed = try session.call(
            "change-broker",
            "fetch.observe",
            ["fetch": ["kind": "assets"]],
            isExample: false
        )
        try session.call("change-broker", "fetch.unobserve", ["observation": observed["observation"] ?? .null])
    }

    /// Expects an example of each method, except of those without a response of their own: streams that end only when
    /// they are cancelled, notifications, the published edit, two whose result is a document, and those that need an
    /// object store.
    private func expectAll(_ session: Session) throws {
        let without: Set = [
            "changes.follow", "feed.follow", "rpc.cancel", "rpc.credit", "edits.publish", "rpc.discover", "figures",
            "storage.verify", "storage.keep", "storage.retry", "jobs.create", "jobs.update",
        ]
        let executed = Set(session.exchanges.compactMap { $0.request["method"]?.stringValue })
        for service in ["catalog", "thumbnailer", "editor", "change-broker"] {
            let document = try session.call(service, "rpc.discover", [:], isExample: false)
            for method in document["methods"]?.arrayValue ?? [] {
                let name = method["name"]?.stringValue ?? ""
                #expect(executed.contains(name) || without.contains(name), "\(name) has no example")
            }
        }
    }

    /// Waits until the broker answers for the last change; these requests are not examples.
    private func waitForBroker(_ session: Session, token: JSON) throws {
        let socket = ScriptSocket(ZMQ_DEALER, session.services, "change-broker")
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end {
            socket.send(#"{"jsonrpc":"2.0","id":1,"method":"feed.head"}"#)
            let frames = try #require(socket.receive())
            let head = try JSON(parsing: frames[0])["result"]?["sequence"]?.intValue ?? 0
            if let sequence = token.stringValue?.split(separator: ".").last, head >= Int64(sequence) ?? 0 { return }
            Thread.sleep(forTimeInterval: 0.01)
        }
        Issue.record("the broker did not reach \(token.text)")
    }

    private func json(_ exchange: Exchange, folder: String, backup: String) -> JSON {
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
        // Paths of this run are replaced by a readable path.
        var text = example.text
        for (path, name) in [(folder, "/photos"), (backup, "/backup")] {
            text = text.replacing(path.replacing("/", with: "\\/"), with: name).replacing(path, with: name)
        }
        return (try? JSON(parsing: text)) ?? example
    }

    /// Returns the names of members and the kinds of values, without the values themselves.
    private static func shape(_ json: JSON) -> JSON {
        switch json {
        case .object(let object):
            // Members are sorted by name: their order is that of the tables. Identifiers differ from run to run.
            let members = object.members.map { (ObjectID($0.0) != nil || $0.0.count > 40 ? "identifier" : $0.0, $0.1) }
                .sorted { $0.0 < $1.0 }.map { JSON.array([.string($0.0), shape($0.1)]) }
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
