import Basics
import CZeroMQ
import JSONValue
import TestSupport
import Testing

@testable import Messaging

/// Tests of the limits of requests per method, and of the memory that open requests use.
@Suite(.timeLimit(.minutes(5)))
struct RequestLimitTests {
    /// A handler that replies to `wait` once all parties have reached the barrier.
    private struct WaitingHandler: RequestHandler {
        let gate: TaskBarrier

        @concurrent
        func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
            if request.method == "wait" { await gate.pass() }
            return Reply("done")
        }

        func limits(of method: String) -> MethodLimits {
            switch method {
            case "wait": .unlimited
            case "small": MethodLimits(maxJSONBytes: 100_000, takesAttachments: false)
            default: .default
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

    private func request(_ id: Int, _ method: String = "wait", _ params: JSON = [:]) -> JSON {
        ["jsonrpc": "2.0", "id": JSON(id), "method": .string(method), "params": params]
    }

    private func response(_ peer: RawPeer) async throws -> (id: JSON?, error: String?) {
        let json = try JSON(parsing: try await peer.receive()[0])
        return (json["id"], json["error"]?["data"]?["name"]?.stringValue)
    }

    private static let attachment = Bytes(repeating: 7, count: 900_000)

    @Test func `requests beyond the memory limit of a connection get busy until others have ended`()
        async throws
    {
        try await MessagingFixture.with { fixture in
            let gate = TaskBarrier(3)
            try await fixture.serving(limits: limits, handler: WaitingHandler(gate: gate)) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                for id in 1...4 { try await peer.send(request(id), [Self.attachment]) }
                for id in 3...4 { #expect(try await response(peer) == (JSON(id), "busy")) }
                let usedBytes = try #require(await server.metrics()["requestBytes"]?.intValue)
                #expect((1_800_000...2 << 20).contains(usedBytes))
                await gate.pass()
                #expect(Set([try await response(peer).id, try await response(peer).id]) == [1, 2])
                try await peer.send(request(5), [Self.attachment])
                #expect(try await response(peer) == (5, nil))
                while await server.metrics()["requestBytes"] != 0 { try await shortDelay() }
            }
        }
    }

    @Test func `large requests of many connections leave memory for small requests`() async throws {
        try await MessagingFixture.with { fixture in
            let gate = TaskBarrier(4)
            try await fixture.serving(limits: limits, handler: WaitingHandler(gate: gate)) { server in
                let peers = try (0..<4).map { _ in try RawPeer(ZMQ_DEALER, server.boundAddress) }
                for (number, peer) in peers.prefix(3).enumerated() {
                    try await peer.send(request(number), [Self.attachment])
                    while await server.metrics()["running"] != JSON(number + 1) { try await shortDelay() }
                }
                try await peers[3].send(request(7), [Self.attachment])
                #expect(try await response(peers[3]) == (7, "busy"))
                try await peers[3].send(request(8, "other"))
                #expect(try await response(peers[3]) == (8, nil))
                await gate.pass()
                for peer in peers.prefix(3) { #expect(try await response(peer).error == nil) }
            }
        }
    }

    @Test func `the values parsed from a frame count as memory too`() async throws {
        try await MessagingFixture.with { fixture in
            let gate = TaskBarrier(2)
            try await fixture.serving(limits: limits, handler: WaitingHandler(gate: gate)) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let zeros = JSON.array(Array(repeating: 0, count: 30_000))
                try await peer.send(request(1, "wait", ["values": zeros]))
                while await server.metrics()["running"] != 1 { try await shortDelay() }
                let usedBytes = try #require(await server.metrics()["requestBytes"]?.intValue)
                let values = 30_000 * Int64(MemoryLayout<JSON>.stride)
                // The array may have space for twice as many. The frame is not kept.
                #expect((values...2 * values + 10_000).contains(usedBytes))
                await gate.pass()
                #expect(try await response(peer) == (1, nil))
            }
        }
    }

    @Test func `a JSON frame takes no memory after it was parsed`() async throws {
        try await MessagingFixture.with { fixture in
            let gate = TaskBarrier(2)
            try await fixture.serving(limits: limits, handler: WaitingHandler(gate: gate)) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let blanks = String(repeating: " ", count: 900_000)
                try await peer.send(text: #"{"jsonrpc":"2.0","id":1,"method":"wait","params":{}"# + blanks + "}")
                while await server.metrics()["running"] != 1 { try await shortDelay() }
                let usedBytes = try #require(await server.metrics()["requestBytes"]?.intValue)
                #expect(usedBytes < 10_000)
                await gate.pass()
                #expect(try await response(peer) == (1, nil))
            }
        }
    }

    @Test func `a large request whose values exceed the memory is refused if it is not the only one`() async throws {
        try await MessagingFixture.with { fixture in
            let gate = TaskBarrier(2)
            try await fixture.serving(limits: limits, handler: WaitingHandler(gate: gate)) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                let large: JSON = ["values": .array(Array(repeating: 0, count: 300_000))]
                try await peer.send(request(1, "other", large))
                #expect(try await response(peer) == (1, nil))
                // Its memory is released after its response was sent.
                while await server.metrics()["requestBytes"] != 0 { try await shortDelay() }
                try await peer.send(request(2))
                try await peer.send(request(3, "other", large))
                #expect(try await response(peer) == (3, "busy"))
                await gate.pass()
                #expect(try await response(peer) == (2, nil))
                while await server.metrics()["requestBytes"] != 0 { try await shortDelay() }
            }
        }
    }

    @Test func `attachments to a method without attachments are refused before it runs`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(handler: WaitingHandler(gate: TaskBarrier(0))) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                try await peer.send(request(1, "small"), [[1]])
                #expect(try await response(peer) == (1, "invalid_request"))
                #expect(await server.metrics()["requests"] == 0)
                try await peer.send(request(2, "small"))
                #expect(try await response(peer) == (2, nil))
            }
        }
    }

    @Test func `JSON above the limit of its method is refused before it is parsed`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(handler: WaitingHandler(gate: TaskBarrier(0))) { server in
                let peer = try RawPeer(ZMQ_DEALER, server.boundAddress)
                func text(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }
                try await peer.send(request(1, "small", ["a": .string(text(100_000))]))
                #expect(try await response(peer) == (1, "limit_exceeded"))
                try await peer.send(request(2, "small", ["a": .string(text(80_000))]))
                #expect(try await response(peer) == (2, nil))
                try await peer.send(request(3, "wait", ["a": .string(text(2 << 20))]))
                #expect(try await response(peer) == (3, nil))
                // Invalid JSON at the end: it is refused for its size without parsing.
                try await peer.send(text: #"{"jsonrpc":"2.0","id":4,"method":"small","params":{"a":""# + text(100_000))
                #expect(try await response(peer) == (4, "limit_exceeded"))
                // The method comes after the params, so it cannot be read early and the default limit applies.
                for (bytes, error) in [(900_000, nil), (1_100_000, "limit_exceeded" as String?)] {
                    let params = #"{"a":"\#(text(bytes))"}"#
                    try await peer.send(text: #"{"jsonrpc":"2.0","id":5,"params":\#(params),"method":"wait"}"#)
                    #expect(try await response(peer) == (5, error))
                }
            }
        }
    }

    /// Opens a connection for each key, and returns the connections.
    private func connections(
        _ machine: inout RequestServerStateMachine,
        _ keys: [String]
    ) throws -> [Connection] {
        var connections: [Connection] = []
        for (number, key) in keys.enumerated() {
            var message = IncomingMessage()
            message.frames = [[UInt8(number)], []]
            message.descriptor = Int32(number)
            message.curveIdentity = CurveIdentity(key: key, name: key)
            machine.opened(Int32(number), at: 0)
            let connection = machine.connection(of: message).found
            connections.append(try #require(connection))
        }
        return connections
    }

    private func makeMachine(_ limits: MessagingLimits) -> RequestServerStateMachine {
        RequestServerStateMachine(
            transport: .tcp,
            limits: limits,
            capacity: ServerCapacity(limits),
            peers: PeerTable(maxPerKey: limits.connectionsPerKey),
            isAdmitted: { _ in true },
            methodLimits: { _ in .unlimited }
        )
    }

    @Test func `a key has a limited number of connections`() throws {
        var limits = MessagingLimits()
        limits.connectionsPerKey = 2
        var machine = makeMachine(limits)
        let found = try connections(&machine, ["a", "a", "b", "a", "b"])
        #expect(found.map(\.isExcess) == [false, false, false, true, false])
        // Ended connections do not count any more.
        let ended = machine.closed(0) + machine.closed(3)
        #expect(ended.count == 2)
        let next = try connections(&machine, ["a"])
        #expect(next.map(\.isExcess) == [false])
    }

    @Test func `a connection above the number of its key is ended, and the others are served`() async throws {
        try await MessagingFixture.with { fixture in
            let curve = try CurveFixture()
            var limits = MessagingLimits()
            limits.connectionsPerKey = 1
            let server = try RequestServer(
                address: fixture.address(.tcp),
                thread: fixture.serverThread,
                limits: limits,
                security: curve.serving,
                logger: fixture.logger,
                handler: EchoHandler()
            )
            let running = Task { await server.run() }
            defer { running.cancel() }
            func client(_ security: SocketSecurity) throws -> RequestClient {
                try RequestClient(
                    address: server.boundAddress,
                    thread: fixture.clientThread,
                    security: security,
                    logger: fixture.logger
                )
            }
            let ann = try curve.client("ann")
            let (first, second, other) = (try client(ann), try client(ann), try client(curve.client("bob")))
            _ = try await first.call("hello")
            let ended = await #expect(throws: RPCError.self) { try await second.call("hello") }
            #expect(ended?.name == "connection_lost")
            _ = try await other.call("hello")
            _ = try await first.call("hello")
            #expect(await server.metrics()["connectionsEnded"] == 1)
        }
    }

    @Test func `a key makes a limited number of connections at once`() throws {
        let curve = try CurveFixture()
        func keys(_ name: String) throws -> CurveKeyPair? {
            if case .curveClient(_, let keys) = try curve.client(name) { keys } else { nil }
        }
        let (hasty, other) = (try #require(try keys("hasty")), try #require(try keys("other")))
        func decision(_ keys: CurveKeyPair) -> ZAPRequest.Decision {
            MessagingContext.shared.authenticator.decide(domain: curve.domain, key: keys.publicKey, address: "")
        }
        let admitted = ZAPRequest.Decision.admitted(hasty.publicKey.text + "hasty")
        let maximum = ZAPAuthenticator.connectionBurst
        var count = 0
        while count <= 2 * maximum, decision(hasty) == admitted { count += 1 }
        // A few more are allowed for the time that this takes.
        #expect((maximum...2 * maximum).contains(count))
        #expect(decision(other) == .admitted(other.publicKey.text + "other"))
    }

    @Test func `of the peers that do not read, the one with the most bytes is disconnected first`() throws {
        let limits = MessagingLimits()
        var machine = makeMachine(limits)
        let found = try connections(&machine, ["a", "b", "c", "d"])
        var reservations = zip(found, [2, 4, 8, 1]).map { $0.outbox.reserveWithoutWaiting($1 << 20) }
        reservations.append(found[2].outbox.reserveWithoutWaiting(OutgoingMessage.countedBytes))
        let timeout = limits.stallTimeout.microseconds
        #expect(machine.stalledConnection(at: 0, isFirst: true) == nil)
        // The third peer reads.
        reservations.removeLast()
        #expect(machine.stalledConnection(at: timeout - 1, isFirst: false) == nil)
        #expect(machine.stalledConnection(at: timeout, isFirst: false) === found[1])
        found[1].isEnding = true
        #expect(machine.stalledConnection(at: timeout, isFirst: false) === found[0])
        // The largest one shares its descriptor, so it cannot be ended.
        var leftover = IncomingMessage()
        leftover.frames = [[9], []]
        leftover.descriptor = found[1].descriptor
        leftover.curveIdentity = found[1].curveIdentity
        let shared = machine.connection(of: leftover).found
        let other = try #require(shared)
        reservations.append(other.outbox.reserveWithoutWaiting(16 << 20))
        #expect(machine.stalledConnection(at: timeout, isFirst: false) === found[0])
        #expect(machine.stalledConnection(at: 2 * timeout, isFirst: false) === found[2])
        #expect(machine.stalledConnection(at: 2 * timeout, isFirst: true) == nil)
        withExtendedLifetime(reservations) {}
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
        let head = RPCMessageHead(Bytes(text.utf8))
        #expect(head.id == id && head.method == method)
    }
}
