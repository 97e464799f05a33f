import Foundation
import JSONValue
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(5)))
struct PartsTests {
    @Test(arguments: [
        "ipc:///tmp/safelight/catalog", "tcp://127.0.0.1:5571", "tcp://localhost:0", "tcp://127.0.0.1:*",
        "tcp://[::1]:5571", "inproc://name", "tcp://0.0.0.0:5571", "tcp://example.org:5571",
    ])
    func `an address is formatted as it was parsed`(text: String) throws {
        #expect(try EndpointAddress(text).description == text)
    }

    @Test(arguments: [
        "", "catalog", "ipc://", "ipc://relative/path", "ipc://@abstract", "tcp://", "tcp://host", "tcp://:5571",
        "tcp://127.0.0.1:", "tcp://127.0.0.1:65536", "tcp://127.0.0.1:-1", "tcp://127.0.0.1:+1", "udp://127.0.0.1:1",
        "inproc://", "ipc:///a\u{0}b", "ipc:///" + String(repeating: "x", count: 106),
    ])
    func `an invalid address is refused with a reason`(text: String) {
        let error = #expect(throws: MessagingError.self) { try EndpointAddress(text) }
        #expect(error?.description.isEmpty == false)
    }

    @Test func `the longest path can be bound, and an address reachable from outside cannot`() async throws {
        try await MessagingRoom.with { room in
            let folder = room.folder.path
            let name = String(repeating: "x", count: EndpointAddress.longestPath - folder.utf8.count - 1)
            let longest = try EndpointAddress("ipc://\(folder)/\(name)")
            let publisher = try Publisher(address: longest, thread: room.serverThread, logger: room.logger)
            #expect(publisher.boundAddress == longest)
            for text in ["tcp://0.0.0.0:0", "tcp://*:0", "tcp://127.0.0.1.example.org:0", "tcp://192.168.1.1:5571"] {
                let address = try EndpointAddress(text)
                #expect(throws: MessagingError.needsCurve(address)) {
                    try Publisher(address: address, thread: room.serverThread, logger: room.logger)
                }
            }
        }
    }

    @Test func `a stale socket file is replaced and a missing folder is an error`() async throws {
        try await MessagingRoom.with { room in
            let address = try room.address(.ipc)
            _ = try Publisher(address: address, thread: room.serverThread, logger: room.logger)
            _ = try Publisher(address: address, thread: room.serverThread, logger: room.logger)
            let nowhere = try EndpointAddress("ipc://\(room.folder.path)/none/socket")
            #expect(throws: MessagingError.self) {
                try Publisher(address: nowhere, thread: room.serverThread, logger: room.logger)
            }
        }
    }

    @Test func `a client that is released closes its socket`() async throws {
        try await MessagingRoom.with { room in
            try await room.serving { server in
                for _ in 0..<20 {
                    let client = try room.client(server)
                    _ = try await client.call("hello")
                }
                while await server.figures()["connections"] != 0 { try await aMoment() }
                #expect(await server.figures()["connectionsSeen"] == 20)
            }
        }
    }

    @Test func `after its thread was shut down every call fails and none waits`() async throws {
        try await MessagingRoom.with { room in
            let thread = try PollThread(name: "short")
            let address = try room.address(.ipc)
            let client = try RequestClient(address: address, thread: thread, logger: room.logger)
            let subscriber = try Subscriber(address: address, thread: thread, logger: room.logger)
            let pusher = try Pusher(address: address, thread: thread)
            let server = try RequestServer(address: address, thread: thread, logger: room.logger, handler: Echo())
            let serving = Task { await server.run() }
            let call = Task { try await client.call("hello", deadline: .seconds(50)) }
            await thread.shutdown()
            _ = await call.result
            await serving.value
            for await _ in subscriber.messages {}
            let error = await #expect(throws: RPCError.self) { try await client.call("hello") }
            #expect(error?.name == "connection_lost")
            await #expect(throws: RPCError.self) { try await pusher.push([[1]]) }
            await server.run()
            await thread.shutdown()
        }
    }

    @Test func `a byte semaphore admits waiters in order while bytes are left, up to its ceiling`() async throws {
        let gate = ByteGate(available: 10, ceiling: 20, lineBound: 100)
        #expect(await gate.take(15) == .taken)
        #expect(gate.available == -5)
        #expect(await gate.take(101) == .refused)
        let first = Task { await gate.take(8) }
        while gate.lineBytes != 8 { try await aMoment() }
        let second = Task { await gate.take(1) }
        while gate.lineBytes != 9 { try await aMoment() }
        let third = Task { await gate.take(2) }
        while gate.lineBytes != 11 { try await aMoment() }
        second.cancel()
        #expect(await second.value == .cancelled)
        gate.give(6)
        #expect(await first.value == .taken)
        #expect(gate.available == -7)
        gate.give(.max)
        #expect(await third.value == .taken)
        #expect(gate.available == 18)
        gate.takeNow(100)
        let last = Task { await gate.take(1) }
        while gate.lineBytes != 1 { try await aMoment() }
        gate.close()
        #expect(await last.value == .closed)
        #expect(await gate.take(0) == .closed)
    }

    @Test func `a mailbox is bounded and ordered, and ends after its last element`() async {
        let room = Counter()
        let mailbox = Mailbox<Int>(maxElements: 2, maxBytes: 100) { room.add() }
        #expect(mailbox.put(1, bytes: 60))
        #expect(!mailbox.put(2, bytes: 60))
        #expect(mailbox.put(3, bytes: 40))
        #expect(!mailbox.put(4, bytes: 0))
        #expect(mailbox.isFull())
        #expect(mailbox.put(5, bytes: 0, always: true))
        mailbox.finish(.busy("b"))
        #expect(!mailbox.put(6, bytes: 0))
        var taken: [Int] = []
        while case .element(let element) = await mailbox.take() { taken.append(element) }
        #expect(taken == [1, 3, 5])
        #expect(room.count == 1)
        guard case .end(let failure) = await mailbox.take() else {
            Issue.record("the mailbox has not ended")
            return
        }
        #expect(failure?.name == "busy")
    }

    @Test func `numbers from the wire never trap`() {
        #expect(Int64.max.addingClamped(1) == .max)
        #expect(Int64.min.addingClamped(-1) == .min)
        #expect(Duration.seconds(Int64.max).microseconds == .max)
        #expect(Duration.seconds(-1).microseconds == 0)
        #expect(Duration.milliseconds(1500).microseconds == 1_500_000)
    }
}
