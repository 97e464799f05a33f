import Basics
import CZeroMQ
import JSONValue
import Testing

@testable import Messaging

/// A malformed message and the expected response.
struct MalformedMessage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let text: String
    let code: Int64
    var id: JSON = .null

    init(_ description: String, _ text: String, _ code: Int64, id: JSON = .null) {
        testDescription = description
        self.text = text
        self.code = code
        self.id = id
    }

    static let table = [
        MalformedMessage("a single space", " ", -32700),
        MalformedMessage("half a request", #"{"jsonrpc": "2.0", "id": 1"#, -32700),
        MalformedMessage("bytes that are not UTF-8", "\u{1}\u{2}", -32700),
        MalformedMessage("a member twice", #"{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "a"}"#, -32700),
        MalformedMessage("unlimited depth", String(repeating: "[", count: 100_000), 9004),
        MalformedMessage("a number", "12", -32600),
        MalformedMessage("a string", #""hello""#, -32600),
        MalformedMessage("an empty batch", "[]", -32600),
        MalformedMessage("a batch", #"[{"jsonrpc": "2.0", "id": 1, "method": "a"}]"#, -32600),
        MalformedMessage("an empty object", "{}", -32600),
        MalformedMessage("no version", #"{"id": 1, "method": "a"}"#, -32600, id: 1),
        MalformedMessage("another version", #"{"jsonrpc": "1.0", "id": 1, "method": "a"}"#, -32600, id: 1),
        MalformedMessage("a null id", #"{"jsonrpc": "2.0", "id": null, "method": "a"}"#, -32600),
        MalformedMessage("a fractional id", #"{"jsonrpc": "2.0", "id": 1.5, "method": "a"}"#, -32600),
        MalformedMessage(
            "an id beyond 64 bits",
            #"{"jsonrpc": "2.0", "id": 99999999999999999999, "method": "a"}"#,
            -32600
        ),
        MalformedMessage("an array as id", #"{"jsonrpc": "2.0", "id": [1], "method": "a"}"#, -32600),
        MalformedMessage(
            "an id of 129 bytes",
            #"{"jsonrpc": "2.0", "id": "\#(String(repeating: "x", count: 129))", "method": "a"}"#,
            -32600
        ),
        MalformedMessage("no method", #"{"jsonrpc": "2.0", "id": "x"}"#, -32600, id: "x"),
        MalformedMessage("an empty method", #"{"jsonrpc": "2.0", "id": 1, "method": ""}"#, -32600, id: 1),
        MalformedMessage("a number as method", #"{"jsonrpc": "2.0", "id": 1, "method": 3}"#, -32600, id: 1),
        MalformedMessage(
            "a parameter beside params",
            #"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {}, "deadlineMs": 5}"#,
            -32600,
            id: 1
        ),
        MalformedMessage("params misspelt", #"{"jsonrpc": "2.0", "id": 1, "method": "a", "param": {}}"#, -32600, id: 1),
        MalformedMessage(
            "params as an array",
            #"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": [1]}"#,
            -32600,
            id: 1
        ),
        MalformedMessage("null params", #"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": null}"#, -32600, id: 1),
        MalformedMessage(
            "a deadline of zero",
            #"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"deadlineMs": 0}}"#,
            -32602,
            id: 1
        ),
        MalformedMessage(
            "a deadline above the limit",
            #"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"deadlineMs": 600001}}"#,
            -32602,
            id: 1
        ),
        MalformedMessage(
            "a string as deadline",
            #"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"deadlineMs": "1"}}"#,
            -32602,
            id: 1
        ),
        MalformedMessage(
            "negative credit",
            #"{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"credit": -1}}"#,
            -32602,
            id: 1
        ),
        MalformedMessage(
            "rpc.cancel without an id",
            #"{"jsonrpc": "2.0", "id": 1, "method": "rpc.cancel"}"#,
            -32602,
            id: 1
        ),
        MalformedMessage(
            "rpc.credit without bytes",
            #"{"jsonrpc": "2.0", "id": 1, "method": "rpc.credit", "params": {"id": 1}}"#,
            -32602,
            id: 1
        ),
        MalformedMessage(
            "credit beyond 64 bits",
            #"{"jsonrpc": "2.0", "id": 1, "method": "rpc.credit", "params": {"id": 1, "bytes": 1e300}}"#,
            -32602,
            id: 1
        ),
    ]
}

@Suite(.timeLimit(.minutes(5)))
struct RPCMessageTests {
    @Test func `every malformed message gets one error response and the server keeps running`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                let dealer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let script = try RawPeer(ZMQ_REQ, server.boundAddress)
                for row in MalformedMessage.table {
                    for peer in [dealer, script] {
                        try await peer.send(text: row.text)
                        let response = try await peer.receiveJSON()
                        #expect(response.errorCode == row.code, "\(row.testDescription)")
                        #expect(response["id"] == row.id, "\(row.testDescription)")
                        #expect(response["jsonrpc"] == "2.0")
                        #expect(response["error"]?["message"]?.stringValue?.isEmpty == false)
                        // Exactly one response: the next one belongs to the next request.
                        #expect(try await peer.ask(request("next", "hello"))["id"] == "next")
                    }
                }
                #expect(await server.metrics()["decodeErrors"]?["batch"] == 4)
            }
        }
    }

    @Test func `a request without an id is answered for REQ, and counted and dropped for DEALER`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                let notification: JSON = ["jsonrpc": "2.0", "method": "hello"]
                let script = try RawPeer(ZMQ_REQ, server.boundAddress)
                #expect(try await script.ask(notification).errorCode == -32600)
                let dealer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await dealer.send(notification)
                // A notification with wrong parameters is not answered either.
                try await dealer.send(["jsonrpc": "2.0", "method": "rpc.cancel"])
                #expect(try await dealer.ask(request(1, "hello"))["id"] == 1)
                #expect(await server.metrics()["notificationsReceived"] == 3)
            }
        }
    }

    @Test func `an id can be reused after its response but not before`() async throws {
        try await MessagingFixture.with { fixture in
            let signals = NamedSignals()
            let handler = ClosureHandler { _, _ in
                await signals.wait("finish")
                return Reply([:])
            }
            try await fixture.serving(handler: handler) { server in
                let first = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let other = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await first.send(request("same", "work"))
                let refused = try await first.ask(request("same", "work"))
                #expect(refused["id"] == .null)
                #expect(refused.errorName == "invalid_request")
                #expect(refused["error"]?["data"]?["id"] == "same")
                // Ids are scoped to their connection, and a string differs from an integer.
                try await other.send(request("same", "work"))
                try await first.send(request(1, "work"))
                try await first.send(request("1", "work"))
                signals.signal("finish")
                #expect(try await other.receiveJSON()["result"] == [:])
                for _ in 0..<3 { #expect(try await first.receiveJSON()["result"] == [:]) }
                #expect(try await first.ask(request("same", "work"))["result"] == [:])
            }
        }
    }

    @Test func `empty messages and too many or too large frames get error responses`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send([[]])
                let empty = try await peer.receive()
                #expect(empty.first == [])
                #expect(try JSON(parsing: empty[1]).errorCode == -32600)
                let hello = request(1, "hello").bytes
                try await peer.send([hello] + [Bytes](repeating: [1], count: 63))
                #expect(try await peer.receive().count == 64)
                try await peer.send([hello] + [Bytes](repeating: [1], count: 64))
                let tooMany = try await peer.receiveJSON()
                #expect(tooMany["id"] == 1)
                #expect(tooMany.errorName == "invalid_request")
                try await peer.send([hello] + [Bytes](repeating: Bytes(repeating: 0, count: 6 << 20), count: 3))
                #expect(try await peer.receiveJSON().errorName == "invalid_request")
                try await peer.send([hello, Bytes(repeating: 0, count: (8 << 20) + 1)])
                #expect(try await peer.receiveJSON().errorName == "invalid_request")
                let errors = await server.metrics()["decodeErrors"]
                #expect(errors?["too_many_frames"] == 1)
                #expect(errors?["message_too_large"] == 1)
                #expect(errors?["attachment_too_large"] == 1)
            }
        }
    }

    @Test func `a message of a hundred thousand frames is dropped while it is received`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send([request(1, "hello").bytes] + [Bytes](repeating: [1], count: 100_000))
                let response = try await peer.receiveJSON()
                #expect(response.errorName == "invalid_request")
                #expect(response["id"] == 1)
                #expect(try await peer.ask(request(2, "hello"))["id"] == 2)
            }
        }
    }

    @Test func `a frame above the limit closes only the connection of its sender`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                #expect(try await peer.ask(request(1, "hello"))["id"] == 1)
                try await peer.send([request(2, "hello").bytes, Bytes(repeating: 0, count: (16 << 20) + 1)])
                while await server.metrics()["peersClosed"] == 0 { try await shortDelay() }
                #expect(try await fixture.client(server).call("hello").result["method"] == "hello")
            }
        }
    }

    @Test func `a connection has a bounded number of open requests`() async throws {
        try await MessagingFixture.with { fixture in
            var limits = MessagingLimits()
            limits.requestsPerConnection = 3
            limits.waitingRequestsPerConnection = 0
            let signals = NamedSignals()
            let handler = ClosureHandler { _, _ in
                await signals.wait("finish")
                return Reply([:])
            }
            try await fixture.serving(limits: limits, handler: handler) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                for number in 1...3 { try await peer.send(request(JSON(number), "work")) }
                let refused = try await peer.ask(request(4, "work"))
                #expect(refused["id"] == 4)
                #expect(refused.errorCode == 9001)
                signals.signal("finish")
                for _ in 1...3 { #expect(try await peer.receiveJSON()["result"] == [:]) }
                #expect(try await peer.ask(request(4, "work"))["result"] == [:])
            }
        }
    }

    @Test func `deadline and credit are removed from params and credit is clamped`() throws {
        let limits = MessagingLimits()
        let json = request(1, "follow", ["token": "t", "deadlineMs": 250, "credit": .int(.max), "atLeast": "u"])
        guard case .request(let found) = RPCMessage(json, limits: limits) else {
            Issue.record("not parsed as a request")
            return
        }
        #expect(found.params == ["token": "t", "atLeast": "u"])
        #expect(found.deadline == 250_000)
        #expect(found.credit == limits.maxCredit)
    }

    @Test func `a deadline and a credit of null count as absent`() throws {
        let json = request(1, "follow", ["token": "t", "deadlineMs": .null, "credit": .null])
        guard case .request(let found) = RPCMessage(parsing: json.bytes, limits: MessagingLimits()) else {
            Issue.record("not parsed as a request")
            return
        }
        #expect(found.params == ["token": "t"])
        #expect(found.deadline == nil && found.credit == nil)
    }

    @Test func `the methods of the transport ignore the parameters of every method`() throws {
        let limits = MessagingLimits()
        let cancel: JSON = ["jsonrpc": "2.0", "method": "rpc.cancel", "params": ["id": 7, "deadlineMs": 5000]]
        guard case .cancel(let cancelID, let cancelled) = RPCMessage(parsing: cancel.bytes, limits: limits) else {
            Issue.record("not parsed as rpc.cancel")
            return
        }
        #expect(cancelID == nil && cancelled == 7)

        let credit = request(1, "rpc.credit", ["id": 7, "bytes": 100, "deadlineMs": 5000, "credit": 3])
        guard case .credit(let creditID, let credited, let bytes) = RPCMessage(parsing: credit.bytes, limits: limits)
        else {
            Issue.record("not parsed as rpc.credit")
            return
        }
        #expect(creditID == 1 && credited == 7 && bytes == 100)
    }

    @Test(
        arguments: [
            ("follow", ["deadlineMs": 0], "deadlineMs"), ("follow", ["credit": -1], "credit"),
            ("rpc.cancel", ["id": 1.5], "id"), ("rpc.cancel", ["id": 7, "reason": "x"], "reason"),
            ("rpc.credit", ["bytes": 1], "id"), ("rpc.credit", ["id": 7, "bytes": -1], "bytes"),
        ] as [(String, JSONObject, String)]
    )
    func `a refused parameter is named`(method: String, params: JSONObject, name: String) {
        let message = RPCMessage(parsing: request(1, method, .object(params)).bytes, limits: MessagingLimits())
        guard case .invalid(let id, let error, _) = message else {
            Issue.record("not refused")
            return
        }
        #expect(id == 1 && error.name == "invalid_params" && error.data["parameter"] == .string(name))
    }

    @Test
    func `JSON beyond a limit is refused with the limit and the request's id, and the deepest predicate is not`() {
        func deep(_ levels: Int) -> JSON { (0..<levels).reduce(true) { tree, _ in ["and": [tree]] } }
        var limits = MessagingLimits()
        let fetch = request(1, "fetch.assets", ["fetch": ["predicate": deep(32)]])
        guard case .request = RPCMessage(parsing: fetch.bytes, limits: limits) else {
            Issue.record("not parsed as a request")
            return
        }
        limits.json.values = 150
        let wide = JSON.array(Array(repeating: 0, count: 150))
        for (name, value, limit) in [("predicate", deep(50), "96 deep"), ("list", wide, "150 values")] {
            let frame = request(7, "a", .object([name: value])).bytes
            guard case .invalid(let id, let error, _) = RPCMessage(parsing: frame, limits: limits) else {
                Issue.record("not refused")
                return
            }
            #expect(id == 7 && error.name == "limit_exceeded" && error.message.contains(limit))
        }
    }

    @Test func `the envelope of REQ is distinguished from content`() {
        #expect(ReplyEnvelope.length(in: [[], [1]]) == 1)
        #expect(ReplyEnvelope.length(in: [[1, 2, 3, 4], [], [1]]) == 2)
        #expect(ReplyEnvelope.length(in: [[1, 2, 3, 4], [1]]) == 0)
        #expect(ReplyEnvelope.length(in: [[1, 2, 3], []]) == 0)
        #expect(ReplyEnvelope.length(in: []) == 0)
    }

    @Test func `an encoded error parses to the same error, and one without a name gets one`() {
        let error = RPCError(code: 9100, name: "behind", message: "wait", data: ["sequence": 7])
        #expect(RPCError(json: error.json) == error)
        #expect(RPCError(json: ["code": -32601, "message": "no"])?.name == "method_not_found")
        #expect(RPCError(json: ["code": 5, "message": "no"])?.name == "error")
        #expect(RPCError(json: ["code": "5", "message": "no"]) == nil)
        #expect(RPCError(json: .null) == nil)
    }
}
