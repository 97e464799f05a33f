import ArgumentParser
import CAcceptLimit
import Glibc
import JSONValue
import Messaging

/// Limits of a service's connections and of the memory of pending requests.
public struct TrafficLimits: Sendable, Equatable {
    static let connectionRange = 16...500_000
    /// A quarter of the lower bound is the maximum message size.
    static let requestRange = 64...(1 << 20)

    /// Maximum number of TCP connections; local clients have as many again.
    public var connections = 4096
    /// Memory of pending requests, in MiB.
    public var requestMebibytes = 256
    /// The memory at which the service ends itself, in bytes. Limits of memory without a flag are fractions of it.
    public internal(set) var serviceBytes = MemoryGuard.defaultMebibytes << 20

    /// The memory of replies that have not left the service, in bytes: half of it for local clients and other services,
    /// half for all other clients. Each half is divided equally between replies in flight and replies that wait.
    public var replyBytes: Int { max(128 << 20, serviceBytes / 4) }

    /// Creates the default limits.
    public init() {}

    /// Raises the open file limit to its hard limit, and limits the connections of this process. Must be called before
    /// anything is bound.
    public func enforce() {
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        safelight_limit_accepts(Int32(clamping: connections))
        MessagingContext.shared.limitTCPConnections(to: Int(safelight_accept_limit_figures().max_tcp))
    }

    func apply(to limits: inout MessagingLimits) {
        limits.requestBytes = requestMebibytes << 20
        limits.requestBytesPerConnection = limits.requestBytes / 4
        limits.outboxBytes = replyBytes / 4
    }

    /// Returns the numbers of open and refused connections of this process; nil if connections are not limited.
    static func figures() -> JSONObject? {
        let figures = safelight_accept_limit_figures()
        guard figures.max_tcp > 0 else { return nil }
        return [
            "tcp": JSON(Int(figures.tcp)), "local": JSON(Int(figures.local)), "mostTCP": JSON(Int(figures.max_tcp)),
            "mostLocal": JSON(Int(figures.max_local)), "refusedTCP": .int(figures.refused_tcp),
            "refusedLocal": .int(figures.refused_local),
        ]
    }

    /// True if the limit of ``enforce()`` is in force.
    static var isInForce: Bool { safelight_accept_limit_is_in_force() != 0 }
}
