import Basics
import CZeroMQ
import Foundation
import JSONValue
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(1)))
struct CurveTests {
    private func server(
        _ fixture: MessagingFixture,
        _ curve: CurveFixture,
        limits: MessagingLimits = .init(),
        handler: any RequestHandler = EchoHandler()
    ) throws -> RequestServer {
        try RequestServer(
            address: fixture.address(.tcp),
            thread: fixture.serverThread,
            limits: limits,
            security: curve.serving,
            logger: fixture.logger,
            handler: handler
        )
    }

    private func client(_ fixture: MessagingFixture, _ server: RequestServer, _ security: SocketSecurity) throws
        -> RequestClient
    {
        try RequestClient(
            address: server.boundAddress,
            thread: fixture.clientThread,
            security: security,
            logger: fixture.logger
        )
    }

    private func with(
        _ body: (MessagingFixture, CurveFixture) async throws -> Void
    ) async throws {
        try await MessagingFixture.with { fixture in try await body(fixture, CurveFixture()) }
    }

    private func serving(_ server: RequestServer, _ body: () async throws -> Void) async throws {
        let running = Task { await server.run() }
        defer { running.cancel() }
        try await body()
    }

    @Test func `a request over CURVE is answered, and the handler gets the name of the key`() async throws {
        try await with { fixture, curve in
            let server = try server(fixture, curve)
            try await serving(server) {
                for name in ["ann", "bob"] {
                    let client = try client(fixture, server, curve.client(name))
                    let large = Bytes(repeating: 7, count: 300_000)
                    for _ in 0..<20 {
                        let reply = try await client.call("hello", ["n": 1], attachments: [large])
                        #expect(reply.result["identity"] == .string("key:\(name)"))
                        #expect(reply.attachments == [large])
                    }
                }
            }
        }
    }

    @Test func `published and pushed messages arrive over CURVE`() async throws {
        try await with { fixture, curve in
            let signals = NamedSignals()
            let publisher = try Publisher(
                address: fixture.address(.tcp),
                thread: fixture.serverThread,
                security: curve.serving,
                logger: fixture.logger
            )
            publisher.setOnSubscribe { topic, isSubscribed in if isSubscribed { signals.signal(topic) } }
            let subscriber = try Subscriber(
                address: publisher.boundAddress,
                thread: fixture.clientThread,
                security: curve.client("ann"),
                logger: fixture.logger
            )
            await subscriber.subscribe(["news"])
            await signals.wait("news")
            for number in 0..<100 { publisher.publish("news", [[UInt8(number)]]) }
            var received = subscriber.messages.makeAsyncIterator()
            for number in 0..<100 { #expect(await received.next()?.frames == [[UInt8(number)]]) }

            let puller = try Puller(
                address: fixture.address(.tcp),
                thread: fixture.serverThread,
                security: curve.serving
            )
            let pusher = try Pusher(
                address: puller.boundAddress,
                thread: fixture.clientThread,
                security: curve.client("bob")
            )
            var pulled = puller.messages.makeAsyncIterator()
            for number in 0..<100 {
                try await pusher.push([[UInt8(number)], [1]])
                #expect(await pulled.next() == PulledMessage(frames: [[UInt8(number)], [1]], identity: "key:bob"))
            }
        }
    }

    @Test func `unlisted keys get no responses and no publications, and are logged once a second`() async throws {
        try await with { fixture, curve in
            let start = MonotonicClock.system.nowMicroseconds()
            let signals = NamedSignals()
            let publisher = try Publisher(
                address: fixture.address(.tcp),
                thread: fixture.serverThread,
                security: curve.serving,
                logger: fixture.logger
            )
            publisher.setOnSubscribe { topic, _ in signals.signal(topic) }
            let server = try server(fixture, curve)
            try await serving(server) {
                var unlistedKeys: [(String, RequestClient, Subscriber)] = []
                for (name, security) in try curve.unlistedKeys() {
                    let subscriber = try Subscriber(
                        address: publisher.boundAddress,
                        thread: fixture.clientThread,
                        security: security,
                        logger: fixture.logger
                    )
                    await subscriber.subscribe([name])
                    unlistedKeys.append((name, try client(fixture, server, security), subscriber))
                }
                #expect(unlistedKeys.count == 4)
                await withTaskGroup { group in
                    for (name, client, _) in unlistedKeys {
                        group.addTask {
                            let error = await #expect(throws: RPCError.self, "\(name)") {
                                try await client.call("hello", deadline: .seconds(2))
                            }
                            #expect(error?.name == "deadline_exceeded", "\(name)")
                        }
                    }
                }
                // Meanwhile all subscribers tried to connect too; the publisher must not have accepted any of them.
                for (name, _, subscriber) in unlistedKeys {
                    publisher.publish(name, [[1]])
                    #expect(!signals.isSignaled(name))
                    #expect(await subscriber.metrics()["received"] == 0)
                }
                #expect(await server.metrics()["requests"] == 0)
                let good = try client(fixture, server, curve.client("good"))
                _ = try await good.call("hello")
            }
            let seconds = Int((MonotonicClock.system.nowMicroseconds() - start) / 1_000_000)
            #expect(curve.lines.count >= 1)
            #expect(curve.lines.count <= seconds + 1)
            let refused = MessagingContext.shared.authenticator.metrics()[curve.domain]?["refused"]?.intValue ?? 0
            #expect(refused >= 2)
        }
    }

    @Test func `a wrong server key is logged once a second by the client and counted by the server`() async throws {
        try await with { fixture, curve in
            let server = try server(fixture, curve)
            let other = try CurveFixture()
            guard case .curveClient(_, let keys) = try curve.client("ann") else {
                Issue.record("no client keys")
                return
            }
            try await serving(server) {
                let start = MonotonicClock.system.nowMicroseconds()
                let client = try RequestClient(
                    address: server.boundAddress,
                    thread: fixture.clientThread,
                    security: .curveClient(serverPublicKey: other.server.publicKey, keys: keys),
                    logger: other.logger
                )
                let error = await #expect(throws: RPCError.self) {
                    try await client.call("hello", deadline: .seconds(2))
                }
                #expect(error?.name == "deadline_exceeded")
                let seconds = Int((MonotonicClock.system.nowMicroseconds() - start) / 1_000_000)
                #expect((1...(seconds + 1)).contains(other.lines.count))
                #expect(await client.metrics()["handshakesRefused"]?.intValue ?? 0 >= 1)
                #expect(await server.metrics()["handshakesRefused"]?.intValue ?? 0 >= 1)
                #expect(await server.metrics()["requests"] == 0)
            }
        }
    }

    @Test func `a revoked key loses its open requests and its connection, and other keys do not`() async throws {
        try await with { fixture, curve in
            let started = NamedSignals()
            let server = try server(
                fixture,
                curve,
                handler: ClosureHandler { request, context in
                    guard request.method == "stream" else { return Reply([:]) }
                    started.signal(context.identity)
                    try await untilCancelled()
                    return Reply([:])
                }
            )
            try await serving(server) {
                let bad = try client(fixture, server, curve.client("bad"))
                let good = try client(fixture, server, curve.client("good"))
                _ = try await bad.call("hello")
                _ = try await good.call("hello")
                let stream = Task { try await bad.call("stream", deadline: .seconds(50)) }
                await started.wait("key:bad")
                curve.revoke("bad")
                // The key is refused from the time at which its stream ends.
                let ended = await #expect(throws: RPCError.self) { try await stream.value }
                #expect(ended?.name == "access_denied")
                let refused = await #expect(throws: RPCError.self) { try await bad.call("hello") }
                #expect(refused?.name == "access_denied")
                #expect(refused?.code == 3311)
                _ = try await good.call("hello")
                #expect(await server.metrics()["decodeErrors"]?["revoked"] == 1)
            }
        }
    }

    @Test func `after a key is revoked the publisher disconnects all clients, and other keys reconnect`() async throws {
        try await with { fixture, curve in
            let publisher = try Publisher(
                address: fixture.address(.tcp),
                thread: fixture.serverThread,
                security: curve.serving,
                logger: fixture.logger
            )
            func subscriber(_ name: String) throws -> Subscriber {
                try Subscriber(
                    address: publisher.boundAddress,
                    thread: fixture.clientThread,
                    security: curve.client(name),
                    logger: fixture.logger
                )
            }
            let (bad, good) = (try subscriber("bad"), try subscriber("good"))
            let (first, second) = (NamedSignals(), NamedSignals())
            publisher.setOnSubscribe { topic, isSubscribed in
                (first.isSignaled("done") ? second : first).signal((isSubscribed ? "+" : "-") + topic)
            }
            await bad.subscribe(["bad"])
            await good.subscribe(["good"])
            await first.wait("+bad")
            await first.wait("+good")
            first.signal("done")
            curve.revoke("bad")
            var events = bad.events.makeAsyncIterator()
            #expect(await events.next() == .connected)
            #expect(await events.next() == .disconnected)
            await second.wait("+good")
            publisher.publish("good", [[1]])
            publisher.publish("bad", [[1]])
            var received = good.messages.makeAsyncIterator()
            #expect(await received.next()?.topic == "good")
            await second.wait("-bad")
            #expect(!second.isSignaled("+bad"))
            #expect(await bad.metrics()["received"] == 0)
            #expect(await publisher.metrics()["restarts"] == 1)
        }
    }

    @Test func `without a list of keys every connection is refused`() async throws {
        try await MessagingFixture.with { fixture in
            // A separate context, for which no list was ever set.
            let thread = try PollThread(name: "closed", context: MessagingContext())
            let keys = try CurveKeyPair.generate()
            let server = try RequestServer(
                address: fixture.address(.tcp),
                thread: thread,
                security: .curveServer(secretKey: keys.secretKey, domain: "requests"),
                logger: fixture.logger,
                handler: EchoHandler()
            )
            try await serving(server) {
                let client = try client(
                    fixture,
                    server,
                    .curveClient(serverPublicKey: keys.publicKey, keys: .generate())
                )
                let error = await #expect(throws: RPCError.self) {
                    try await client.call("hello", deadline: .seconds(1))
                }
                #expect(error?.name == "deadline_exceeded")
                #expect(await server.metrics()["requests"] == 0)
            }
            await thread.shutdown()
        }
    }

    @Test func `200 connections without a handshake are closed while a good client is served`() async throws {
        try await with { fixture, curve in
            var limits = MessagingLimits()
            limits.handshakeInterval = .milliseconds(700)
            let server = try server(fixture, curve, limits: limits)
            try await serving(server) {
                let good = try client(fixture, server, curve.client("good"))
                _ = try await good.call("hello")
                let silent = try (0..<200).map { _ in try SilentPeer(server.boundAddress) }
                for _ in 0..<50 { _ = try await good.call("hello") }
                for peer in silent { #expect(await peer.waitForEnd()) }
                _ = try await good.call("hello")
                #expect(await server.metrics()["requests"] == 52)
            }
        }
    }

    @Test func `addresses that other machines can reach require CURVE, and any can be bound with it`() async throws {
        try await with { fixture, curve in
            let open = try EndpointAddress("tcp://0.0.0.0:0")
            #expect(throws: MessagingError.needsCurve(open)) {
                try RequestServer(
                    address: open,
                    thread: fixture.serverThread,
                    logger: fixture.logger,
                    handler: EchoHandler()
                )
            }
            #expect(throws: MessagingError.needsCurve(open)) {
                try Puller(address: open, thread: fixture.serverThread)
            }
            #expect(throws: MessagingError.wrongSecurity(open)) {
                try Puller(address: open, thread: fixture.serverThread, security: curve.client("ann"))
            }
            // These are not loopback addresses, so trusting loopback does not help.
            #expect(throws: MessagingError.needsCurve(open)) {
                try Puller(address: open, thread: fixture.serverThread, security: .trustedLoopback)
            }
            let far = try EndpointAddress("tcp://192.0.2.1:5571")
            #expect(throws: MessagingError.needsCurve(far)) {
                try Subscriber(address: far, thread: fixture.clientThread, logger: fixture.logger)
            }
            _ = try Subscriber(
                address: far,
                thread: fixture.clientThread,
                security: curve.client("bob"),
                logger: fixture.logger
            )
            let server = try RequestServer(
                address: open,
                thread: fixture.serverThread,
                security: curve.serving,
                logger: fixture.logger,
                handler: EchoHandler()
            )
            try await serving(server) {
                let port = server.boundAddress.location.split(separator: ":").last.map(String.init) ?? ""
                let client = try RequestClient(
                    address: EndpointAddress("tcp://127.0.0.1:\(port)"),
                    thread: fixture.clientThread,
                    security: curve.client("carl"),
                    logger: fixture.logger
                )
                _ = try await client.call("hello")
            }
        }
    }

    @Test func `a loopback address requires CURVE too, unless loopback is trusted`() async throws {
        try await with { fixture, _ in
            let loopback = try EndpointAddress("tcp://127.0.0.1:0")
            #expect(throws: MessagingError.needsCurve(loopback)) {
                try RequestServer(
                    address: loopback,
                    thread: fixture.serverThread,
                    logger: fixture.logger,
                    handler: EchoHandler()
                )
            }
            #expect(throws: MessagingError.needsCurve(loopback)) {
                try Publisher(address: loopback, thread: fixture.serverThread, logger: fixture.logger)
            }
            #expect(throws: MessagingError.needsCurve(loopback)) {
                try Puller(address: loopback, thread: fixture.serverThread)
            }
            let bound = try Puller(address: loopback, thread: fixture.serverThread, security: .trustedLoopback)
            #expect(throws: MessagingError.needsCurve(bound.boundAddress)) {
                try Pusher(address: bound.boundAddress, thread: fixture.clientThread)
            }
            #expect(throws: MessagingError.needsCurve(bound.boundAddress)) {
                try RequestClient(address: bound.boundAddress, thread: fixture.clientThread, logger: fixture.logger)
            }
            _ = try Pusher(address: bound.boundAddress, thread: fixture.clientThread, security: .trustedLoopback)
        }
    }

    @Test func `keys are parsed from and formatted as text, and secret keys are never printed`() throws {
        let pair = try CurveKeyPair.generate()
        #expect(CurvePublicKey(pair.publicKey.text) == pair.publicKey)
        #expect(CurveKeyPair(publicKey: pair.publicKey, secretKey: pair.secretKey) == pair)
        #expect(CurveKeyPair(publicKey: try CurveKeyPair.generate().publicKey, secretKey: pair.secretKey) == nil)
        for text in [
            "", "short", String(repeating: "\"", count: 40), String(repeating: "#", count: 41),
            "é" + pair.publicKey.text.dropFirst(2),
        ] {
            #expect(CurvePublicKey(text) == nil)
            #expect(CurveSecretKey(text) == nil)
        }
        let security = SocketSecurity.curveServer(secretKey: pair.secretKey, domain: "requests")
        var dumped = ""
        dump(security, to: &dumped)
        for text in ["\(security)", String(reflecting: security), dumped, "\(pair)"] {
            #expect(!text.contains(pair.secretKey.text))
        }
    }
}

/// A TCP connection that never sends anything.
private final class SilentPeer: Sendable {
    private let descriptor: Int32

    init(_ address: EndpointAddress) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port =
            UInt16(address.location.split(separator: ":").last.map(String.init) ?? "").map { $0.bigEndian } ?? 0
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw POSIXError(.ECONNREFUSED) }
    }

    deinit { close(descriptor) }

    /// Reads on a separate thread until the server closes the connection; false after twenty seconds.
    func waitForEnd() async -> Bool {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                var timeout = timeval(tv_sec: 20, tv_usec: 0)
                setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
                var buffer = [UInt8](repeating: 0, count: 256)
                var count = recv(descriptor, &buffer, 256, 0)
                while count > 0 { count = recv(descriptor, &buffer, 256, 0) }
                continuation.resume(returning: count == 0 || errno == ECONNRESET)
            }
        }
    }
}
