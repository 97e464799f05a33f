public import ArgumentParser

/// Resource limits of worker processes.
public struct WorkerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Time limit of a worker for one image. (SAFELIGHT_JOB_SECONDS, else 25)",
            valueName: "seconds"
        )
    )
    public var jobSeconds: Int?

    @Option(
        name: .customLong("worker-memory-mib"),
        help: ArgumentHelp("Address space limit of a worker. (SAFELIGHT_WORKER_MEMORY_MIB)", valueName: "MiB")
    )
    public var workerMemoryMiB: Int?

    /// The time limit without a flag or variable, in seconds. It is less than the default deadline of requests, so that
    /// a request for an image that hangs a worker gets the worker's error and not `deadline_exceeded`.
    public static let defaultSeconds = 25

    /// Creates options without flags, resolved from environment variables and defaults.
    public init() {}

    /// Returns the limits with the configured values.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``.
    public func resolve(
        _ defaults: WorkerLimits,
        environment: (String) -> String? = { Environment[$0] }
    ) throws(HostingError) -> WorkerLimits {
        var limits = defaults
        limits.wallSeconds =
            try Environment.number(
                jobSeconds,
                "--job-seconds",
                "SAFELIGHT_JOB_SECONDS",
                in: 1...3600,
                environment: environment
            ) ?? Self.defaultSeconds
        limits.cpuSeconds = limits.wallSeconds
        let memory = try Environment.number(
            workerMemoryMiB,
            "--worker-memory-mib",
            "SAFELIGHT_WORKER_MEMORY_MIB",
            in: 256...(1 << 20),
            environment: environment
        )
        if let memory { limits.memoryBytes = memory << 20 }
        return limits
    }
}
