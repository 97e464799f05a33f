import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

/// Messages to the edits endpoint are decoded as edits, as malformed edits, or not at all.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct PublishedEditMessageTests {
    private let asset: ObjectID = {
        var random = SeededRandom(seed: 1)
        return ObjectID(.asset, milliseconds: 1, using: &random)
    }()

    private func message(_ params: JSONObject, _ change: (inout JSONObject) -> Void = { _ in }) -> PublishedEditMessage
    {
        var object: JSONObject = ["jsonrpc": "2.0", "method": "edits.publish", "params": .object(params)]
        change(&object)
        return PublishedEditMessage(frames: [JSON.object(object).bytes])
    }

    private var good: JSONObject {
        ["id": "e1", "asset": .string(asset.text), "adjustments": AdjustmentList(operations: [.exposure(1)]).json]
    }

    private func malformed(_ message: PublishedEditMessage) -> PublishedEditMessage.MalformedEdit? {
        if case .malformed(let edit) = message { return edit }
        return nil
    }

    @Test func `an encoded edit is decoded to the same value`() {
        let edit = PublishEdit(
            id: "e2",
            asset: asset,
            adjustments: AdjustmentList(operations: [.exposure(1)]),
            after: "e1",
            mode: .append,
            ifContentRevision: Revision(7)
        )
        guard case .edit(let read, let params) = PublishedEditMessage(frames: [edit.frame]) else {
            Issue.record("not decoded as an edit")
            return
        }
        #expect(read == edit)
        #expect(params == edit.json)
        guard case .edit = message(good) else {
            Issue.record("not decoded as an edit")
            return
        }
    }

    @Test func `an invalid message with an id and an asset is a malformed edit with the error`() {
        func with(_ name: String, _ value: JSON?) -> JSONObject {
            var params = good
            params[name] = value
            return params
        }
        let outOfRange: JSON = ["version": 1, "operations": [["operation": "exposure", "value": 1e9]]]
        let cases: [(PublishedEditMessage, String)] = [
            (message(with("adjustments", outOfRange)), "invalid_params"),
            (message(with("adjustments", nil)), "invalid_params"),
            (message(with("adjustments", JSON.null)), "invalid_params"),
            (message(with("after", "e1")), "invalid_params"),
            (message(with("after", 3)), "invalid_params"),
            (message(with("typo", true)), "invalid_params"),
            (message(with("mode", "sideways")), "invalid_params"),
            (message(good) { $0["id"] = 1 }, "invalid_request"),
            (message(good) { $0["method"] = "edits.apply" }, "invalid_request"),
            (message(good) { $0["jsonrpc"] = nil }, "invalid_request"),
            (PublishedEditMessage(frames: [JSON.object(["params": .object(good)]).bytes, [1]]), "invalid_request"),
            (message(with("note", .string(String(repeating: "x", count: 70_000)))), "limit_exceeded"),
        ]
        for (message, name) in cases {
            let edit = malformed(message)
            #expect(edit?.id == "e1" && edit?.asset == asset)
            #expect(edit?.error.name == name)
        }
    }

    @Test func `a message without a valid id and asset is unreadable`() {
        let long = String(repeating: "x", count: 49)
        var messages = [[], [[]], [Array("edits".utf8)], [[0xFF, 0x00]], [Array("[]".utf8)], [Array("{}".utf8)]]
            .map { PublishedEditMessage(frames: $0) }
        for id: JSON in ["", "a b", "\u{7}", "ü", .string(long), 7, .null] {
            var params = good
            params["id"] = id
            messages.append(message(params))
        }
        for id: JSON in ["", "a01", .null, .string(ObjectID.root.text)] {
            var params = good
            params["asset"] = id
            messages.append(message(params))
        }
        for message in messages {
            guard case .unreadable = message else {
                Issue.record("\(message)")
                continue
            }
        }
        var random = SeededRandom(named: "published messages")
        for _ in 0..<TestEnvironment.rounds(500) {
            let frame = random.bytes(Int.random(in: 0...200, using: &random))
            _ = PublishedEditMessage(frames: [frame])
        }
    }

    @Test func `the progress of an edit may include the rendered part of a video`() {
        let document = openRPCDocument(service: "editor", version: "1", methods: EditorRequest.methods)
        for name: JSON in ["edits.apply", "edits.livePhoto"] {
            let method = document["methods"]?.arrayValue?.first { $0["name"] == name }
            let progress = method?["x-notifications"]?.arrayValue?.first { $0["name"] == "edits.progress" }
            #expect(progress?["params"]?["properties"]?["part"]?["maximum"] == 1)
            #expect(progress?["params"]?["required"] == ["id", "done", "failed", "total"])
        }
    }

    @Test func `the notification is in the OpenRPC document, without a result`() {
        let document = openRPCDocument(
            service: "editor",
            version: "1",
            methods: EditorRequest.methods + EditorRequest.notifications
        )
        let method = document["methods"]?.arrayValue?.first { $0["name"] == "edits.publish" }
        #expect(method?["x-pushed-to"] == "edits")
        #expect(method?["result"] == nil)
        #expect(method?["params"]?.arrayValue?.count == 13)
    }
}
