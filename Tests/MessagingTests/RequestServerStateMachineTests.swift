import Basics
import JSONValue
import Testing

@testable import Messaging

/// Tests of the decisions of the request server, without sockets, tasks and time.
@Suite(.timeLimit(.minutes(1)))
struct RequestServerStateMachineTests {
    typealias Machine = RequestServerStateMachine

    /// A serving state machine, fed with messages of numbered peers.
    private final class Server {
        var machine: Machine
        var key: CurveIdentity?

        init(_ limits: MessagingLimits = .init(), removedKeys: Set<String>? = nil) {
            var isAdmitted: (@Sendable (CurveIdentity) -> Bool)?
            if let removedKeys { isAdmitted = { !removedKeys.contains($0.key) } }
            machine = RequestServerStateMachine(
                transport: .tcp,
                limits: limits,
                capacity: ServerCapacity(limits),
                isAdmitted: isAdmitted,
                methodLimits: { $0 == "plain" ? .default : .unlimited }
            )
            _ = machine.serve()
        }

        func receive(
            _ json: JSON,
            from peer: UInt8 = 1,
            envelope: [Bytes] = [],
            attachments: [Bytes] = [],
            at now: Int64 = 0
        ) -> Machine.Decision {
            var message = IncomingMessage()
            message.frames = [[peer]] + envelope + [json.bytes] + attachments
            message.totalFrames = message.frames.count
            message.totalBytes = message.frameBytes
            message.descriptor = Int32(peer)
            message.curveIdentity = key
            guard let connection = machine.connection(of: message).found else { return .nothing }
            return machine.received(message, on: connection, at: now)
        }

        /// Opens a request that must be accepted.
        func open(_ id: JSON, _ params: JSON = [:], from peer: UInt8 = 1, at now: Int64 = 0) throws
            -> OpenRequest
        {
            let decision = receive(RequestServerStateMachineTests.call(id, params), from: peer, at: now)
            guard case .run(let accepted) = decision else { throw Unexpected(decision: decision) }
            return machine.open(accepted)
        }

        /// Returns true if the response is sent.
        func finished(_ request: OpenRequest, failure: String? = nil) -> Bool {
            machine.finished(request, failure: failure) != nil
        }

        func nextWaiting(at now: Int64 = 0) -> Machine.Decision? { machine.nextWaiting(at: now) }
        func expiredWaiting(at now: Int64) -> [Machine.ServerResponse] { machine.expiredWaiting(at: now) }
        func stopWaiting() -> [Machine.ServerResponse] { machine.stopWaiting() }
        func removeWaiting(ofKeys keys: Set<String>) -> [Machine.ServerResponse] { machine.removeWaiting(ofKeys: keys) }

        /// Opens the waiting request whose turn it is, which must have this id.
        func openNext(_ id: JSON, at now: Int64 = 0) throws -> OpenRequest {
            let decision = nextWaiting(at: now)
            guard case .run(let accepted)? = decision, accepted.incoming.id == id else {
                throw Unexpected(decision: decision ?? .nothing)
            }
            return machine.open(accepted)
        }

        /// Receives a request that must wait.
        func wait(_ id: JSON, _ params: JSON = [:], from peer: UInt8 = 1, at now: Int64 = 0) throws {
            let decision = receive(RequestServerStateMachineTests.call(id, params), from: peer, at: now)
            guard case .nothing = decision else { throw Unexpected(decision: decision) }
        }

        func notified(_ request: OpenRequest) -> Bool { machine.notified(request) != nil }
        func endings(at now: Int64) -> [Machine.Ending] { machine.endExpired(at: now) }
        func endings(ofKeys keys: Set<String>) -> [Machine.Ending] { machine.endRequests(ofKeys: keys) }
        func nextBehindLarge(of id: ConnectionID) -> Machine.Decision? { machine.nextBehindLarge(of: id, at: 0) }
        func closed(_ descriptor: Int32) -> [Connection] { machine.closed(descriptor) }
        func flush(at now: Int64) -> Bool { machine.flush(at: now) }
        func close() -> Int { machine.close().count }
    }

    private struct Unexpected: Error {
        let decision: String

        init(decision: Machine.Decision) { self.decision = "\(decision)" }
    }

    private static func call(_ id: JSON?, _ params: JSON = [:], method: String = "work") -> JSON {
        var object: JSONObject = ["jsonrpc": "2.0", "method": .string(method), "params": params]
        if let id { object["id"] = id }
        return .object(object)
    }

    private static func response(_ decision: Machine.Decision) -> Machine.ServerResponse? {
        switch decision {
        case .respond(let response): response
        case .cancel(_, let response), .addCredit(_, _, let response), .cancelWaiting(_, let response): response
        case .nothing, .parse, .run: nil
        }
    }

    private static func error(_ decision: Machine.Decision) -> RPCError? {
        if case .error(let error)? = response(decision)?.content { error } else { nil }
    }

    private static func result(_ decision: Machine.Decision) -> JSON? {
        if case .result(let result)? = response(decision)?.content { result } else { nil }
    }

    private static func id(_ decision: Machine.Decision?) -> JSON? {
        if case .run(let accepted)? = decision { accepted.incoming.id } else { nil }
    }

    @Test func `an id is refused while it is open on the same connection`() throws {
        let server = Server()
        let first = try server.open(1)
        let second = server.receive(Self.call(1))
        #expect(Self.error(second)?.name == "invalid_request")
        #expect(Self.error(second)?.data == ["id": 1])
        #expect(Self.response(second)?.id == .null, "the open request must not be taken for the refused one")
        #expect(server.machine.metrics.refusedMessages == ["id_in_use": 1])
        _ = try server.open(1, from: 2)
        #expect(server.finished(first))
        _ = try server.open(1)
    }

    @Test func `requests are limited per connection and in all`() throws {
        var limits = MessagingLimits()
        limits.requestsPerConnection = 2
        limits.requests = 3
        limits.waitingRequestsPerConnection = 0
        let server = Server(limits)
        let first = try server.open(1)
        _ = try server.open(2)
        #expect(Self.error(server.receive(Self.call(3)))?.name == "busy")
        _ = try server.open(1, from: 2)
        #expect(Self.error(server.receive(Self.call(2), from: 2))?.name == "busy")
        #expect(server.finished(first, failure: "busy"))
        _ = try server.open(3)
        #expect(server.machine.running == 3)
        #expect(server.machine.metrics.errors == ["busy": 1])
    }

    @Test func `tasks that run longer than their responses count against the limit`() throws {
        var limits = MessagingLimits()
        limits.requestsPerConnection = 1
        limits.waitingRequestsPerConnection = 0
        let server = Server(limits)
        for id in [1, 2] as [Int64] {
            _ = try server.open(.int(id), ["deadlineMs": 1], at: 10_000 * id)
            #expect(server.endings(at: 10_000 * id + 1000).count == 1)
        }
        #expect(Self.error(server.receive(Self.call(3)))?.name == "busy")
    }

    private static func narrowLimits(_ own: Int, _ all: Int = 100, waiting: Int = 100) -> MessagingLimits {
        var limits = MessagingLimits()
        (limits.requestsPerConnection, limits.requests) = (own, all)
        limits.waitingRequestsPerConnection = waiting
        return limits
    }

    @Test func `requests above the number that may be open wait in order, up to a limit`() throws {
        let server = Server(Self.narrowLimits(2, waiting: 3))
        let (first, second) = (try server.open(1), try server.open(2))
        for id in [3, 4, 5] as [Int64] { try server.wait(.int(id), ["n": .int(id)]) }
        #expect(server.machine.waitingCount == 3)
        #expect(Self.error(server.receive(Self.call(6)))?.name == "busy")
        #expect(server.nextWaiting().map { "\($0)" } == nil)
        #expect(server.finished(first))
        #expect(try server.openNext(3).incoming.params == ["n": 3])
        // A new request does not overtake those that wait.
        try server.wait(6)
        #expect(server.nextWaiting().map { "\($0)" } == nil)
        #expect(server.finished(second))
        _ = try server.openNext(4)
        let repeated = server.receive(Self.call(5))
        #expect(Self.error(repeated)?.name == "invalid_request", "its id is in use while it waits")
        #expect(server.machine.metrics.requestsWaited == 4)
    }

    @Test func `waiting requests of several connections take turns`() throws {
        let server = Server(Self.narrowLimits(10, 2))
        let open = [try server.open(1), try server.open(2)]
        for id in [3, 4, 5] as [Int64] { try server.wait(.int(id)) }
        try server.wait(1, from: 2)
        try server.wait(1, from: 3)
        for request in open { #expect(server.finished(request)) }
        let third = try server.openNext(3)
        #expect(third.context.connection.routing == [1])
        let other = try server.openNext(1)
        #expect(other.context.connection.routing == [2])
        #expect(server.nextWaiting().map { "\($0)" } == nil, "the service is full")
        #expect(server.finished(third))
        #expect(try server.openNext(1).context.connection.routing == [3])
        #expect(server.finished(other))
        _ = try server.openNext(4)
    }

    @Test func `each connection may have some requests open although another one has filled the service`() throws {
        let server = Server(Self.narrowLimits(1024, 1024))
        for id in 1...1024 as ClosedRange<Int64> { _ = try server.open(.int(id)) }
        try server.wait(2000)
        let first = try server.open(1, from: 2)
        _ = try server.open(2, from: 2)
        try server.wait(3, from: 2)
        #expect(server.nextWaiting().map { "\($0)" } == nil, "both connections have their guaranteed number")
        #expect(server.finished(first))
        #expect(server.machine.mayOpenWaiting)
        #expect(try server.openNext(3).context.connection.routing == [2], "the other one waits for the service")
        _ = try server.open(1, from: 3)
        #expect(server.nextWaiting().map { "\($0)" } == nil)
    }

    @Test func `waiting requests leave half of the service's memory for others`() throws {
        var limits = Self.narrowLimits(1)
        limits.requestBytes = 6000
        let server = Server(limits)
        _ = try server.open(1)
        try server.wait(2)
        try server.wait(3)
        #expect(Self.error(server.receive(Self.call(4)))?.name == "busy")
        _ = try server.open(1, from: 2)
    }

    @Test func `a waiting request can be cancelled and given credit`() throws {
        let server = Server(Self.narrowLimits(1, waiting: 2))
        let first = try server.open(1)
        try server.wait(2, ["credit": 100])
        try server.wait(3)
        let more = Self.call("c", ["id": 2, "bytes": 50], method: "rpc.credit")
        #expect(Self.result(server.receive(more)) == ["credited": true])
        #expect(
            Self.result(server.receive(Self.call("c", ["id": 3, "bytes": 1], method: "rpc.credit")))
                == ["credited": false]
        )
        let decision = server.receive(Self.call("c", ["id": 3], method: "rpc.cancel"))
        guard case .cancelWaiting(let ended, let response) = decision else { throw Unexpected(decision: decision) }
        guard case .error(let error) = ended.content else { throw Unexpected(decision: decision) }
        #expect(error.name == "user_cancelled" && ended.id == 3 && response?.id == "c")
        #expect(server.finished(first))
        #expect(try server.openNext(2).context.credit == 150)
        #expect(server.machine.waitingCount == 0)
        for id in [4, 5] as [Int64] { try server.wait(.int(id)) }
        for id in [4, 5] as [JSON] { _ = server.receive(Self.call("c", ["id": id], method: "rpc.cancel")) }
        for id in [6, 7] as [Int64] { try server.wait(.int(id)) }
    }

    @Test func `a waiting request ends at its own deadline, or when its connection makes no progress`() throws {
        let server = Server(Self.narrowLimits(1))
        var open = try server.open(1, ["deadlineMs": 500_000])
        try server.wait(2, ["deadlineMs": 10], at: 1000)
        try server.wait(3, at: 1000)
        try server.wait(4, at: 1000)
        try server.wait(5, ["deadlineMs": 40_000], at: 1000)
        #expect(server.machine.nextTime == 11_000)
        #expect(server.expiredWaiting(at: 10_999).isEmpty)
        #expect(server.expiredWaiting(at: 11_000).map(\.id) == [2])
        #expect(server.finished(open))
        open = try server.openNext(3, at: 20_000_000)
        #expect(open.context.deadlineMicroseconds == 50_000_000, "the default deadline begins when it is opened")
        #expect(server.expiredWaiting(at: 30_001_000).isEmpty, "one was opened at 20 s")
        let stalled = server.expiredWaiting(at: 50_000_000)
        #expect(Set(stalled.map(\.id)) == [4, 5])
        let names = stalled.map { response in
            if case .error(let error) = response.content { "\(response.id.text) \(error.name)" } else { "" }
        }
        #expect(Set(names) == ["4 busy", "5 deadline_exceeded"])
        #expect(server.machine.waitingCount == 0)
    }

    @Test
    func `waiting requests are answered when the server stops or their key is removed, and end with the connection`()
        throws
    {
        let server = Server(Self.narrowLimits(1), removedKeys: [])
        server.key = CurveIdentity(key: "k", name: "laptop")
        _ = try server.open(1)
        try server.wait(2)
        #expect(server.removeWaiting(ofKeys: ["other"]).isEmpty)
        #expect(server.removeWaiting(ofKeys: ["k"]).map(\.id) == [2])
        try server.wait(3)
        #expect(server.stopWaiting().map(\.id) == [3])
        try server.wait(4)
        let connection = try #require(server.closed(1).first)
        #expect(server.machine.endRequests(of: connection, .connectionLost).count == 1)
        #expect(server.machine.waitingCount == 0)
    }

    @Test func `a request is cancelled while it is open, not before and not afterwards`() throws {
        let server = Server()
        let cancel = Self.call("c", ["id": 1], method: "rpc.cancel")
        #expect(Self.result(server.receive(cancel)) == ["cancelled": false])
        let request = try server.open(1)
        let decision = server.receive(cancel)
        guard case .cancel(let cancelled, _) = decision else { throw Unexpected(decision: decision) }
        #expect(cancelled === request)
        #expect(Self.result(decision) == ["cancelled": true])
        #expect(Self.result(server.receive(cancel, from: 2)) == ["cancelled": false], "a request of another peer")
        #expect(server.finished(request, failure: "user_cancelled"))
        #expect(Self.result(server.receive(cancel)) == ["cancelled": false])
        let silent = server.receive(Self.call(nil, ["id": 1], method: "rpc.cancel"))
        #expect(Self.response(silent) == nil, "without an id there is no response")
    }

    @Test func `credit is added to requests that were opened with credit`() throws {
        let server = Server()
        let stream = try server.open(1, ["credit": 100])
        #expect(stream.context.credit == 100)
        #expect(stream.context.deadlineMicroseconds == .max, "a stream ends with its connection")
        let plain = try server.open(2)
        #expect(plain.context.deadlineMicroseconds == 30_000_000)
        let more = server.receive(Self.call("c", ["id": 1, "bytes": 50], method: "rpc.credit"))
        guard case .addCredit(let request, let bytes, _) = more else { throw Unexpected(decision: more) }
        #expect(request === stream && bytes == 50)
        #expect(Self.result(more) == ["credited": true])
        let useless = server.receive(Self.call("c", ["id": 2, "bytes": 50], method: "rpc.credit"))
        #expect(Self.result(useless) == ["credited": false])
    }

    @Test func `deadlines end requests, the earliest first`() throws {
        let server = Server()
        let early = try server.open(1, ["deadlineMs": 10])
        _ = try server.open(2, ["deadlineMs": 20])
        #expect(server.machine.nextTime == 10_000)
        #expect(server.endings(at: 9999).isEmpty)
        let endings = server.endings(at: 10_000)
        #expect(endings.map(\.request.incoming.id) == [1])
        #expect(endings.first?.reason == .deadline)
        #expect(server.machine.nextTime == 20_000)
        #expect(!server.finished(early), "it was answered at its deadline")
        #expect(!server.notified(early))
        #expect(server.machine.metrics.responsesDropped == 1)
        #expect(server.machine.metrics.notificationsDropped == 1)
    }

    @Test func `a draining server refuses requests, and ends the open ones after the drain timeout`() throws {
        let server = Server()
        let quick = try server.open(1, ["credit": 1])
        let slow = try server.open(2, ["credit": 1])
        #expect(server.machine.drain(at: 0).isEmpty)
        #expect(Self.error(server.receive(Self.call(3)))?.name == "busy")
        #expect(server.finished(quick))
        #expect(server.machine.expectsWork)
        #expect(server.machine.nextTime == 10_000_000)
        #expect(server.endings(at: 9_999_999).isEmpty)
        let endings = server.endings(at: 10_000_000)
        #expect(endings.map(\.request.incoming.id) == [2])
        #expect(endings.first?.reason == .stopping)
        #expect(server.endings(at: 20_000_000).isEmpty, "each request ends once")
        #expect(server.machine.expectsWork, "its task is still running")
        #expect(!server.finished(slow))
        #expect(!server.machine.expectsWork)
        #expect(server.flush(at: 20_000_000))
        #expect(server.machine.nextTime == 22_000_000)
        #expect(server.close() == 1)
        #expect(server.close() == 0)
        #expect(!server.flush(at: 30_000_000))
    }

    @Test func `messages behind a large one wait for it, in order, on their connection only`() throws {
        var limits = MessagingLimits()
        limits.parseInlineBytes = 200
        let server = Server(limits)
        let text = JSON.string(String(repeating: "x", count: 300))
        let decision = server.receive(Self.call(1, ["text": text]))
        guard case .parse(let message, let recipient) = decision else { throw Unexpected(decision: decision) }
        for id in [2, 3, 4, 5] as [Int64] {
            let queued = server.receive(Self.call(.int(id), id == 4 ? ["text": text] : [:]))
            guard case .nothing = queued else { throw Unexpected(decision: queued) }
        }
        #expect(Self.id(server.receive(Self.call(6), from: 2)) == 6)

        let id = recipient.connection.id
        let parsedMessage = RPCMessage(parsing: message.frames[0], limits: limits)
        let parsed = server.machine.parsed(parsedMessage, message, prefix: recipient.prefix, of: id, at: 0)
        #expect(Self.id(parsed) == 1)
        #expect(Self.id(server.nextBehindLarge(of: id)) == 2)
        #expect(Self.id(server.nextBehindLarge(of: id)) == 3)
        let large = try #require(server.nextBehindLarge(of: id))
        guard case .parse = large else { throw Unexpected(decision: large) }
        // Request 5 waits for request 4.
        if let next = server.nextBehindLarge(of: id) { throw Unexpected(decision: next) }
    }

    @Test func `the memory of open requests is limited, and is released when they have ended`() throws {
        var limits = MessagingLimits()
        limits.requestBytesPerConnection = 2000
        let server = Server(limits)
        var request: OpenRequest? = try server.open(1)
        let large = Bytes(repeating: 1, count: 1500)
        #expect(Self.error(server.receive(Self.call(2), attachments: [large]))?.name == "busy")
        #expect(server.machine.metrics.refusedMessages == ["busy": 1])
        if let open = request { #expect(server.finished(open)) }
        request = nil
        #expect(Self.id(server.receive(Self.call(2), attachments: [large])) == 2)
    }

    @Test func `attachments need a method that takes them`() throws {
        let server = Server()
        let refused = server.receive(Self.call(1, method: "plain"), attachments: [[1]])
        #expect(Self.error(refused)?.name == "invalid_request")
        #expect(server.machine.metrics.refusedMessages == ["attachments": 1])
        let decision = server.receive(Self.call(1), attachments: [[1], [2]])
        guard case .run(let accepted) = decision else { throw Unexpected(decision: decision) }
        #expect(accepted.context.attachments == [[1], [2]])
        #expect(server.machine.metrics.requests == 1)
    }

    @Test func `a REQ peer gets a response to every message and no notifications`() throws {
        let server = Server()
        let decision = server.receive(Self.call(1), envelope: [[]])
        guard case .run(let accepted) = decision else { throw Unexpected(decision: decision) }
        #expect(!accepted.context.acceptsNotifications)
        #expect(accepted.recipient.prefix == [[1], []])
        #expect(Self.error(server.receive(Self.call(nil), envelope: [[]]))?.name == "invalid_request")
        #expect(Self.response(server.receive(Self.call(nil))) == nil, "a DEALER does not wait for one")
    }

    @Test func `the requests of a closed connection end without responses`() throws {
        let server = Server()
        let request = try server.open(1, from: 7)
        let connection = try #require(server.closed(7).first)
        let endings = server.machine.endRequests(of: connection, .connectionLost)
        #expect(endings.map(\.request.incoming.id) == [1])
        #expect(endings.first?.response == nil)
        #expect(!server.finished(request))
        #expect(server.machine.running == 0)
        _ = server.receive(Self.call(2), from: 7)
        #expect(server.machine.metrics.messagesDropped == 1, "a message that arrives later is dropped")
    }

    @Test func `a removed key loses its open requests and opens no others`() throws {
        let server = Server(removedKeys: ["old"])
        server.key = CurveIdentity(key: "old", name: "laptop")
        #expect(Self.error(server.receive(Self.call(1)))?.name == "access_denied")
        server.key = CurveIdentity(key: "new", name: "laptop")
        _ = try server.open(1, from: 2)
        #expect(server.endings(ofKeys: ["old"]).isEmpty)
        #expect(server.endings(ofKeys: ["new"]).map(\.request.incoming.id) == [1])
    }
}
