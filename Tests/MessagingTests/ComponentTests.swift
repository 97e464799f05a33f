import Basics
import Foundation
import JSONValue
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(5)))
struct ComponentTests {
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
        try await MessagingFixture.with { fixture in
            let folder = fixture.folder.path
            let name = String(repeating: "x", count: EndpointAddress.maxPathBytes - folder.utf8.count - 1)
            let longest = try EndpointAddress("ipc://\(folder)/\(name)")
            let publisher = try Publisher(address: longest, thread: fixture.serverThread, logger: fixture.logger)
            #expect(publisher.boundAddress == longest)
            for text in ["tcp://0.0.0.0:0", "tcp://*:0", "tcp://127.0.0.1.example.org:0", "tcp://192.168.1.1:5571"] {
                let address = try EndpointAddress(text)
                #expect(throws: MessagingError.needsCurve(address)) {
                    try Publisher(address: address, thread: fixture.serverThread, logger: fixture.logger)
                }
            }
        }
    }

    @Test func `a stale socket file is replaced and a missing folder is an error`() async throws {
        try await MessagingFixture.with { fixture in
            let address = try fixture.address(.ipc)
            _ = try Publisher(address: address, thread: fixture.serverThread, logger: fixture.logger)
            _ = try Publisher(address: address, thread: fixture.serverThread, logger: fixture.logger)
            let nowhere = try EndpointAddress("ipc://\(fixture.folder.path)/none/socket")
            #expect(throws: MessagingError.self) {
                try Publisher(address: nowhere, thread: fixture.serverThread, logger: fixture.logger)
            }
        }
    }

    @Test func `a client that is released closes its socket`() async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                for _ in 0..<20 {
                    let client = try fixture.client(server)
                    _ = try await client.call("hello")
                }
                while await server.metrics()["connections"] != 0 { try await shortDelay() }
                #expect(await server.metrics()["connectionsSeen"] == 20)
            }
        }
    }

    @Test func `after its thread was shut down every call fails and none waits`() async throws {
        try await MessagingFixture.with { fixture in
            let thread = try PollThread(name: "short")
            let address = try fixture.address(.ipc)
            let client = try RequestClient(address: address, thread: thread, logger: fixture.logger)
            let subscriber = try Subscriber(address: address, thread: thread, logger: fixture.logger)
            let pusher = try Pusher(address: address, thread: thread)
            let server = try RequestServer(
                address: address,
                thread: thread,
                logger: fixture.logger,
                handler: EchoHandler()
            )
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

    @Test func `a byte semaphore admits waiters in order while bytes are left, up to its maximum`() async throws {
        let gate = ByteSemaphore(available: 10, maxAvailable: 20, maxWaitingBytes: 100)
        #expect(await gate.acquire(15) == .acquired)
        #expect(gate.available == -5)
        #expect(await gate.acquire(101) == .refused)
        let first = Task { await gate.acquire(8) }
        while gate.waitingBytes != 8 { try await shortDelay() }
        let second = Task { await gate.acquire(1) }
        while gate.waitingBytes != 9 { try await shortDelay() }
        let third = Task { await gate.acquire(2) }
        while gate.waitingBytes != 11 { try await shortDelay() }
        second.cancel()
        #expect(await second.value == .cancelled)
        gate.release(6)
        #expect(await first.value == .acquired)
        #expect(gate.available == -7)
        gate.release(.max)
        #expect(await third.value == .acquired)
        #expect(gate.available == 18)
        gate.acquireWithoutWaiting(100)
        let last = Task { await gate.acquire(1) }
        while gate.waitingBytes != 1 { try await shortDelay() }
        gate.close()
        #expect(await last.value == .closed)
        #expect(await gate.acquire(0) == .closed)
    }

    @Test func `a peer with few bytes in flight does not wait for the bytes of others`() {
        var limits = MessagingLimits()
        (limits.outboxBytes, limits.outboxBytesPerConnection) = (10, 1 << 20)
        let part = ServerCapacity(limits).local
        let (greedy, modest) = (ConnectionOutbox(limits, in: part), ConnectionOutbox(limits, in: part))
        var reservations = [greedy.tryReserve(100_000), modest.tryReserve(50_000)]
        #expect(!reservations.contains { $0 == nil })
        // The first bytes of each peer count against its own allowance, not against the shared capacity.
        #expect(part.outbox[0].available == 10 - 100_000)
        #expect(modest.tryReserve(20_000) == nil && modest.usage.bytes == 50_000)
        #expect(modest.usage.releases == 0, "a message that was not sent does not show that the peer reads")
        #expect(part.outbox[0].available == 10 - 100_000)
        reservations = []
        #expect(part.outbox[0].available == 10 && greedy.usage.bytes == 0 && modest.usage.bytes == 0)
    }

    @Test func `as many bytes may wait as are in flight, and the connections of one key get at most half of each`()
        async throws
    {
        var limits = MessagingLimits()
        (limits.outboxBytes, limits.outboxBytesPerConnection) = (4 << 20, 1 << 20)
        let capacity = ServerCapacity(limits)
        let key = capacity.makePartOfKey()
        let bytes = 256 << 10
        let (sent, refused) = (Counter(), Counter())
        // Eight connections that read nothing, with eight replies each: 16 MiB.
        var tasks: [Task<Result<ByteReservation, ReservationRefused>, Never>] = []
        for _ in 0..<8 {
            let outbox = ConnectionOutbox(limits, in: key)
            for _ in 0..<8 {
                let task = Task {
                    let result = await outbox.reserve(bytes)
                    if case .success = result { sent.add() } else { refused.add() }
                    return result
                }
                tasks.append(task)
            }
        }
        // The other replies wait.
        while sent.count < 8 || sent.count + refused.count < 56 { try await shortDelay() }
        #expect(sent.count == 8 && key.outbox[0].available == 0)
        #expect(key.waiting.bytesInUse <= 2 << 20)
        #expect(ConnectionOutbox(limits, in: capacity.makePartOfKey()).tryReserve(bytes) != nil)
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.value }
        #expect(key.waiting.bytesInUse == 0)
    }

    @Test func `calls that end before they are sent are removed, also without a connection`() {
        func call(_ id: Int64, waitsForConnection: Bool = true) -> OutgoingCall {
            OutgoingCall(
                id: id,
                message: OutgoingMessage([]),
                inbox: Mailbox<CallElement>(maxElements: 1, maxBytes: .max),
                deadline: .max,
                waitsForConnection: waitsForConnection,
                wantsNotifications: false
            )
        }
        var calls = CallTable(window: 10)
        let first = call(0)
        calls.add(first)
        for id in 1...1000 as ClosedRange<Int64> {
            let late = call(id)
            calls.add(late)
            let wasSent = calls.cancel(late)
            #expect(!wasSent)
        }
        #expect(calls.waiting.count < 100)
        for id in 1001...2000 as ClosedRange<Int64> { calls.add(call(id, waitsForConnection: false)) }
        let unsent = calls.removeUnsent()
        #expect(unsent.count == 1000)
        #expect(calls.waiting.count < 100)
        let next = calls.nextToSend()
        #expect(next === first)
        #expect(calls.openCount == 1)
    }

    @Test func `a mailbox is bounded and ordered, and ends after its last element`() async {
        let capacityCalls = Counter()
        let mailbox = Mailbox<Int>(maxElements: 2, maxBytes: 100) { capacityCalls.add() }
        #expect(mailbox.enqueue(1, bytes: 60))
        #expect(!mailbox.enqueue(2, bytes: 60))
        #expect(mailbox.enqueue(3, bytes: 40))
        #expect(!mailbox.enqueue(4, bytes: 0))
        #expect(mailbox.reportCapacityIfFull())
        #expect(mailbox.enqueue(5, bytes: 0, always: true))
        mailbox.finish(.busy("b"))
        #expect(!mailbox.enqueue(6, bytes: 0))
        var read: [Int] = []
        while case .element(let element) = await mailbox.next() { read.append(element) }
        #expect(read == [1, 3, 5])
        #expect(capacityCalls.count == 1)
        guard case .end(let failure) = await mailbox.next() else {
            Issue.record("the mailbox has not ended")
            return
        }
        #expect(failure?.name == "busy")
    }

    @Test func `a wait without a new element is ended, and no element is lost`() async {
        let mailbox = Mailbox<Int>(maxElements: 2, maxBytes: 100)
        #expect(mailbox.enqueue(1, bytes: 1))
        guard case .element(1) = await mailbox.next() else {
            Issue.record("the element was not returned")
            return
        }
        let reader = Task { await mailbox.next() }
        let ticks = Task {
            while !Task.isCancelled {
                mailbox.endSilentWait()
                await Task.yield()
            }
        }
        let result = await reader.value
        ticks.cancel()
        await ticks.value
        guard case .cancelled = result, !reader.isCancelled else {
            Issue.record("the wait was not ended")
            return
        }
        #expect(mailbox.enqueue(2, bytes: 1))
        mailbox.endSilentWait()
        guard case .element(2) = await mailbox.next() else {
            Issue.record("the element was lost")
            return
        }
    }

    @Test func `numbers from the wire never trap`() {
        #expect(Int64.max.addingClamped(1) == .max)
        #expect(Int64.min.addingClamped(-1) == .min)
        #expect(Duration.seconds(Int64.max).microseconds == .max)
        #expect(Duration.seconds(-1).microseconds == 0)
        #expect(Duration.milliseconds(1500).microseconds == 1_500_000)
    }
}
