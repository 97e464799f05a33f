public import Messaging
public import ServiceLifecycle

/// A ``RequestServer`` as a component: on shutdown it stops accepting requests and finishes those it has accepted.
public struct RequestServerComponent: Service, CustomStringConvertible {
    private let server: RequestServer

    /// Creates a component for a bound server.
    public init(_ server: RequestServer) {
        self.server = server
    }

    public func run() async throws {
        let server = server
        await cancelWhenGracefulShutdown { await server.run() }
    }

    public var description: String { "requests at \(server.boundAddress)" }
}

/// A ``WorkerPool`` as a component: a pool that was already started, stopped on shutdown.
public struct WorkerPoolComponent: Service, CustomStringConvertible {
    private let pool: WorkerPool

    /// Creates a component for a started pool.
    public init(_ pool: WorkerPool) {
        self.pool = pool
    }

    public func run() async throws {
        try? await gracefulShutdown()
        await pool.stop()
    }

    public var description: String { "workers" }
}

/// A component that closes something after all later components have stopped, for example a database or poll thread.
public struct ClosingComponent: Service, CustomStringConvertible {
    private let name: String
    private let close: @Sendable () async throws -> Void

    /// Creates a component that only closes.
    public init(_ name: String, close: @escaping @Sendable () async throws -> Void) {
        self.name = name
        self.close = close
    }

    public func run() async throws {
        try? await gracefulShutdown()
        try await close()
    }

    public var description: String { name }
}
