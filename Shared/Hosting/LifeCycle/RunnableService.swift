public import Logging
public import ServiceLifecycle

/// A service whose components are created and whose addresses are bound, ready to run.
public protocol RunnableService: Sendable {
    static var name: ServiceName { get }
    /// The bound addresses, for the start message of the log.
    var addresses: [String] { get }
    /// The components, each after those it depends on; they stop last to first.
    var components: [any Service] { get }
    /// Locks that are held until all components have stopped.
    var locks: [any Sendable] { get }
    var logger: Logger { get }
}

extension RunnableService {
    public var locks: [any Sendable] { [] }

    /// Runs the service until SIGTERM or SIGINT.
    public func run(ready: ReadySignal) async throws {
        try await ServiceHost.run(
            name: Self.name,
            logger: logger,
            endpoints: addresses,
            ready: ready,
            components: components
        )
        withExtendedLifetime(locks) {}
    }

    /// Runs the service until one of its components ends, or until SIGTERM or SIGINT.
    ///
    /// - Returns: true if a component has ended
    public func runUntilComponentEnds(ready: ReadySignal) async throws -> Bool {
        let hasEnded = try await ServiceHost.run(
            name: Self.name,
            logger: logger,
            endpoints: addresses,
            ready: ready,
            endsWithComponent: true,
            components: components
        )
        withExtendedLifetime(locks) {}
        return hasEnded
    }

    /// Runs the service until the task is cancelled; for tests.
    public func serve() async throws {
        try await ServiceGroup(services: components, logger: logger).run()
        withExtendedLifetime(locks) {}
    }
}
