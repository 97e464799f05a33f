public import Messaging
public import ServiceLifecycle

/// A ``RequestServer`` as a part of a service: stops taking requests on shutdown and finishes those it took.
public struct RequestServerPart: Service, CustomStringConvertible {
    private let server: RequestServer

    /// The part for a server that is bound.
    public init(_ server: RequestServer) {
        self.server = server
    }

    public func run() async throws {
        let server = server
        await cancelWhenGracefulShutdown { await server.run() }
    }

    public var description: String { "requests at \(server.boundAddress)" }
}

/// A ``WorkerPool`` as a part of a service: it was started before, and is stopped here.
public struct WorkerPoolPart: Service, CustomStringConvertible {
    private let pool: WorkerPool

    /// The part for a pool that was started.
    public init(_ pool: WorkerPool) {
        self.pool = pool
    }

    public func run() async throws {
        try? await gracefulShutdown()
        await pool.stop()
    }

    public var description: String { "workers" }
}

/// Something to be closed when all later parts have stopped: a database, a poll thread.
public struct ClosingPart: Service, CustomStringConvertible {
    private let name: String
    private let close: @Sendable () async throws -> Void

    /// A part that only closes.
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

/// A loop of a service that ends by cancellation: reading the feed, collecting garbage.
public struct LoopPart: Service, CustomStringConvertible {
    private let name: String
    private let loop: @Sendable () async throws -> Void

    /// A part that runs `loop` and cancels it on shutdown.
    public init(_ name: String, loop: @escaping @Sendable () async throws -> Void) {
        self.name = name
        self.loop = loop
    }

    public func run() async throws {
        let loop = loop
        do {
            try await cancelWhenGracefulShutdown { try await loop() }
        } catch is CancellationError {
            // The usual end.
        }
    }

    public var description: String { name }
}
