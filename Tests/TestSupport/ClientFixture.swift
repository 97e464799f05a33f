public import JSONValue
public import Contracts
public import Logging
public import Messaging
public import PhotoClient

/// A folder with endpoints and a library connected to them, for one test.
public struct ClientFixture: Sendable {
    /// The folder of the endpoints' socket files.
    public let folder: TemporaryFolder
    /// The endpoints, at which a test may start servers.
    public let endpoints: ServiceEndpoints
    /// The library under test, connected to the endpoints.
    public let library: PhotoLibrary
    /// A logger that discards everything.
    public static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Limits with a short reconnection interval, so that lost connections are restored quickly.
    public static var limits: MessagingLimits {
        var limits = MessagingLimits()
        limits.reconnectIntervalMax = .milliseconds(100)
        return limits
    }

    /// Creates a fixture, runs the body with it and closes the library.
    public static func with<Value>(_ body: (ClientFixture) async throws -> Value) async throws -> Value {
        let folder = try TemporaryFolder("client")
        func address(_ name: String) throws -> EndpointAddress { try EndpointAddress("ipc://\(folder.file(name))") }
        let endpoints = ServiceEndpoints(
            catalog: try address("catalog"),
            thumbnailer: try address("thumbnailer"),
            editor: try address("editor"),
            changeBroker: try address("broker"),
            feed: try address("feed"),
            edits: try address("edits")
        )
        let library = try PhotoLibrary(endpoints: endpoints, client: "test", limits: limits, logger: logger)
        let outcome: Result<Value, any Error>
        do {
            outcome = .success(try await body(ClientFixture(folder: folder, endpoints: endpoints, library: library)))
        } catch {
            outcome = .failure(error)
        }
        await library.close()
        return try outcome.get()
    }

    /// Runs a server with the handler at an address while the body runs. Requests still running at the end are dropped.
    public func serving<Value: Sendable>(
        _ address: EndpointAddress,
        _ handler: any RequestHandler,
        while body: @Sendable () async throws -> Value
    ) async throws -> Value {
        let thread = try PollThread(name: "test-server")
        var limits = MessagingLimits()
        limits.drainTimeout = .zero
        let server = try RequestServer(
            address: address,
            thread: thread,
            limits: limits,
            logger: Self.logger,
            handler: handler
        )
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await server.run() }
            let outcome: Result<Value, any Error>
            do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
            group.cancelAll()
            await thread.shutdown()
            return try outcome.get()
        }
    }
}

extension ServiceClient {
    /// Returns the error of a request; nil if it succeeds.
    public func rpcError<R: Request>(of request: R) async -> RPCError? {
        do throws(RPCError) {
            _ = try await ask(request)
            return nil
        } catch {
            return error
        }
    }
}
