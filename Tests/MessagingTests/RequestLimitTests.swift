import Basics
import CZeroMQ
import JSONValue
import TestSupport
import Testing

@testable import Messaging

/// The limits of requests per method, and of the memory that open requests use.
@Suite(.timeLimit(.minutes(5)))
struct RequestLimitTests {
    /// A handler that answers once all parties have reached the barrier.
    private struct Held: RequestHandler {
        let gate: TaskBarrier

        @concurrent
        func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
            if request.method == "held" { await gate.pass() }
            return Reply("done")
        }

        func limits(of method: String) -> MethodLimits {
            switch method {
            case "held": .unlimited
            case "small": MethodLimits(maxJSONBytes: 100_000, takesAttachments: false)
            default: .usual
            }
        }
    }

    private var limits: MessagingLimits {
        var limits = MessagingLimits()
        limits.maxMessageBytes = 2 << 20
        limits.requestBytesPerConnection = 2 << 20
        limits.requestBytes = 4 << 20
        return limits
    }

    private func request(_ id: Int, _ method: String = "held", _ params: JSON = [:]) -> JSON {
        ["jsonrpc": "2.0", "id": JSON(id), "method": .string(method), "params": params]
    }

    private func answer(_ peer: RawPeer) async throws -> (id: JSON?, error: String?) {
        let answer = try JSON(parsing: try await peer.receive()[0])
        return (answer["id"], answer["error"]?["data"]?["name"]?.stringValue)
    }

    private static let attachment = Bytes(repeating: 7, count: 900_000)

    @Test func `requests beyond the memory limit of a connection get busy until others have ended`()
        async throws
    {
        try await MessagingFixture.with { fixture in
            let gate = TaskBarrier(3)
            try await fixture.serving(limits: limits, handler: Held(gate: gate)) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                for id in 1...4 { try await peer.send(request(id), [Self.attachment]) }
                for id in 3...4 { #expect(try await answer(peer) == (JSON(id), "busy")) }
                let taken = try #require(await server.metrics()["requestBytes"]?.intValue)
                #expect((1_800_000...2 << 20).contains(taken))
                await gate.pass()
                #expect(Set([try await answer(peer).id, try await answer(peer).id]) == [1, 2])
                try await peer.send(request(5), [Self.attachment])
                #expect(try await answer(peer) == (5, nil))
                while await server.metrics()["requestBytes"] != 0 { try await shortDelay() }
            }
        }
    }

    @Test func `large requests of many connections leave memory for small requests`() async throws {
        try await MessagingFixture.with { fixture in
            let gate = TaskBarrier(4)
            try await fixture.serving(limits: limits, handler: Held(gate: gate)) { server in
                let peers = try (0..<4).map { _ in try RawPeer(ZMQ_DEALER, server.boundAddress) }
                for (number, peer) in peers.prefix(3).enumerated() {
                    try await peer.send(request(number), [Self.attachment])
                    while await server.metrics()["running"] != JSON(number + 1) { try await shortDelay() }
                }
                try await peers[3].send(request(7), [Self.attachment])
                #expect(try await answer(peers[3]) == (7, "busy"))
                try await peers[3].send(request(8, "other"))
                #expect(try await answer(peers[3]) == (8, nil))
                await gate.pass()
                for peer in peers.prefix(3) { #expect(try await answer(peer).error == nil) }
            }
        }
    }

    @Test func `the values parsed from a frame count as memory too`() async throws {
        try await MessagingFixture.with { fixture in
            let gate = TaskBarrier(2)
            try await fixture.serving(limits: limits, handler: Held(gate: gate)) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let zeros = JSON.array(Array(repeating: 0, count: 30_000))
                try await peer.send(request(1, "held", ["values": zeros]))
                while await server.metrics()["running"] != 1 { try await shortDelay() }
                let taken = try #require(await server.metrics()["requestBytes"]?.intValue)
                #expect(taken >= 60_000 + 30_000 * Int64(MemoryLayout<JSON>.stride))
                await gate.pass()
                #expect(try await answer(peer) == (1, nil))
            }
        }
    }

    @Test func `attachments to a method without attachments are refused before it runs`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(handler: Held(gate: TaskBarrier(0))) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send(request(1, "small"), [[1]])
                #expect(try await answer(peer) == (1, "invalid_request"))
                #expect(await server.metrics()["requests"] == 0)
                try await peer.send(request(2, "small"))
                #expect(try await answer(peer) == (2, nil))
            }
        }
    }

    @Test func `JSON above the limit of its method is refused before it is parsed`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(handler: Held(gate: TaskBarrier(0))) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                func text(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }
                try await peer.send(request(1, "small", ["a": .string(text(100_000))]))
                #expect(try await answer(peer) == (1, "limit_exceeded"))
                try await peer.send(request(2, "small", ["a": .string(text(80_000))]))
                #expect(try await answer(peer) == (2, nil))
                try await peer.send(request(3, "held", ["a": .string(text(2 << 20))]))
                #expect(try await answer(peer) == (3, nil))
                // Invalid JSON at the end: it is refused for its size without parsing.
                try await peer.send(text: #"{"jsonrpc":"2.0","id":4,"method":"small","params":{"a":""# + text(100_000))
                #expect(try await answer(peer) == (4, "limit_exceeded"))
                // The method comes after the params, so it cannot be read early and the default limit applies.
                for (bytes, error) in [(900_000, nil), (1_100_000, "limit_exceeded" as String?)] {
                    let params = #"{"a":"\#(text(bytes))"}"#
                    try await peer.send(text: #"{"jsonrpc":"2.0","id":5,"params":\#(params),"method":"held"}"#)
                    #expect(try await answer(peer) == (5, error))
                }
            }
        }
    }

    @Test(
        arguments: [
            (#"{"jsonrpc":"2.0","id":7,"method":"a.b","params":{"id":8,"method":"c"}}"#, JSON(7), "a.b"),
            (#" { "method" : "a\u002eb" , "id" : "x\"y" , "params" : "#, "x\"y", "a.b"),
            (#"{"x":{"method":"no","y":[1,"}"]},"method":"yes""#, nil, "yes"),
            (#"{"id":{"a":1},"method":"a","id":3}"#, JSON(3), "a"),
            (#"{"id":1,"params":{},"method":"a"}"#, JSON(1), nil),
            ("[]", nil, nil), ("", nil, nil), (#"{"method":7,"id":1}"#, nil, nil), (#"{"method":"a"#, nil, nil),
        ] as [(String, JSON?, String?)]
    )
    func `the id and the method of a large request are read from its first bytes`(
        text: String,
        id: JSON?,
        method: String?
    ) {
        let head = EnvelopeHead(Bytes(text.utf8))
        #expect(head.id == id && head.method == method)
    }
}
