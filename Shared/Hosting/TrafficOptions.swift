public import ArgumentParser
import CAcceptLimit
import Glibc
public import JSONValue
import Messaging

/// How much a service takes from its clients at a time.
public struct TrafficOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Connections over TCP, of all endpoints together; local clients have as many again. (SAFELIGHT_MAX_CONNECTIONS)",
            discussion: "4096; and TCP gets at most half of the limit of open files, local clients seven eighths."
        )
    )
    public var maxConnections: Int?

    @Option(
        name: .customLong("request-memory-mib"),
        help: ArgumentHelp(
            "Memory of requests under way; one connection gets a quarter of it. (SAFELIGHT_REQUEST_MEMORY_MIB, else 256)",
            valueName: "MiB"
        )
    )
    public var requestMemoryMiB: Int?

    /// No flags: variables and defaults.
    public init() {}

    /// The limits that follow.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``.
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> TrafficLimits {
        var limits = TrafficLimits()
        func set(
            _ value: inout Int,
            _ flag: Int?,
            _ name: String,
            _ variable: String,
            _ range: ClosedRange<Int>
        ) throws(HostingError) {
            guard let text = flag.map(String.init) ?? environment(variable) else { return }
            guard let number = Int(text), range.contains(number) else {
                throw .badSetting(
                    source: flag == nil ? variable : name,
                    reason: "\(text) is no number from \(range.lowerBound) to \(range.upperBound)"
                )
            }
            value = number
        }
        try set(
            &limits.connections,
            maxConnections,
            "--max-connections",
            "SAFELIGHT_MAX_CONNECTIONS",
            TrafficLimits.connectionRange
        )
        try set(
            &limits.requestMebibytes,
            requestMemoryMiB,
            "--request-memory-mib",
            "SAFELIGHT_REQUEST_MEMORY_MIB",
            TrafficLimits.requestRange
        )
        return limits
    }
}

/// What a service takes from its clients at a time.
public struct TrafficLimits: Sendable, Equatable, CustomStringConvertible {
    static let connectionRange = 16...500_000
    /// A quarter of the least is the largest message.
    static let requestRange = 64...(1 << 20)

    /// Connections over TCP; local clients have as many again.
    public var connections = 4096
    /// Memory of requests under way, in MiB.
    public var requestMebibytes = 256

    /// The usual limits.
    public init() {}

    /// Raises the limit of open files to what the system allows, and bounds the connections of this process; to be called
    /// before anything is bound.
    public func begin() {
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        safelight_limit_accepts(Int32(clamping: connections))
    }

    func apply(to limits: inout MessagingLimits) {
        limits.requestBytes = requestMebibytes << 20
        limits.requestBytesPerConnection = limits.requestBytes / 4
    }

    /// For people.
    public var description: String {
        "\(connections) connections over TCP, \(requestMebibytes) MiB of requests under way"
    }

    /// For `--check`.
    public var json: JSONObject {
        ["maxConnections": JSON(connections), "requestMemoryMiB": JSON(requestMebibytes)]
    }

    /// The connections of this process, and what was refused so far; nil where nothing is bounded.
    static func figures() -> JSONObject? {
        let figures = safelight_accept_limit_figures()
        guard figures.most_tcp > 0 else { return nil }
        return [
            "tcp": JSON(Int(figures.tcp)), "local": JSON(Int(figures.local)), "mostTCP": JSON(Int(figures.most_tcp)),
            "mostLocal": JSON(Int(figures.most_local)), "refusedTCP": .int(figures.refused_tcp),
            "refusedLocal": .int(figures.refused_local),
        ]
    }

    /// Whether connections are bounded as ``begin()`` asked for.
    static var isInForce: Bool { safelight_accept_limit_figures().is_in_force != 0 }
}
