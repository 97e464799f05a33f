public import Logging
public import ServiceLifecycle

/// A service whose parts have met: it is bound, and runs when it is told to.
public protocol WiredService: Sendable {
    static var name: ServiceName { get }
    /// What is bound, for the first line of the log.
    var addresses: [String] { get }
    /// In the order in which they lean on each other; they stop last to first.
    var parts: [any Service] { get }
    /// Locks that are held until everything has stopped.
    var locks: [any Sendable] { get }
    var logger: Logger { get }
}

extension WiredService {
    public var locks: [any Sendable] { [] }

    /// Serves until SIGTERM or SIGINT.
    public func run(ready: ReadySignal) async throws {
        try await ServiceHost.run(
            name: Self.name,
            logger: logger,
            endpoints: addresses,
            ready: ready,
            parts: parts
        )
        withExtendedLifetime(locks) {}
    }

    /// Serves until the task is cancelled, for tests.
    public func serve() async throws {
        try await ServiceGroup(services: parts, logger: logger).run()
        withExtendedLifetime(locks) {}
    }
}
