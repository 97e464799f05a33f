import Basics
import Foundation
import JSONValue
import Logging
import Testing

@testable import Messaging

/// The endpoints of one test: a folder, and a poll thread for each side; removed at the end.
struct MessagingFixture {
    enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case inproc, ipc, tcp

        var testDescription: String { rawValue }
    }

    let folder: URL
    let serverThread: PollThread
    let clientThread: PollThread
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    static func with<Result>(_ body: (MessagingFixture) async throws -> Result) async throws -> Result {
        let fixture = try MessagingFixture()
        defer { try? FileManager.default.removeItem(at: fixture.folder) }
        do {
            let result = try await body(fixture)
            await fixture.end()
            return result
        } catch {
            await fixture.end()
            throw error
        }
    }

    private init() throws {
        serverThread = try PollThread(name: "test-server")
        clientThread = try PollThread(name: "test-client")
        folder = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent("m-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func end() async {
        await clientThread.shutdown()
        await serverThread.shutdown()
    }

    func address(_ kind: Kind, _ name: String = "service") throws -> EndpointAddress {
        switch kind {
        case .inproc: try EndpointAddress("inproc://\(folder.lastPathComponent)-\(name)")
        case .ipc: try EndpointAddress("ipc://\(folder.path)/\(name)")
        case .tcp: try EndpointAddress("tcp://127.0.0.1:0")
        }
    }

    func client(_ server: RequestServer, limits: MessagingLimits = .init()) throws -> RequestClient {
        try RequestClient(
            address: server.boundAddress,
            thread: clientThread,
            limits: limits,
            security: .trustedLoopback,
            logger: logger
        )
    }

    /// Runs a server during the body, and waits until it has ended.
    func serving<Result: Sendable>(
        _ kind: Kind = .ipc,
        limits: MessagingLimits = .init(),
        clock: MonotonicClock = .system,
        handler: any RequestHandler = EchoHandler(),
        _ body: (RequestServer) async throws -> Result
    ) async throws -> Result {
        let server = try RequestServer(
            address: address(kind),
            thread: serverThread,
            limits: limits,
            security: .trustedLoopback,
            clock: clock,
            logger: logger,
            handler: handler
        )
        let running = Task { await server.run() }
        do {
            let result = try await body(server)
            running.cancel()
            await running.value
            return result
        } catch {
            running.cancel()
            await running.value
            throw error
        }
    }
}

/// A handler that calls a closure.
struct ClosureHandler: RequestHandler {
    let body: @Sendable (IncomingRequest, RequestContext) async throws -> Reply

    init(_ body: @escaping @Sendable (IncomingRequest, RequestContext) async throws -> Reply) { self.body = body }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        do {
            return try await body(request, context)
        } catch let error as RPCError {
            throw error
        } catch {
            throw .internalError("\(error)")
        }
    }
}

/// A handler that returns what it received.
struct EchoHandler: RequestHandler {
    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        if request.method == "fail" { throw .invalidParams("the test asked for an error") }
        return Reply(
            ["method": .string(request.method), "params": request.params, "identity": .string(context.identity)],
            attachments: context.attachments
        )
    }
}
