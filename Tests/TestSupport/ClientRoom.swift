public import Contracts
public import Logging
public import Messaging
public import PhotoClient

/// A folder with endpoints, and a library that is connected to them, for one test.
public struct ClientRoom: Sendable {
    public let folder: TemporaryFolder
    public let endpoints: ServiceEndpoints
    public let library: PhotoLibrary
    public static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Lost connections come back soon.
    public static var limits: MessagingLimits {
        var limits = MessagingLimits()
        limits.reconnectIntervalMax = .milliseconds(100)
        return limits
    }

    public static func with<Value>(_ body: (ClientRoom) async throws -> Value) async throws -> Value {
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
            outcome = .success(try await body(ClientRoom(folder: folder, endpoints: endpoints, library: library)))
        } catch {
            outcome = .failure(error)
        }
        await library.close()
        return try outcome.get()
    }

    /// A handler answers at an address while the body runs; what is under way at the end is cut off.
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
    /// The refusal of a request; nil where it succeeds.
    public func refusal<R: Request>(of request: R) async -> RPCError? {
        do throws(RPCError) {
            _ = try await ask(request)
            return nil
        } catch {
            return error
        }
    }
}
