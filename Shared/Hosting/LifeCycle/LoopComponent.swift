import Messaging
public import ServiceLifecycle

/// A component that runs a loop until it is cancelled, for example reading the feed or collecting garbage.
public struct LoopComponent: Service, CustomStringConvertible {
    private let name: String
    private let loop: @Sendable () async throws -> Void

    /// Creates a component that runs `loop` and cancels it on shutdown.
    public init(_ name: String, loop: @escaping @Sendable () async throws -> Void) {
        self.name = name
        self.loop = loop
    }

    public func run() async throws {
        let loop = loop
        do {
            try await cancelWhenGracefulShutdown { try await loop() }
        } catch is CancellationError {
            // The expected end.
        }
    }

    public var description: String { name }
}
