public import ArgumentParser
import CAcceptLimit
import Glibc
import JSONValue
import Messaging

/// Options for the limits of a service's connections and of the memory of pending requests.
public struct TrafficOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Maximum TCP connections over all endpoints; local clients have as many again. (SAFELIGHT_MAX_CONNECTIONS)",
            discussion: "Default 4096. TCP uses at most half of the open file limit, local clients seven eighths."
        )
    )
    public var maxConnections: Int?

    @Option(
        name: .customLong("request-memory-mib"),
        help: ArgumentHelp(
            "Memory of pending requests; a connection gets at most a quarter. (SAFELIGHT_REQUEST_MEMORY_MIB, else 256)",
            valueName: "MiB"
        )
    )
    public var requestMemoryMiB: Int?

    /// Creates options without flags, resolved from environment variables and defaults.
    public init() {}

    /// Returns the limits.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``.
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> TrafficLimits {
        var limits = TrafficLimits()
        limits.connections =
            try Environment.number(
                maxConnections,
                "--max-connections",
                "SAFELIGHT_MAX_CONNECTIONS",
                in: TrafficLimits.connectionRange,
                environment: environment
            ) ?? limits.connections
        limits.requestMebibytes =
            try Environment.number(
                requestMemoryMiB,
                "--request-memory-mib",
                "SAFELIGHT_REQUEST_MEMORY_MIB",
                in: TrafficLimits.requestRange,
                environment: environment
            ) ?? limits.requestMebibytes
        limits.serviceBytes = try Int(MemoryGuard.limit(environment: environment))
        return limits
    }
}
